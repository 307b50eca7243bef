//! What a caller learns of how a command ended, or why it did not begin.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::Value;
use tidegate_client::exec::{ExitReason, Outcome};
use tidegate_client::{Origin, Reason};
use tidegate_e2e::{Options, Topology, World, every_topology, sized};

use crate::{
    GONE, MOMENT, argv, fed, long_sleep, ran, refused, run, script, sleepers, start, until_sleepers,
};

every_topology! {
    ex_08_a_command_that_reads_nothing_keeps_its_code,
    ex_14_what_ignores_term_is_killed,
    ex_16_a_signal_is_told_as_one,
    ex_31_a_timeout_ends_the_command,
    ex_36_not_started_is_no_exit_code,
    ex_37_no_shell_reads_the_arguments,
    json_says_everything_at_once,
    only_what_is_configured_is_inherited,
    a_limit_on_commands_is_named,
}

async fn ex_08_a_command_that_reads_nothing_keeps_its_code(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    for round in 0..sized(20, 200) {
        let finished = fed(&world, vec![b'x'; 1 << 20], &["sh", "-c", "exit 3"]).await;
        assert_eq!(finished.code(), Some(3), "{round}: {finished:?}");
        assert_eq!(finished.stderr, "");
    }
    world.settle().await;
}

async fn ex_14_what_ignores_term_is_killed(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let time = long_sleep();
    let stubborn = format!("trap '' TERM; sleep {time} & wait");
    let flags = ["--timeout", "1s", "--kill-grace", "1s"];
    let finished = ran(&world, &flags, &["sh", "-c", &stubborn]).await;
    assert_eq!(finished.code(), Some(124), "{finished:?}");
    // Its time, and then its grace; what it waits for takes minutes.
    assert!(finished.elapsed >= Duration::from_secs(2), "{finished:?}");
    assert_eq!(sleepers(&time), 0);

    let client = world.client();
    let mut command = script(&stubborn);
    command.timeout = Some(Duration::from_secs(1));
    command.kill_grace = Some(Duration::from_secs(1));
    let collected = run(&client, command).await;
    let Outcome::TimedOut(exit) = &collected.outcome else {
        panic!("{:?}", collected.outcome);
    };
    assert_eq!((exit.code, exit.leftover), (124, 0));
    drop(client);
    world.settle().await;
}

async fn ex_16_a_signal_is_told_as_one(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let client = world.client();
    for (name, number) in [("KILL", 9), ("TERM", 15), ("SEGV", 11)] {
        let killed = format!("kill -{name} $$");
        let finished = ran(&world, &[], &["sh", "-c", &killed]).await;
        assert_eq!(finished.code(), Some(128 + number), "{name}: {finished:?}");
        let collected = run(&client, script(&killed)).await;
        let Outcome::Signaled(exit) = &collected.outcome else {
            panic!("{name}: {:?}", collected.outcome);
        };
        assert_eq!((exit.signal, exit.code), (Some(number), 128 + number));
        assert_eq!(exit.reason, ExitReason::Signaled);
    }
    drop(client);
    world.settle().await;
}

async fn ex_31_a_timeout_ends_the_command(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let time = long_sleep();
    let begun = Instant::now();
    let finished = ran(&world, &["--timeout", "2s"], &["sleep", &time]).await;
    assert_eq!(finished.code(), Some(124), "{finished:?}");
    assert!(begun.elapsed() >= Duration::from_secs(2), "{finished:?}");
    assert_eq!(sleepers(&time), 0);
    assert!(finished.stderr.contains("2s"), "{}", finished.stderr);
    world.settle().await;
}

