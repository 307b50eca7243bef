//! Programs for people, on a terminal that tmux plays: what they would see.

use std::process::Command as Process;

use tempfile::TempDir;
use tidegate_e2e::tools::run;
use tidegate_e2e::{Options, Topology, World};
use tidegate_testkit::wait;

use crate::{MOMENT, cli};

/// A terminal of 80 by 24 in which `tidegate exec -it` runs.
struct Screen {
    directory: TempDir,
}

impl Screen {
    async fn open(world: &World, argv: &[&str]) -> Self {
        let screen = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        let exec = cli(world, &["-it"], argv);
        let mut tmux = screen.tmux(&["new-session", "-d", "-s", "it", "-x", "80", "-y", "24"]);
        // What is seen at the end stays to be seen.
        tmux.args([
            "sh",
            "-c",
            "\"$@\"; echo \"[code $?]\"; exec sleep 600",
            "sh",
        ]);
        tmux.arg(exec.get_program()).args(exec.get_args());
        run(tmux).await;
        screen
    }

    fn tmux(&self, arguments: &[&str]) -> Process {
        let mut tmux = Process::new("tmux");
        tmux.arg("-f").arg("/dev/null").arg("-S");
        tmux.arg(self.directory.path().join("socket"));
        tmux.args(arguments);
        tmux
    }

    /// Types keys, as tmux calls them.
    async fn keys(&self, keys: &[&str]) {
        let arguments = [&["send-keys", "-t", "it"], keys].concat();
        run(self.tmux(&arguments)).await;
    }

    /// Waits until the screen shows `text`, and returns all of it.
    async fn shows(&self, text: &str) -> String {
        self.becomes(text, |seen| seen.contains(text)).await
    }

    /// Waits until the screen is as `wanted` says, and returns all of it.
    async fn becomes(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let mut seen = String::new();
        let shown = wait::until_async(MOMENT, async || {
            seen = run(self.tmux(&["capture-pane", "-p", "-t", "it"])).await;
            wanted(&seen)
        });
        assert!(shown.await.is_ok(), "no {what:?} on the screen:\n{seen}");
        seen
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]).status();
    }
}

fn options() -> Options {
    Options::new().commands().supervisor(
        "base_environment",
        toml::Value::from(vec!["PATH", "HOME", "LC_ALL=C.UTF-8", "PS1=prompt> "]),
    )
}

#[tokio::test]
async fn a_shell_with_jobs() {
    let world = World::start(Topology::PLAINTEXT, options()).await;
    let screen = Screen::open(&world, &["bash", "--norc", "--noprofile"]).await;
    screen.shows("prompt>").await;
    screen.keys(&["stty size", "Enter"]).await;
    screen.shows("24 80").await;
    screen.keys(&["sleep 300", "Enter"]).await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    screen.keys(&["C-z"]).await;
    screen.shows("Stopped").await;
    screen.keys(&["bg", "Enter"]).await;
    screen.shows("sleep 300 &").await;
    screen
        .keys(&["kill %1; wait; echo $((40+2))", "Enter"])
        .await;
    screen.shows("42").await;
    screen.keys(&["exit 7", "Enter"]).await;
    screen.shows("[code 7]").await;
    drop(screen);
    world.settle().await;
}

#[tokio::test]
async fn a_pager_and_an_editor() {
    let world = World::start(Topology::PLAINTEXT, options()).await;
    let directory = tempfile::tempdir().unwrap();
    let numbers = directory.path().join("numbers");
    let lines: String = (1..=500).map(|line| format!("line {line}\n")).collect();
    std::fs::write(&numbers, lines).unwrap();
    let path = numbers.to_str().unwrap();

    let screen = Screen::open(&world, &["less", path]).await;
    let seen = screen.shows("line 23").await;
    assert!(seen.starts_with("line 1\nline 2\n"), "{seen}");
    screen.keys(&["G"]).await;
    screen.shows("line 500").await;
    screen.keys(&["q"]).await;
    screen.shows("[code 0]").await;
    drop(screen);

    let screen = Screen::open(&world, &["vim", "-u", "NONE", "-n", path]).await;
    screen.shows("line 22").await;
    screen.keys(&["O", "written over there", "Escape"]).await;
    screen.shows("written over there").await;
    screen.keys(&[":wq", "Enter"]).await;
    screen.shows("[code 0]").await;
    drop(screen);
    let text = std::fs::read_to_string(&numbers).unwrap();
    assert!(text.starts_with("written over there\nline 1\n"));
    world.settle().await;
}

/// A program that paints its screen again and again, and takes keys and other sizes meanwhile.
#[tokio::test]
async fn a_view_that_moves() {
    let world = World::start(Topology::PLAINTEXT, options()).await;
    let watched = world.supervisor().process().id().to_string();
    let screen = Screen::open(&world, &["top", "-d", "0.3", "-p", &watched]).await;
    let listed = |seen: &str| {
        let mut rows = seen.lines().map(str::split_whitespace);
        rows.any(|mut words| words.next() == Some(&watched))
    };
    let seen = screen.becomes("the process", &listed).await;
    assert!(seen.starts_with("top - "), "{seen}");
    assert!(seen.contains("Tasks:   1 total"), "{seen}");
    assert!(seen.contains("PID USER"), "{seen}");
    // The clock in its first line goes on.
    let clock = seen.lines().next().unwrap();
    let moved = |seen: &str| seen.starts_with("top - ") && !seen.starts_with(clock);
    screen.becomes("a later time", moved).await;

    screen.keys(&["h"]).await;
    let seen = screen.shows("Help for Interactive Commands").await;
    assert!(!listed(&seen), "{seen}");
    screen.keys(&["q"]).await;
    screen.becomes("the process again", &listed).await;

    // Whole command lines, for which there is room only on a wider screen.
    screen.keys(&["c"]).await;
    let seen = screen
        .becomes("its path", |seen| listed(seen) && seen.contains(" /"))
        .await;
    assert!(!seen.contains("--config"), "{seen}");
    run(screen.tmux(&["resize-window", "-t", "it", "-x", "220", "-y", "40"])).await;
    screen.shows("--config").await;
    screen.keys(&["q"]).await;
    screen.shows("[code 0]").await;
    drop(screen);
    world.settle().await;
}
