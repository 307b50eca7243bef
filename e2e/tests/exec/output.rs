//! What a command writes: all of it, in order, at its reader's pace, or a word about the rest.

use std::time::{Duration, Instant};

use tidegate_client::exec::{Collected, Output};
use tidegate_e2e::{Options, Topology, World, every_topology, sized};
use tidegate_testkit::content::{Content, Digest};
use tidegate_testkit::probe::resident_memory;
use tidegate_testkit::wait::{self, GENEROUS, within};

use crate::{
    GONE, MOMENT, argv, fed, long_sleep, ran, run, script, sleepers, start, until_sleepers,
};

every_topology! {
    ex_01_a_slow_reader_gets_every_line,
    ex_03_a_late_reader_slows_the_command,
    ex_10_a_background_process_does_not_hold_the_call,
    ex_12_a_background_process_lives_on,
    ex_12_unless_it_is_not_wanted,
    ex_27_bytes_are_bytes,
    ex_29_silence_is_valid,
    a_cut_is_told_with_its_counts,
    a_burst_of_stderr_comes_once,
    both_outputs_are_ordered,
    white_space_is_kept,
    a_reader_that_leaves_stops_the_writer,
}

/// A rate of reading.
const SLOW: f64 = 4_000_000.0;

async fn ex_01_a_slow_reader_gets_every_line(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let client = world.client();
    let lines = sized(300_000, 2_000_000);
    for _ in 0..sized(3, 20) {
        let mut exec = start(&client, argv(&["seq", "1", &lines.to_string()])).await;
        exec.input().close();
        let (begun, mut bytes, mut last) = (Instant::now(), 0, Vec::new());
        while let Some(chunk) = within(MOMENT, "output", exec.events().next()).await {
            bytes += chunk.data.len();
            last.extend_from_slice(&chunk.data);
            last.drain(..last.len().saturating_sub(16));
            let due = Duration::from_secs_f64(bytes as f64 / SLOW);
            tokio::time::sleep(due.saturating_sub(begun.elapsed())).await;
        }
        let outcome = exec.wait().await;
        assert!(outcome.is_success(), "{outcome}");
        let wanted: usize = (1..=lines).map(|line| line.to_string().len() + 1).sum();
        assert_eq!(bytes, wanted);
        assert!(last.ends_with(format!("\n{lines}\n").as_bytes()));
        assert_eq!(outcome.exit().unwrap().stdout.total, wanted as u64);
    }
    drop(client);
    world.settle().await;
}

async fn ex_03_a_late_reader_slows_the_command(topology: Topology) {
    const BYTES: usize = 8 << 20;
    let world = World::start(topology, Options::new().commands()).await;
    let client = world.client();
    // Once, so that what grows only once has grown.
    run(&client, argv(&["head", "-c", "8388608", "/dev/zero"])).await;
    let daemons = [world.gateway(), world.supervisor()];
    let memory = || daemons.map(|it| resident_memory(it.process().id()).unwrap());
    let before = memory();
    let mut exec = start(
        &client,
        argv(&["head", "-c", &BYTES.to_string(), "/dev/zero"]),
    )
    .await;
    exec.input().close();
    tokio::time::sleep(sized(Duration::from_millis(500), Duration::from_secs(2))).await;
    let held = memory();
    let mut bytes = 0;
    while let Some(chunk) = within(MOMENT, "output", exec.events().next()).await {
        assert!(chunk.data.iter().all(|byte| *byte == 0));
        bytes += chunk.data.len();
        tokio::time::sleep(sized(Duration::from_millis(4), Duration::from_millis(20))).await;
    }
    assert_eq!(bytes, BYTES);
    assert!(exec.wait().await.is_success());
    for (before, held) in before.iter().zip(held) {
        let grown = held.saturating_sub(*before);
        assert!(grown < 4 << 20, "{grown} bytes more are held");
    }
    drop((exec, client));
    world.settle().await;
}

