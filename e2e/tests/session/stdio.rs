//! A stream on standard output, ended in every way there is: nothing of ours is written among what the
//! target sends, and what is said is said on standard error.

use std::fs;
use std::process::{ChildStdin, Command, Stdio};

use tempfile::TempDir;
use tidegate_client::Config;
use tidegate_e2e::command::tidegate;
use tidegate_e2e::{Options, SANDBOX, Topology, World, every_topology};
use tidegate_testkit::process::Process;
use tidegate_testkit::target::{Step, Target};
use tidegate_testkit::wait;

use crate::{ENDED, MOMENT, NONE_YET};

every_topology! {
    cli_08_stdout_holds_payload_only_whatever_ends_it,
    cli_08_stdout_holds_payload_only_when_time_ends_it,
}

/// Not text, so that not even a line's end would go unnoticed.
const GREETING: &[u8] = b"220 ready\n\xff\x00\r\n\xc3";

async fn cli_08_stdout_holds_payload_only_whatever_ends_it(topology: Topology) {
    let options = Options::new()
        .gateway("drain_deadline", "0s")
        .gateway("max_streams_per_sandbox", 1)
        .expect_warning(ENDED)
        .expect_warning(NONE_YET);
    let mut world = World::start(topology, options).await;
    let target = greeter();
    let nobody = Target::echo().unwrap().address().port();

    let joined = Joined::open(&world, &target).await;
    joined.process.interrupt();
    let (code, stdout, said) = joined.finish().await;
    assert_eq!((code, &stdout[..]), (Some(130), GREETING), "{said}");
    target.next().await.cue();

    let refused = Joined::begin(&world.access(), nobody);
    refused.fails(b"", "TARGET_REFUSED").await;

    let joined = Joined::open(&world, &target).await;
    let beyond = Joined::begin(&world.access(), target.address().port());
    beyond.fails(b"", "LIMIT_STREAMS").await;
    let connection = target.next().await;
    connection.cue();
    joined.fails(GREETING, "TARGET_RESET").await;

    let joined = Joined::open(&world, &target).await;
    world.kill_supervisor().await;
    joined.fails(GREETING, "SUPERVISOR_LOST").await;
    world.start_supervisor().await;

    let joined = Joined::open(&world, &target).await;
    world.gateway().process().terminate();
    joined.fails(GREETING, "GATEWAY_DRAINING").await;
    assert!(world.gateway().process().exit(MOMENT).await.success());
    world.restart_gateway().await;
    world.until_sessions(2).await;

    let joined = Joined::open(&world, &target).await;
    world.kill_gateway().await;
    joined.fails(GREETING, "TRANSPORT_LOST").await;
    world.restart_gateway().await;
    world.until_sessions(3).await;
    world.rebase().await;
    world.settle().await;
}

/// No flag of the command limits a stream's time; a gateway's configuration does.
async fn cli_08_stdout_holds_payload_only_when_time_ends_it(topology: Topology) {
    let world = World::start(topology, Options::new().gateway("idle_timeout", "1s")).await;
    let target = greeter();
    let joined = Joined::open(&world, &target).await;
    joined.fails(GREETING, "IDLE_TIMEOUT").await;
    target.next().await.cue();
    world.settle().await;
}

fn greeter() -> Target {
    let greeting = Step::Send(GREETING.into());
    Target::start([greeting, Step::Cue, Step::Reset]).unwrap()
}

/// `tidegate connect`, whose standard input stays open and whose standard output is a file.
struct Joined {
    process: Process,
    folder: TempDir,
    _stdin: ChildStdin,
}

impl Joined {
    fn begin(access: &Config, port: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut connect = tidegate(access);
        connect.args(["connect", SANDBOX, &port.to_string()]);
        // Asking for JSON does not make stdout anything but payload.
        connect.args(["--output", "json"]);
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" > stdout"]);
        shell.arg(connect.get_program()).args(connect.get_args());
        for (variable, _) in connect.get_envs() {
            shell.env_remove(variable);
        }
        shell.current_dir(folder.path()).stdin(Stdio::piped());
        let process = Process::spawn(shell).unwrap();
        let stdin = process.take_stdin().unwrap();
        Self {
            process,
            folder,
            _stdin: stdin,
        }
    }

    /// Waits until the target has greeted.
    async fn open(world: &World, target: &Target) -> Self {
        let joined = Self::begin(&world.access(), target.address().port());
        let greeted = wait::until_async(MOMENT, async || joined.stdout() == GREETING);
        assert!(greeted.await.is_ok(), "{:?}", joined.stdout());
        joined
    }

    fn stdout(&self) -> Vec<u8> {
        fs::read(self.folder.path().join("stdout")).unwrap_or_default()
    }

    /// Waits for its end. Returns its exit code and what it wrote to each output.
    async fn finish(self) -> (Option<i32>, Vec<u8>, String) {
        let status = self.process.exit(MOMENT).await;
        self.process.stderr().line(|_| false).await; // until the pipe ends
        let said = self.process.stderr().to_string();
        (status.code(), self.stdout(), said)
    }

    /// Fails unless it fails after this payload, and says why in one line.
    async fn fails(self, payload: &[u8], reason: &str) {
        let (code, stdout, said) = self.finish().await;
        assert_eq!((code, &stdout[..]), (Some(1), payload), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.starts_with("error: cannot "), "{said}");
        assert!(said.contains(reason), "{said}");
    }
}
