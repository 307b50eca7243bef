//! Commands whose supervisor is lost before they begin: not started, not an exit, and not tried again.

use tidegate_e2e::command::Running;
use tidegate_e2e::raw::{self, Client, Supervisor};
use tidegate_e2e::{Options, Topology, World, every_topology};
use tidegate_testkit::outcome::Outcome;
use tidegate_testkit::raw_h2::Received;
use tidegate_testkit::wait::within;
use tonic::Code;

use crate::legacy::refusal;
use crate::{ENDED, MOMENT, NONE_YET, cli, ran};

every_topology! {
    ex_36_a_supervisor_killed_before_the_start_is_no_exit,
    ex_36_a_supervisor_that_never_says_started_is_no_exit,
}

fn options() -> Options {
    Options::new()
        .commands()
        .expect_warning(ENDED)
        .expect_warning(NONE_YET)
}

#[track_caller]
fn is_loss(outcome: &Outcome) {
    let told = (outcome.code, &*outcome.reason);
    assert_eq!(told, (Code::Unavailable, "SUPERVISOR_LOST"), "{outcome:?}");
    let exit_code = |(name, _): &(String, String)| name == "exit_code";
    assert!(!outcome.facts.iter().any(exit_code), "{outcome:?}");
}

/// It stands still when it is asked for a command, and dies without having looked at it.
async fn ex_36_a_supervisor_killed_before_the_start_is_no_exit(topology: Topology) {
    let mut world = World::start(topology, options()).await;
    let directory = tempfile::tempdir().unwrap();
    let effect = directory.path().join("effect");
    let touch = format!("touch {}", effect.display());
    let client = Client::connect(&world).await;
    world.supervisor().process().stop();
    let running = Running::start(cli(&world, &[], &["sh", "-c", &touch]));
    let dying = async {
        let gateway = world.gateway();
        let both = gateway.until_metric("tidegate_pending_relays", 2.0, MOMENT);
        both.await;
        world.supervisor().process().kill();
    };
    let (outcome, ()) = tokio::join!(refusal(&client, &touch), dying);
    is_loss(&outcome);
    let finished = running.finish(MOMENT).await;
    assert_eq!(finished.code(), Some(125), "{finished:?}");
    assert_eq!(finished.stdout, b"");
    let said = &finished.stderr;
    assert!(said.contains("SUPERVISOR_LOST"), "{said}");
    // Nor does the next one find anything to do.
    world.kill_supervisor().await;
    world.start_supervisor().await;
    assert_eq!(ran(&world, &[], &["true"]).await.code(), Some(0));
    assert!(!effect.exists());
    drop(client);
    world.rebase().await;
    world.settle().await;
}

/// It has been given the command and dies before it says that it runs.
async fn ex_36_a_supervisor_that_never_says_started_is_no_exit(topology: Topology) {
    let world = World::start(topology, options().no_supervisor()).await;
    let capabilities = [&raw::SESSION[..], &["exec-relay-v1", "exec-result-v1"]].concat();
    let mut supervisor = Supervisor::connect(&world, &capabilities).await;
    let client = Client::connect(&world).await;
    let dying = async {
        let open = supervisor.asked().await;
        supervisor.succeed(&open).await;
        let mut relay = supervisor.claim(&open).await;
        let inbox = relay.opened().await.unwrap();
        let start = within(MOMENT, "the start", inbox.next()).await;
        assert!(matches!(start, Received::Message(_)), "{start:?}");
        drop((relay, supervisor));
    };
    // At once: who tried again would wait for another supervisor until the test has lost patience.
    let (outcome, ()) = tokio::join!(refusal(&client, "true"), dying);
    is_loss(&outcome);
    drop(client);
    world.settle().await;
}