async fn ex_10_a_background_process_does_not_hold_the_call(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let time = long_sleep();
    let serving = format!("sleep {time} & echo STARTED");
    let finished = ran(&world, &[], &["sh", "-c", &serving]).await;
    assert_eq!((finished.code(), &*finished.text()), (Some(0), "STARTED\n"));
    assert!(finished.elapsed < GONE, "{finished:?}");
    assert_eq!(sleepers(&time), 1);
    let client = world.client();
    let collected = run(&client, script(&format!("sleep {time} & echo STARTED"))).await;
    let exit = collected.outcome.exit().unwrap();
    assert!(exit.stdout.held_open && exit.stderr.held_open);
    assert!(!exit.stdout.truncated);
    ran(&world, &[], &["pkill", "-f", &format!("^sleep {time}$")]).await;
    until_sleepers(&time, 0, MOMENT).await;
    drop(client);
    world.settle().await;
}

/// What is left behind may write on: nobody reads it, and it does not die of that.
async fn ex_12_a_background_process_lives_on(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    for _ in 0..sized(3, 50) {
        let directory = tempfile::tempdir().unwrap();
        let alive = directory.path().join("alive");
        let late = format!("(sleep 1; echo late; touch {}) & echo now", alive.display());
        let finished = ran(&world, &[], &["sh", "-c", &late]).await;
        assert_eq!((finished.code(), &*finished.text()), (Some(0), "now\n"));
        let seen = wait::until_async(MOMENT, async || alive.exists());
        assert!(seen.await.is_ok(), "it died");
    }
    world.settle().await;
}

async fn ex_12_unless_it_is_not_wanted(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    for _ in 0..sized(5, 50) {
        let time = long_sleep();
        let left = format!("(sleep {time}; echo late) & setsid sleep {time} & sleep 0.2; echo now");
        let finished = ran(&world, &["--kill-background"], &["sh", "-c", &left]).await;
        assert_eq!((finished.code(), &*finished.text()), (Some(0), "now\n"));
        until_sleepers(&time, 0, GONE).await;
    }
    world.settle().await;
}

async fn ex_27_bytes_are_bytes(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let content = Content::new(sized(16 << 20, 100 << 20), 27);
    let mut awkward = b"\0\xff\xfe\r\n\x04\x1b[0m\xe2\x82".to_vec();
    awkward.extend(content.to_vec());
    let wanted = Digest::of(&awkward);
    let finished = fed(&world, awkward, &["cat"]).await;
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    assert_eq!(Digest::of(&finished.stdout), wanted);
    world.settle().await;
}

async fn ex_29_silence_is_valid(topology: Topology) {
    // A minute of silence is six seconds, and ten intervals.
    let options = Options::new()
        .commands()
        .gateway("heartbeat_interval", "600ms")
        .gateway("ping_interval", "600ms");
    let world = World::start(topology, options).await;
    let finished = ran(&world, &[], &["sh", "-c", "sleep 6; echo end"]).await;
    assert_eq!((finished.code(), &*finished.text()), (Some(0), "end\n"));
    world.settle().await;
}

/// What arrived of an output, what it says of itself.
fn counts(collected: &Collected, output: Output) -> (usize, u64, u64, bool) {
    let summary = collected.outcome.exit().unwrap().summary(output);
    let here = collected.output(output).data.len();
    (here, summary.sent, summary.total, summary.truncated)
}

