//! What goes to a command, and what its end means.

use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use tidegate_client::exec::Outcome;
use tidegate_e2e::command::Running;
use tidegate_e2e::{Options, Topology, World, every_topology, sized};
use tidegate_testkit::content::{Content, Digest};
use tidegate_testkit::process::Terminal;
use tidegate_testkit::wait::{GENEROUS, within};

use crate::{GONE, MOMENT, argv, cli, cut_in_half, fed, ran, run, script, start};

every_topology! {
    ex_04_the_end_of_stdin_arrives,
    ex_05_the_end_of_stdin_ends_nothing_else,
    ex_07_nobody_waits_for_the_other_pipe,
    ex_09_a_command_that_has_ended_waits_for_no_stdin,
    ex_32_going_away_is_not_the_end_of_stdin,
    a_conversation_goes_on,
    a_tar_goes_in,
    cli_11_a_terminal_is_read_only_if_it_is_wanted,
}

async fn ex_04_the_end_of_stdin_arrives(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let finished = fed(&world, "hello\n", &["cat"]).await;
    assert_eq!((finished.code(), &*finished.text()), (Some(0), "hello\n"));
    assert!(finished.elapsed < GONE, "{finished:?}");
    let finished = fed(&world, "", &["cat"]).await;
    assert_eq!((finished.code(), &*finished.text()), (Some(0), ""));
    world.settle().await;
}

async fn ex_05_the_end_of_stdin_ends_nothing_else(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let slow = format!("cat; sleep {}; echo done", sized(1, 4));
    let finished = fed(&world, "hi\n", &["sh", "-c", &slow]).await;
    assert_eq!(
        (finished.code(), &*finished.text()),
        (Some(0), "hi\ndone\n")
    );
    assert!(
        finished.elapsed >= Duration::from_secs(sized(1, 4)),
        "{finished:?}"
    );
    world.settle().await;
}

async fn ex_07_nobody_waits_for_the_other_pipe(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let content = Content::new(sized(16 << 20, 64 << 20), 7);
    let finished = fed(&world, content.to_vec(), &["cat"]).await;
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    assert_eq!(Digest::of(&finished.stdout), content.sha256());

    let client = world.client();
    let mut exec = start(&client, script("cat >&2")).await;
    let (mut input, mut events) = {
        exec.input().write("").await.unwrap();
        exec.split()
    };
    let sending = async {
        for chunk in content.to_vec().chunks(1 << 16) {
            input.write(chunk.to_vec()).await.unwrap();
        }
        input.close();
    };
    let both = async { tokio::join!(sending, events.collect(crate::ALL)) };
    let ((), collected) = within(GENEROUS, "all of it", both).await;
    assert!(collected.outcome.is_success(), "{}", collected.outcome);
    assert_eq!(Digest::of(&collected.stderr.data), content.sha256());
    drop((client, input, events));
    world.settle().await;
}

async fn ex_09_a_command_that_has_ended_waits_for_no_stdin(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let mut command = cli(&world, &["-i"], &["true"]);
    command.stdin(Stdio::piped());
    let running = Running::start(command);
    let stdin = running.stdin();
    let finished = running.finish(GONE).await;
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    drop(stdin);
    // Through the SDK, which never ends its request.
    let client = world.client();
    let exec = start(&client, argv(&["true"])).await;
    let (input, mut events) = exec.split();
    let outcome = within(GONE, "the exit", events.wait()).await;
    assert!(outcome.is_success(), "{outcome}");
    for daemon in [world.gateway(), world.supervisor()] {
        daemon.until_metric("tidegate_streams", 0.0, GONE).await;
    }
    drop((input, events, client));
    world.settle().await;
}

