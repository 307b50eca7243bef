//! The client of etcd, against a real one.

use std::time::{Duration, Instant};

use tidegate_directory::{
    DirectoryError,
    etcd::{Change, Client, Condition, Endpoints, Tail, TailError, Tidings},
};
use tidegate_testkit::{database::Etcd, wait};
use tonic::transport::ClientTlsConfig;

fn client(etcd: &Etcd) -> Client {
    let endpoints = Endpoints::parse(&etcd.url()).expect("the address of a server");
    Client::new(&endpoints, &ClientTlsConfig::new(), None).expect("a client")
}

fn put(key: &str, value: &str) -> Change {
    Change::Put {
        key: key.into(),
        value: value.into(),
        lease: None,
    }
}

/// Waits for the next change.
async fn next(tail: &mut Tail) -> Result<Vec<Tidings>, TailError> {
    wait::within(wait::GENEROUS, "a change", async {
        loop {
            let tidings = tail.next().await?;
            if !tidings.is_empty() {
                return Ok(tidings);
            }
        }
    })
    .await
}

#[tokio::test]
async fn of_two_changes_on_one_condition_one_is_made() {
    let etcd = Etcd::start().await.unwrap();
    let client = client(&etcd);
    let absent = [Condition::Absent("a/1".into())];
    let (x, y) = ([put("a/1", "x")], [put("a/1", "y")]);
    let (first, second) = tokio::join!(client.change(&absent, &x), client.change(&absent, &y));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert!(first.is_some() != second.is_some(), "{first:?} {second:?}");
    let made = first.or(second).unwrap();

    let found = client.read("a/").await.unwrap();
    assert_eq!(found.entries.len(), 1);
    assert_eq!(found.entries[0].revision, made);

    let stale = Condition::Unchanged("a/1".into(), made);
    let changed = client
        .change(std::slice::from_ref(&stale), &[put("a/1", "z")])
        .await;
    assert!(changed.unwrap().is_some_and(|newer| newer > made));
    let late = client
        .change(&[stale], &[Change::Remove("a/1".into())])
        .await;
    assert_eq!(late.unwrap(), None);
    assert_eq!(client.read("a/").await.unwrap().entries[0].value, b"z");
}

#[tokio::test]
async fn a_key_that_appeared_meanwhile_is_noticed() {
    let etcd = Etcd::start().await.unwrap();
    let client = client(&etcd);
    let before = client.read("a/").await.unwrap().revision;
    let guard = [Condition::NoneNewer("a/".into(), before)];
    let first = client.change(&guard, &[put("a/1", "x")]).await.unwrap();
    assert!(first.is_some());
    let second = client.change(&guard, &[put("a/2", "x")]).await.unwrap();
    assert_eq!(second, None);
}

#[tokio::test]
async fn a_key_ends_with_its_lease() {
    let etcd = Etcd::start().await.unwrap();
    let client = client(&etcd);
    let lease = client.begin_lease(Duration::from_secs(60)).await.unwrap();
    let key = Change::Put {
        key: "a/1".into(),
        value: Vec::new(),
        lease: Some(lease),
    };
    client.change(&[], &[key]).await.unwrap();
    let found = client.read("a/").await.unwrap();
    assert_eq!(found.entries[0].lease, Some(lease));
    assert!(client.renew_lease(lease).await.unwrap());
    client.end_lease(lease).await.unwrap();
    assert!(client.read("a/").await.unwrap().entries.is_empty());
    assert!(!client.renew_lease(lease).await.unwrap());
}

#[tokio::test]
async fn the_log_goes_on_after_a_restart_without_a_gap() {
    let mut etcd = Etcd::start().await.unwrap();
    let client = client(&etcd);
    let start = client.read("a/").await.unwrap().revision;
    let mut tail = client.follow("a/", start).await.unwrap();
    client.change(&[], &[put("a/1", "x")]).await.unwrap();
    client.change(&[], &[put("b/1", "x")]).await.unwrap();
    let tidings = next(&mut tail).await.unwrap();
    assert!(
        matches!(&tidings[..], [Tidings::Written(entry)] if entry.key == "a/1"),
        "{tidings:?}"
    );

    etcd.kill().await;
    let lost = next(&mut tail).await.unwrap_err();
    assert!(matches!(lost, TailError::Lost(_)), "{lost:?}");
    etcd.restart().await.unwrap();
    let removed = wait::until_async(wait::GENEROUS, async || {
        let gone = client.change(&[], &[Change::Remove("a/1".into())]).await;
        gone.is_ok()
    });
    removed.await.unwrap();
    let mut tail = client.follow("a/", tail.reached()).await.unwrap();
    let tidings = next(&mut tail).await.unwrap();
    assert!(
        matches!(&tidings[..], [Tidings::Removed { key, .. }] if key == "a/1"),
        "{tidings:?}"
    );
}

#[tokio::test]
async fn an_etcd_that_stands_still_fails_calls_in_time() {
    let etcd = Etcd::start().await.unwrap();
    let client = client(&etcd);
    client.read("a/").await.unwrap();
    etcd.stop();
    let asked = Instant::now();
    let answer = client.read("a/").await;
    assert!(
        matches!(answer, Err(DirectoryError::Unavailable(_))),
        "{answer:?}"
    );
    // The limit is the promise under test.
    assert!(asked.elapsed() < Duration::from_secs(2) + Duration::from_secs(1));
    etcd.resume();
    let back = wait::until_async(wait::GENEROUS, async || client.read("a/").await.is_ok());
    back.await.unwrap();
}