async fn ex_36_not_started_is_no_exit_code(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let client = world.client();
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let plain = file("plain", "#!/bin/sh\n", 0o644);
    let orphan = file("orphan", "#!/no/such/interpreter\n", 0o755);
    let honest = file("honest", "#!/bin/sh\nexit 127\n", 0o755);

    for (program, reason, code) in [
        ("no-such-program", Reason::ExecNotFound, 127),
        ("/no/such/program", Reason::ExecNotFound, 127),
        (plain.as_str(), Reason::ExecNotExecutable, 126),
        (orphan.as_str(), Reason::ExecNotExecutable, 126),
        ("/", Reason::ExecNotExecutable, 126),
    ] {
        let end = refused(&client, argv(&[program])).await;
        assert_eq!((end.reason, end.origin), (reason, Origin::Supervisor));
        assert_eq!(end.exit_code, None);
        let finished = ran(&world, &[], &[program]).await;
        assert_eq!(finished.code(), Some(code), "{finished:?}");
        assert!(finished.stderr.contains(program), "{}", finished.stderr);
        assert_eq!(finished.stdout, b"");
    }
    let finished = ran(&world, &[], &[&honest]).await;
    assert_eq!((finished.code(), &*finished.stderr), (Some(127), ""));
    let collected = run(&client, argv(&[&honest])).await;
    assert!(matches!(&collected.outcome, Outcome::Exited(exit) if exit.code == 127));

    let mut command = argv(&["true"]);
    command.workdir = Some("/no/such/place".to_owned());
    let end = refused(&client, command).await;
    assert_eq!(end.reason, Reason::ExecBadWorkdir);
    let finished = ran(&world, &["-w", "/no/such/place"], &["true"]).await;
    assert_eq!(finished.code(), Some(125), "{finished:?}");
    drop(client);
    world.settle().await;
}

async fn ex_37_no_shell_reads_the_arguments(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let finished = ran(&world, &[], &["printf", "%s", "$(id); *"]).await;
    assert_eq!((finished.code(), &*finished.text()), (Some(0), "$(id); *"));
    let finished = ran(&world, &[], &["printf", "%s|", "", " ", "a\nb", "é"]).await;
    assert_eq!(finished.text(), "| |a\nb|é|");
    world.settle().await;
}

async fn json_says_everything_at_once(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let flags = ["--output", "json", "--stdout-limit", "4"];
    let wordy = "printf 'four and more'; printf '\\377' >&2; exit 7";
    let finished = ran(&world, &flags, &["sh", "-c", wordy]).await;
    assert_eq!(finished.code(), Some(7), "{finished:?}");
    let said: Value = serde_json::from_slice(&finished.stdout).unwrap();
    assert_eq!(said["stdout"], "four");
    assert_eq!(
        (&said["stderr"], &said["stderrEncoding"]),
        (&"/w==".into(), &"base64".into())
    );
    assert_eq!(said["exitCode"], 7);
    assert_eq!(said["reason"], "PROCESS_EXITED");
    assert_eq!(said["truncated"]["stdout"]["total"], 13);
    assert_eq!(said["truncated"]["stdout"]["sent"], 4);
    let finished = ran(&world, &["--output", "json"], &["sh", "-c", "kill -9 $$"]).await;
    let said: Value = serde_json::from_slice(&finished.stdout).unwrap();
    assert_eq!(
        (&said["signal"], &said["exitCode"]),
        (&9.into(), &137.into())
    );
    assert_eq!(said["truncated"], Value::Null);
    world.settle().await;
}

async fn only_what_is_configured_is_inherited(topology: Topology) {
    let options = Options::new().commands().supervisor(
        "base_environment",
        toml::Value::from(vec!["PATH", "GIVEN=by the supervisor"]),
    );
    let world = World::start(topology, options).await;
    let finished = ran(&world, &["-e", "ADDED=a=b"], &["env"]).await;
    let text = finished.text();
    let mut lines: Vec<_> = text.lines().filter(|it| !it.starts_with("PATH=")).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["ADDED=a=b", "GIVEN=by the supervisor"]);
    world.settle().await;
}

async fn a_limit_on_commands_is_named(topology: Topology) {
    let options = Options::new()
        .commands()
        .gateway("max_execs_per_sandbox", 2)
        .supervisor("exec_limit", 1);
    let world = World::start(topology, options).await;
    let client = world.client();
    let time = long_sleep();
    let first = start(&client, argv(&["sleep", &time])).await;
    let end = refused(&client, argv(&["true"])).await;
    assert_eq!(
        (end.reason, end.origin),
        (Reason::LimitExecs, Origin::Supervisor)
    );
    assert!(end.message.contains("exec_limit"), "{end}");
    drop(first);
    until_sleepers(&time, 0, GONE).await;
    let begun = Instant::now();
    while run(&client, argv(&["true"])).await.outcome.end().is_some() {
        assert!(begun.elapsed() < MOMENT, "the limit stays used up");
    }
    drop(client);
    world.settle().await;
}