async fn a_cut_is_told_with_its_counts(topology: Topology) {
    const LIMIT: u64 = 1 << 20;
    const WRITTEN: u64 = 11_000_000;
    let world = World::start(topology, Options::new().commands()).await;
    let client = world.client();
    for round in 0..sized(3, 100) {
        let mut command = script(&format!("head -c {WRITTEN} /dev/zero; echo whole >&2"));
        command.stdout_limit = Some(LIMIT);
        command.stderr_limit = Some(6);
        let collected = run(&client, command).await;
        assert!(
            collected.outcome.is_success(),
            "{round}: {}",
            collected.outcome
        );
        assert_eq!(
            counts(&collected, Output::Stdout),
            (LIMIT as usize, LIMIT, WRITTEN, true)
        );
        assert_eq!(counts(&collected, Output::Stderr), (6, 6, 6, false));
        let begun = Instant::now();
        assert!(run(&client, argv(&["true"])).await.outcome.is_success());
        assert!(begun.elapsed() < GONE);
    }
    // In the middle of a character.
    let mut command = script("printf 'ab\\342\\202\\254cd'");
    command.stdout_limit = Some(4);
    let collected = run(&client, command).await;
    assert_eq!(collected.stdout.data, b"ab");
    assert_eq!(counts(&collected, Output::Stdout), (2, 2, 7, true));
    let finished = ran(&world, &["--stdout-limit", "3"], &["echo", "longer"]).await;
    assert_eq!((finished.code(), &*finished.text()), (Some(0), "lon"));
    let said = &finished.stderr;
    assert!(
        said.contains("stdout is cut") && said.contains("--stdout-limit"),
        "{said}"
    );
    drop(client);
    world.settle().await;
}

async fn a_burst_of_stderr_comes_once(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let client = world.client();
    let content = Content::new(256 << 10, 5);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), content.to_vec()).unwrap();
    let burst = format!("cat {} >&2", file.path().display());
    let collected = run(&client, script(&burst)).await;
    assert_eq!(Digest::of(&collected.stderr.data), content.sha256());
    assert_eq!(counts(&collected, Output::Stdout), (0, 0, 0, false));
    for daemon in [world.gateway(), world.supervisor()] {
        daemon
            .until_metric("tidegate_buffered_bytes", 0.0, GONE)
            .await;
    }
    drop(client);
    world.settle().await;
}

async fn both_outputs_are_ordered(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let client = world.client();
    let mut exec = start(
        &client,
        script("for i in $(seq 200); do echo o$i; echo e$i >&2; done"),
    )
    .await;
    exec.input().close();
    let (mut order, mut sequences) = (0, [0, 0]);
    let mut texts = [String::new(), String::new()];
    while let Some(chunk) = within(MOMENT, "output", exec.events().next()).await {
        assert_eq!(chunk.order, order + 1);
        order = chunk.order;
        let index = usize::from(chunk.output == Output::Stderr);
        assert_eq!(chunk.sequence, sequences[index] + 1);
        sequences[index] = chunk.sequence;
        texts[index].push_str(std::str::from_utf8(&chunk.data).unwrap());
    }
    for (text, letter) in texts.iter().zip(['o', 'e']) {
        let wanted: String = (1..=200).map(|line| format!("{letter}{line}\n")).collect();
        assert_eq!(*text, wanted);
    }
    assert!(exec.wait().await.is_success());
    drop((exec, client));
    world.settle().await;
}

async fn white_space_is_kept(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    for text in [
        "",
        " ",
        "\n",
        "\n\n",
        "\r\n\t ",
        "no end of line",
        "\u{feff} ",
    ] {
        let finished = ran(&world, &[], &["printf", "%s", text]).await;
        assert_eq!(finished.stdout, text.as_bytes());
        assert_eq!((finished.code(), &*finished.stderr), (Some(0), ""));
    }
    world.settle().await;
}

async fn a_reader_that_leaves_stops_the_writer(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let mut yes = crate::cli(&world, &[], &["yes"]);
    yes.stdout(std::process::Stdio::piped());
    let mut yes = yes.spawn().unwrap();
    drop(yes.stdout.take());
    let mut code = None;
    let ended = wait::until_async(GENEROUS, async || {
        code = yes.try_wait().unwrap().map(|status| status.code());
        code.is_some()
    });
    ended.await.unwrap();
    assert_eq!(code, Some(Some(141)));
    world
        .supervisor()
        .until_metric("tidegate_execs", 0.0, GONE)
        .await;
    world.settle().await;
}
