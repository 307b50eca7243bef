//! What every engine promises, asked of the one in memory.

use std::time::Duration;

use tidegate_directory::{Claim, Directory, Knowledge, Memory, MemorySettings};
use tidegate_lifecycle::id::{GatewayId, InstanceId, SandboxName, SessionId};

fn name(text: &str) -> SandboxName {
    SandboxName::parse(text).expect("a name")
}

fn claim(sandbox: &str, session: &str) -> Claim {
    Claim {
        sandbox: name(sandbox),
        session: SessionId::new(session),
        instance: InstanceId::new("i"),
        gateway: GatewayId::new("gw0"),
        peer_url: None,
    }
}

fn sure() -> Memory {
    Memory::new(MemorySettings {
        grace: Duration::ZERO,
        ..MemorySettings::default()
    })
}

#[tokio::test]
async fn the_newest_session_wins_and_a_late_goodbye_changes_nothing() {
    let directory = sure();
    let first = directory.claim(claim("a", "s1")).await.unwrap();
    let second = directory.claim(claim("a", "s2")).await.unwrap();
    assert!(first.replaced.is_empty() && second.generation > first.generation);
    assert_eq!(second.replaced[0].session, SessionId::new("s1"));

    assert!(
        !directory
            .release(&name("a"), first.generation)
            .await
            .unwrap()
    );
    let homes = directory.homes(&name("a")).await.unwrap();
    assert_eq!(
        homes
            .iter()
            .map(|home| home.session.as_str())
            .collect::<Vec<_>>(),
        ["s2"]
    );
    assert!(
        directory
            .release(&name("a"), second.generation)
            .await
            .unwrap()
    );
    assert!(directory.homes(&name("a")).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_name_is_known_once_declared_or_seen_and_deleted_until_it_comes_back() {
    let directory = sure();
    assert_eq!(directory.known(&name("a")).await, Ok(Knowledge::Unknown));
    directory.declare(&name("a")).await.unwrap();
    assert_eq!(directory.known(&name("a")).await, Ok(Knowledge::Known));
    assert!(!directory.entry(&name("a")).await.unwrap().unwrap().seen);

    assert!(directory.forget(&name("a")).await.unwrap().is_some());
    assert_eq!(directory.known(&name("a")).await, Ok(Knowledge::Deleted));
    assert!(directory.list().await.unwrap().is_empty());
    assert!(directory.forget(&name("never")).await.unwrap().is_none());
    assert_eq!(
        directory.known(&name("never")).await,
        Ok(Knowledge::Unknown)
    );

    directory.claim(claim("a", "s1")).await.unwrap();
    assert_eq!(directory.known(&name("a")).await, Ok(Knowledge::Known));
    let listed = directory.list().await.unwrap();
    assert_eq!(
        (listed.len(), listed[0].homes.len(), listed[0].seen),
        (1, 1, true)
    );
}

#[tokio::test]
async fn a_young_directory_is_unsure_of_names_but_not_of_deletions() {
    let directory = Memory::new(MemorySettings::default());
    assert_eq!(directory.known(&name("a")).await, Ok(Knowledge::Unsure));
    assert!(directory.forget(&name("a")).await.unwrap().is_none());
    assert_eq!(directory.known(&name("a")).await, Ok(Knowledge::Deleted));
}

#[tokio::test]
async fn a_name_without_session_is_forgotten_after_its_retention() {
    let settings = MemorySettings {
        retention: Duration::ZERO,
        grace: Duration::ZERO,
    };
    let directory = Memory::new(settings);
    let claimed = directory.claim(claim("a", "s1")).await.unwrap();
    assert_eq!(directory.known(&name("a")).await, Ok(Knowledge::Known));
    directory
        .release(&name("a"), claimed.generation)
        .await
        .unwrap();
    assert_eq!(directory.known(&name("a")).await, Ok(Knowledge::Unknown));
}

#[tokio::test]
async fn a_watch_notices_what_happened_after_it_began() {
    let directory = sure();
    let mut watch = directory.watch(&name("a")).await.unwrap();
    directory.claim(claim("a", "s1")).await.unwrap();
    watch.changed().await;
    directory.forget(&name("a")).await.unwrap();
    watch.changed().await;
}
