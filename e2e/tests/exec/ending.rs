//! Making a command end: nothing is left of it, whatever it has started.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use tidegate_client::Reason;
use tidegate_client::exec::Outcome;
use tidegate_e2e::command::Running;
use tidegate_e2e::{Options, Topology, World, every_topology, sized};
use tidegate_testkit::fault_proxy::Ending;
use tidegate_testkit::probe::descendants;
use tidegate_testkit::process::Process;
use tidegate_testkit::wait::{self, within};

use crate::{GONE, MOMENT, argv, cli, long_sleep, run, script, start, until_sleepers};

every_topology! {
    ex_13_whoever_disconnects_leaves_nothing,
    ex_15_leaving_the_group_is_no_way_out,
    ex_34_nobody_becomes_a_zombie,
    a_cancelled_command_does_not_hold_up_the_next,
    a_command_that_takes_its_grace_holds_up_nobody,
    an_operator_ends_a_command,
    a_stopping_supervisor_ends_commands,
    cli_06_ctrl_c_interrupts_and_then_ends,
}

/// With cgroups where this machine has them, and with reapers.
const SCOPES: [&str; 2] = ["auto", "reaper"];

async fn ex_13_whoever_disconnects_leaves_nothing(topology: Topology) {
    for scope in SCOPES {
        let options = Options::new()
            .commands()
            .client_proxy()
            .supervisor("exec_scope", scope);
        let mut world = World::start(topology, options).await;
        let (first, second) = (long_sleep(), long_sleep());
        let both = format!("sleep {first} & sleep {second}");
        let running = Running::start(cli(&world, &[], &["sh", "-c", &both]));
        until_sleepers(&first, 1, MOMENT).await;
        running.signal(Signal::KILL);
        until_sleepers(&first, 0, GONE).await;
        until_sleepers(&second, 0, GONE).await;
        running.finish(MOMENT).await;

        for cut in [true, false] {
            let client = world.client();
            let mut exec = start(&client, script(&both)).await;
            until_sleepers(&first, 1, MOMENT).await;
            until_sleepers(&second, 1, MOMENT).await;
            if cut {
                world.client_proxy().end_all(Ending::Reset);
            } else {
                exec.cancel();
            }
            within(MOMENT, "the end", exec.events().wait()).await;
            until_sleepers(&first, 0, GONE).await;
            until_sleepers(&second, 0, GONE).await;
        }
        until_no_zombies(&world).await;
        world.rebase().await;
        world.settle().await;
    }
}

/// Whoever has just died is reaped a moment later.
async fn until_no_zombies(world: &World) {
    let gone = wait::until_async(MOMENT, async || zombies(world) == 0);
    assert!(gone.await.is_ok(), "{} zombies", zombies(world));
}

async fn ex_15_leaving_the_group_is_no_way_out(topology: Topology) {
    for scope in SCOPES {
        let world = World::start(
            topology,
            Options::new().commands().supervisor("exec_scope", scope),
        )
        .await;
        let client = world.client();
        for round in 0..sized(5, 100) {
            let (away, stays) = (long_sleep(), long_sleep());
            let daemon = format!(
                "setsid sleep {away} & (trap '' HUP; setsid sh -c 'sleep {away}; :' &) ; sleep {stays}"
            );
            let mut command = script(&daemon);
            // Those that left the group end when its grace is over.
            command.kill_grace = (round > 0).then_some(Duration::from_millis(100));
            let mut exec = start(&client, command).await;
            until_sleepers(&away, 2, MOMENT).await;
            until_sleepers(&stays, 1, MOMENT).await;
            exec.cancel();
            let outcome = within(MOMENT, "the end", exec.events().wait()).await;
            assert_eq!(outcome, Outcome::CancelledHere, "{round}");
            until_sleepers(&away, 0, GONE).await;
            until_sleepers(&stays, 0, GONE).await;
        }
        drop(client);
        world.settle().await;
    }
}

async fn ex_34_nobody_becomes_a_zombie(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let client = world.client();
    for round in 0..sized(40, 200) {
        let mut exec = start(&client, argv(&["sleep", "0.05"])).await;
        if round % 2 == 0 {
            exec.cancel();
        }
        within(MOMENT, "the end", exec.wait()).await;
    }
    let supervisor = world.supervisor();
    supervisor.until_metric("tidegate_execs", 0.0, MOMENT).await;
    until_no_zombies(&world).await;
    drop(client);
    world.settle().await;
}

/// Processes under the supervisor that have ended and that nobody has waited for.
fn zombies(world: &World) -> usize {
    let is_zombie = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
        state.is_some_and(|rest| rest.starts_with('Z'))
    };
    let under = descendants(world.supervisor().process().id());
    under.iter().filter(|pid| is_zombie(pid)).count()
}