async fn ex_32_going_away_is_not_the_end_of_stdin(topology: Topology) {
    let options = Options::new().commands().client_proxy();
    let mut world = World::start(topology, options).await;
    for lost in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let committing = format!(
            "cat > {}; touch {}",
            path("f").display(),
            path("done").display()
        );
        let client = world.client();
        let mut exec = start(&client, script(&committing)).await;
        let half = vec![b'x'; 1 << 19];
        let outcome = cut_in_half(&world, &mut exec, half, &path("f"), lost).await;
        match outcome {
            Outcome::Lost(_) if lost => {}
            Outcome::CancelledHere if !lost => {}
            other => panic!("lost: {lost}: {other:?}"),
        }
        for daemon in [world.gateway(), world.supervisor()] {
            daemon.until_metric("tidegate_streams", 0.0, GONE).await;
        }
        world
            .supervisor()
            .until_metric("tidegate_execs", 0.0, GONE)
            .await;
        assert!(!path("done").exists(), "lost: {lost}");
        drop((exec, client));
    }
    world.rebase().await;
    world.settle().await;
}

/// A server that is spoken to over its stdin, message by message.
async fn a_conversation_goes_on(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let client = world.client();
    let server = "while read -r line; do echo \"{\\\"echo\\\":$line}\"; done";
    let mut exec = start(&client, script(server)).await;
    for message in 0..sized(1_000, 10_000) {
        exec.input().write(format!("{message}\n")).await.unwrap();
        let wanted = format!("{{\"echo\":{message}}}\n");
        let mut said = Vec::new();
        while said.len() < wanted.len() {
            let chunk = within(MOMENT, "an answer", exec.events().next()).await;
            said.extend_from_slice(&chunk.unwrap().data);
        }
        assert_eq!(said, wanted.as_bytes());
    }
    let outcome = within(MOMENT, "the end", exec.wait()).await;
    assert!(
        matches!(&outcome, Outcome::Exited(exit) if exit.code <= 1),
        "{outcome}"
    );
    drop((exec, client));
    world.settle().await;
}

async fn a_tar_goes_in(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let content = Content::new(3 << 20, 3).to_vec();
    std::fs::write(from.path().join("file"), &content).unwrap();
    let tar = std::process::Command::new("tar")
        .arg("-C")
        .arg(from.path())
        .args(["-c", "."])
        .output()
        .unwrap();
    let mut command = cli(
        &world,
        &["-i", "-w", to.path().to_str().unwrap()],
        &["tar", "x"],
    );
    command.stdin(Stdio::piped());
    let finished = Running::fed(command, tar.stdout).finish(GENEROUS).await;
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert_eq!(std::fs::read(to.path().join("file")).unwrap(), content);
    world.settle().await;
}

async fn cli_11_a_terminal_is_read_only_if_it_is_wanted(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let (terminal, stdin) = Terminal::open().unwrap();
    let mut command = cli(&world, &[], &["cat"]);
    command.stdin(stdin);
    let finished = Running::start(command).finish(GONE).await;
    assert_eq!((finished.code(), &*finished.text()), (Some(0), ""));
    drop(terminal);
    let (mut terminal, stdin) = Terminal::open().unwrap();
    let mut command = cli(&world, &["-i"], &["cat"]);
    command.stdin(stdin);
    let running = Running::start(command);
    terminal.type_line("typed").unwrap();
    terminal.type_end().unwrap();
    let finished = running.finish(MOMENT).await;
    assert_eq!((finished.code(), &*finished.text()), (Some(0), "typed\n"));
    assert_eq!(ran(&world, &[], &["true"]).await.code(), Some(0));
    world.settle().await;
}

#[tokio::test]
async fn a_killed_upload_commits_nothing() {
    let world = World::start(Topology::PLAINTEXT, Options::new().commands()).await;
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let committing = format!("cat > {}; touch {}", path("f"), path("done"));
    let mut command = cli(&world, &["-i"], &["sh", "-c", &committing]);
    command.stdin(Stdio::piped());
    let running = Running::start(command);
    let mut stdin = running.stdin();
    stdin.write_all(&[b'x'; 1 << 16]).unwrap();
    let arrived = tidegate_testkit::wait::until_async(MOMENT, async || {
        std::fs::metadata(path("f")).is_ok_and(|it| it.len() == 1 << 16)
    });
    arrived.await.unwrap();
    running.signal(rustix::process::Signal::KILL);
    running.finish(MOMENT).await;
    world
        .supervisor()
        .until_metric("tidegate_execs", 0.0, GONE)
        .await;
    assert!(!directory.path().join("done").exists());
    let client = world.client();
    assert!(run(&client, argv(&["true"])).await.outcome.is_success());
    drop(client);
    world.settle().await;
}
