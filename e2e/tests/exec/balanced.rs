//! Commands behind nginx and HAProxy, which stand before the gateway and before the supervisor alike.

use std::process::Stdio;
use std::time::Instant;

use tidegate_client::Client;
use tidegate_client::exec::Outcome;
use tidegate_e2e::balancer::{Balanced, Kind};
use tidegate_e2e::command::{self, Running};
use tidegate_e2e::{Options, sized};
use tidegate_testkit::wait::within;

use crate::{GONE, MOMENT, script, start};

/// What a command writes just before it ends: more than a proxy sends on at once.
const LAST_WORDS: usize = 200_000;

/// A command that has ended waits for nobody's stdin: the gateway ends the call while the request is
/// open, and what came before that end arrives, status and code included.
async fn dep_04_a_command_ends_before_its_stdin(kind: Kind) {
    let balanced = Balanced::start(kind, Options::new().commands()).await;
    let client = Client::new(&balanced.access).unwrap();
    let wordy = format!("head -c {LAST_WORDS} /dev/zero; exit 7");
    for _ in 0..sized(20, 200) {
        let exec = start(&client, script(&wordy)).await;
        let (input, mut events) = exec.split();
        let collected = within(GONE, "the end", events.collect(crate::ALL)).await;
        assert_eq!(collected.stdout.data.len(), LAST_WORDS);
        assert!(
            matches!(&collected.outcome, Outcome::Exited(exit) if exit.code == 7),
            "{}",
            collected.outcome
        );
        drop(input);
    }

    let mut command = command::exec(&balanced.access, &["-i"], &["sh", "-c", &wordy]);
    command.stdin(Stdio::piped());
    let running = Running::start(command);
    let stdin = running.stdin();
    let finished = running.finish(GONE).await;
    assert_eq!(finished.code(), Some(7), "{}", finished.stderr);
    assert_eq!(finished.stdout.len(), LAST_WORDS);
    drop((stdin, client));
    balanced.settle().await;
}

/// The same with an upload on its way that nobody reads.
async fn dep_04_a_command_ends_in_the_middle_of_an_upload(kind: Kind) {
    let balanced = Balanced::start(kind, Options::new().commands()).await;
    let client = Client::new(&balanced.access).unwrap();
    for _ in 0..sized(20, 200) {
        let exec = start(&client, script("head -c 1 >/dev/null; printf over; exit 3")).await;
        let (mut input, mut events) = exec.split();
        let uploading = async {
            // More than the windows on its way take; what comes after the end goes nowhere.
            for _ in 0..256 {
                input.write(vec![b'x'; 1 << 16]).await.unwrap();
            }
        };
        let both = async { tokio::join!(uploading, events.collect(64)) };
        let ((), collected) = within(MOMENT, "the end", both).await;
        assert_eq!(collected.stdout.data, b"over");
        assert!(
            matches!(&collected.outcome, Outcome::Exited(exit) if exit.code == 3),
            "{}",
            collected.outcome
        );
    }
    let begun = Instant::now();
    let exec = command::exec(&balanced.access, &["-i"], &["sh", "-c", "exit 3"]);
    let finished = Running::fed(exec, vec![b'x'; 8 << 20]).finish(MOMENT).await;
    assert_eq!((finished.code(), &*finished.stderr), (Some(3), ""));
    assert!(begun.elapsed() < GONE);
    drop(client);
    balanced.settle().await;
}

/// Nothing is said before the other one has spoken: not by the command, which waits for stdin, and not
/// by its caller, who waits until it runs.
async fn a_command_runs_before_anything_is_said(kind: Kind) {
    let balanced = Balanced::start(kind, Options::new().commands()).await;
    let exec = command::exec(&balanced.access, &["-i"], &["cat"]);
    let finished = Running::fed(exec, b"hello\n".to_vec()).finish(MOMENT).await;
    assert_eq!((finished.code(), &*finished.text()), (Some(0), "hello\n"));
    let client = Client::new(&balanced.access).unwrap();
    let mut exec = start(&client, script("cat; exit 2")).await;
    exec.input().write("said").await.unwrap();
    let collected = within(MOMENT, "the end", exec.collect(64)).await;
    assert_eq!(collected.stdout.data, b"said");
    assert!(matches!(&collected.outcome, Outcome::Exited(exit) if exit.code == 2));
    drop((exec, client));
    balanced.settle().await;
}

macro_rules! every_balancer {
    ($($name:ident: $kind:ident),+ $(,)?) => {$(
        mod $name {
            use super::*;

            #[tokio::test]
            async fn dep_04_a_command_ends_before_its_stdin() {
                super::dep_04_a_command_ends_before_its_stdin(Kind::$kind).await;
            }

            #[tokio::test]
            async fn a_command_runs_before_anything_is_said() {
                super::a_command_runs_before_anything_is_said(Kind::$kind).await;
            }

            #[tokio::test]
            async fn dep_04_a_command_ends_in_the_middle_of_an_upload() {
                super::dep_04_a_command_ends_in_the_middle_of_an_upload(Kind::$kind).await;
            }
        }
    )+};
}

every_balancer!(
    nginx: Nginx,
    haproxy: Haproxy,
    haproxy_http: HaproxyHttp,
);
