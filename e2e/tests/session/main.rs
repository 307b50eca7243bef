//! Sessions: how they live, how they are noticed to be dead, how they come back, and what becomes of
//! the streams they carry.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod busy;
mod causes;
mod coming_back;
mod liveness;
mod opening;
mod skew;
mod stdio;
mod stopping;

use std::net::SocketAddr;
use std::time::Duration;

use tidegate_client::{Client, Phase, SandboxName};
use tidegate_e2e::{Forward, SANDBOX};
use tidegate_testkit::wait;

/// How long what must happen soon may take here.
const MOMENT: Duration = Duration::from_secs(10);

/// What a supervisor warns of when its session has ended, and when there is none yet.
const ENDED: &str = "session ended, dialling again";
const NONE_YET: &str = "no session, trying again";

fn sandbox() -> SandboxName {
    SandboxName::parse(SANDBOX).unwrap()
}

/// Sends a word through a forward to an echo, and waits for its return.
async fn echoes(forward: &Forward) {
    let client = forward.connect().await;
    client.write(b"word").await.unwrap();
    assert_eq!(
        wait::within(MOMENT, "an echo", client.read(4)).await,
        b"word"
    );
}

/// Opens a stream to an echo, as a client of the SDK.
async fn opens(client: &Client, target: SocketAddr) {
    tidegate_e2e::world::open(client, target).await.unwrap();
}

async fn until_phase(client: &Client, wanted: impl Fn(Phase) -> bool, bound: Duration) {
    let mut seen = None;
    let reached = wait::until_async(bound, async || {
        seen = client
            .sandbox(&sandbox())
            .await
            .ok()
            .map(|sandbox| sandbox.phase);
        seen.is_some_and(&wanted)
    });
    assert!(
        reached.await.is_ok(),
        "the sandbox is {seen:?} after {bound:?}"
    );
}