async fn a_cancelled_command_does_not_hold_up_the_next(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let client = world.client();
    let time = long_sleep();
    for _ in 0..100 {
        let mut exec = start(&client, argv(&["sleep", &time])).await;
        exec.cancel();
        let mut next = start(&client, argv(&["true"])).await;
        within(MOMENT, "the next command", next.started())
            .await
            .unwrap();
        let outcome = within(MOMENT, "the end", exec.wait()).await;
        assert_eq!(outcome, Outcome::CancelledHere);
    }
    until_sleepers(&time, 0, GONE).await;
    drop(client);
    world.settle().await;
}

/// The next command comes and goes while the first, which ignores TERM, still has its grace.
async fn a_command_that_takes_its_grace_holds_up_nobody(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let client = world.client();
    let time = long_sleep();
    let mut deaf = script(&format!("trap '' TERM; sleep {time} & wait"));
    deaf.kill_grace = Some(Duration::from_secs(4));
    let exec = start(&client, deaf).await;
    until_sleepers(&time, 1, MOMENT).await;
    exec.cancel();
    assert!(run(&client, argv(&["true"])).await.outcome.is_success());
    assert_eq!(crate::sleepers(&time), 1, "its grace is not over");
    until_sleepers(&time, 0, MOMENT).await;
    drop((exec, client));
    world.settle().await;
}

async fn an_operator_ends_a_command(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let client = world.client();
    let time = long_sleep();
    let mut exec = start(&client, argv(&["sleep", &time])).await;
    let stream = exec.started().await.unwrap().stream.clone().unwrap();
    let mut close = tidegate_e2e::command::tidegate(&world.access());
    close.args(["streams", "close", stream.as_str()]);
    let closed = Running::start(close).finish(MOMENT).await;
    assert_eq!(closed.code(), Some(0), "{closed:?}");
    let outcome = within(MOMENT, "the exit", exec.events().wait()).await;
    let Outcome::CancelledRemotely(exit) = &outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(exit.code, 128 + 15);
    until_sleepers(&time, 0, GONE).await;
    drop((exec, client));
    world.settle().await;
}

async fn a_stopping_supervisor_ends_commands(topology: Topology) {
    let options = Options::new()
        .commands()
        .supervisor("stop_grace", "1s")
        .expect_warning(crate::NONE_YET);
    let mut world = World::start(topology, options).await;
    let client = world.client();
    let (time, left) = (long_sleep(), long_sleep());
    let mut exec = start(&client, script(&format!("sleep {left} & sleep {time}"))).await;
    until_sleepers(&time, 1, MOMENT).await;
    let supervisor = world.take_supervisor();
    supervisor.process().terminate();
    let outcome = within(MOMENT, "the end", exec.events().wait()).await;
    match &outcome {
        Outcome::CancelledRemotely(_) => {}
        Outcome::Lost(end) => assert_eq!(end.reason, Reason::SupervisorStopped, "{end}"),
        other => panic!("{other:?}"),
    }
    until_sleepers(&time, 0, GONE).await;
    until_sleepers(&left, 0, GONE).await;
    let status = supervisor.process().exit(MOMENT).await;
    assert!(status.success(), "{status}: {}", supervisor.process());
    drop((exec, client, supervisor));
    world.start_supervisor().await;
    world.rebase().await;
    world.settle().await;
}

async fn cli_06_ctrl_c_interrupts_and_then_ends(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let time = long_sleep();
    let running = Running::start(cli(&world, &[], &["sleep", &time]));
    until_sleepers(&time, 1, MOMENT).await;
    running.signal(Signal::INT);
    let finished = running.finish(GONE).await;
    assert_eq!(finished.code(), Some(130), "{finished:?}");
    until_sleepers(&time, 0, GONE).await;

    // Once it is known to run, the first is the command's own affair.
    let deaf = format!("trap '' INT; echo ready; sleep {time}");
    let running = Process::spawn(cli(&world, &[], &["sh", "-c", &deaf])).unwrap();
    running.line("ready").await;
    until_sleepers(&time, 1, MOMENT).await;
    running.interrupt();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(crate::sleepers(&time), 1);
    running.interrupt();
    let status = running.exit(GONE).await;
    assert_eq!(status.code(), Some(130), "{running}");
    until_sleepers(&time, 0, GONE).await;
    // What it does about an interrupt is its own affair.
    let handler = "trap 'echo bye; exit 5' INT; echo ready; while :; do sleep 0.05; done";
    let client = world.client();
    let mut exec = start(&client, script(handler)).await;
    let ready = within(MOMENT, "a word", exec.events().next())
        .await
        .unwrap();
    assert_eq!(&ready.data[..], b"ready\n");
    exec.input().signal(2);
    let collected = within(MOMENT, "the end", exec.events().collect(64)).await;
    assert_eq!(collected.stdout.data, b"bye\n");
    assert!(matches!(&collected.outcome, Outcome::Exited(exit) if exit.code == 5));
    drop(exec);
    assert!(run(&client, argv(&["true"])).await.outcome.is_success());
    drop(client);
    world.settle().await;
}
