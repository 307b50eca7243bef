//! What commands are told and what they say is in no log, and the logs say how they ended.

use tidegate_client::exec::Outcome;
use tidegate_e2e::journal::assert_silent_about;
use tidegate_e2e::{Options, Topology, World, every_topology};
use tidegate_testkit::wait;

use crate::{GONE, MOMENT, cut_in_half, script, start};

every_topology!(ex_32_the_log_tells_of_a_cancel_and_of_nothing_secret);

const STDIN: &str = "stdin-that-nobody-may-log\n";
const STDOUT: &str = "stdout-that-nobody-may-log";
const STDERR: &str = "stderr-that-nobody-may-log";
const SECRET: &str = "variable-that-nobody-may-log";
const WORD: &str = "argument-that-nobody-may-log";

/// Settling fails on any warning; the rest of the log is looked at here.
async fn ex_32_the_log_tells_of_a_cancel_and_of_nothing_secret(topology: Topology) {
    let options = Options::new().commands().client_proxy().log_everything();
    let mut world = World::start(topology, options).await;
    for lost in [false, true] {
        let before = ended(&world).len();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("f");
        // What it writes is not in its arguments as it is written.
        let committing = format!(
            "printf %s-that-nobody-may-log stdout; printf %s-that-nobody-may-log stderr >&2; \
             cat > {}; touch {}; : {WORD}",
            file.display(),
            directory.path().join("done").display(),
        );
        let client = world.client();
        let mut command = script(&committing);
        let secret = ("PASSWORD".to_owned(), SECRET.to_owned());
        command.environment.extend([secret]);
        let mut exec = start(&client, command).await;
        let half = STDIN.repeat(20_000);
        let outcome = cut_in_half(&world, &mut exec, half, &file, lost).await;
        assert_eq!(matches!(outcome, Outcome::Lost(_)), lost, "{outcome:?}");
        let supervisor = world.supervisor();
        supervisor.until_metric("tidegate_execs", 0.0, GONE).await;
        assert!(!directory.path().join("done").exists());

        let told = wait::until_async(MOMENT, async || ended(&world).len() > before);
        told.await.unwrap();
        let told = &ended(&world)[before..];
        let wanted = if lost {
            "TRANSPORT_LOST"
        } else {
            "CLIENT_CANCELLED"
        };
        assert!(matches!(told, [line] if line.contains(wanted)), "{told:#?}");
        drop((exec, client));
    }
    for daemon in [world.gateway(), world.supervisor()] {
        let secrets = [STDIN, STDOUT, STDERR, SECRET, WORD];
        assert_silent_about(daemon.process(), &secrets);
    }
    world.rebase().await;
    world.settle().await;
}

/// What the gateway's log says of streams that have ended.
fn ended(world: &World) -> Vec<String> {
    let lines = world.gateway().process().stderr().lines();
    let ended = lines.iter().filter(|line| line.contains("a stream ended"));
    ended.map(|line| line.to_string()).collect()
}
