//! Other people's programs: started, asked, and told where the installed clients are.

use std::env;
use std::ffi::OsStr;
use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate_testkit::process::Process;
use tidegate_testkit::wait;

/// How long a program may take for what it is asked.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs a shell script with `$1`, `$2` … and returns what it wrote to standard output.
///
/// # Panics
///
/// If it fails or takes longer than two minutes; shows all that it wrote.
pub async fn shell<A: AsRef<OsStr>>(script: &str, arguments: &[A]) -> String {
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", script, "script"]);
    command.args(arguments);
    run(command).await
}

/// Runs a program and returns what it wrote to standard output.
///
/// # Panics
///
/// As [`shell`].
pub async fn run(mut command: Command) -> String {
    command.stdin(Stdio::null());
    let process = Process::spawn(command).expect("the program is installed");
    let status = process.exit(PATIENCE).await;
    process.stdout().line(|_| false).await; // until the pipe ends
    process.stderr().line(|_| false).await;
    assert!(status.success(), "{status}: {process}");
    process.stdout().to_string()
}

/// Returns a port of the loopback that is free, for programs that cannot choose one.
///
/// It lies below those that the kernel gives to whoever asks for any, so that only another caller of
/// this can take it before the program does, and two callers hardly ever try the same.
///
/// # Panics
///
/// If there is none.
pub fn free_port() -> u16 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let seed = RandomState::new();
    let mut candidates = std::iter::repeat_with(|| {
        let hash = seed.hash_one(CALLS.fetch_add(1, Ordering::Relaxed));
        20_000 + u16::try_from(hash % 12_000).expect("it is below 12,000")
    });
    let free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    candidates
        .by_ref()
        .take(1000)
        .find(free)
        .expect("there is a free port")
}

/// Writes a port of the loopback as an address.
pub fn local(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// Waits until `process`, or something else, listens on a port of the loopback.
///
/// # Panics
///
/// If that takes longer than 30 s, or the process ends.
pub async fn until_listening(process: &Process, port: u16) {
    let listening = wait::until_async(wait::GENEROUS, async || {
        assert!(process.is_running(), "{process}");
        let address = (Ipv4Addr::LOCALHOST, port);
        tokio::net::TcpStream::connect(address).await.is_ok()
    });
    assert!(listening.await.is_ok(), "{process} does not listen");
}

/// Returns the folder of a client that `cargo xtask setup` has installed.
///
/// # Panics
///
/// If it is not there.
pub fn client(name: &str) -> PathBuf {
    let clients = env::var_os("TIDEGATE_CLIENTS").map_or_else(cached, PathBuf::from);
    let folder = clients.join(name);
    assert!(
        folder.is_dir(),
        "no {}: run `cargo xtask setup`",
        folder.display()
    );
    folder
}

/// Returns a command for a program that may lie where only root looks.
pub fn daemon(name: &str) -> Command {
    let sbin = Path::new("/usr/sbin").join(name);
    Command::new(if sbin.is_file() { sbin } else { name.into() })
}

fn cached() -> PathBuf {
    let cache = env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty());
    let cache = cache.map_or_else(
        || env::home_dir().expect("a home").join(".cache"),
        PathBuf::from,
    );
    cache.join("tidegate/clients")
}
