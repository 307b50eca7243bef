//! redis-cli in its mass insertion mode: it writes all commands, then waits for the last reply.

use std::process::Command;

use tempfile::TempDir;
use tidegate_e2e::tools::{free_port, local, shell};
use tidegate_testkit::process::Process;

use crate::plain;

const COMMANDS: u32 = 200_000;

struct Redis {
    _folder: TempDir,
    _process: Process,
    port: u16,
}

impl Redis {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
        command.args(["--save", "", "--appendonly", "no", "--dir"]);
        command.arg(folder.path());
        let process = Process::spawn(command).unwrap();
        process.line("eady to accept connections").await;
        Self {
            _folder: folder,
            _process: process,
            port,
        }
    }
}

#[tokio::test]
async fn redis_takes_a_mass_insertion() {
    let (world, redis) = tokio::join!(plain(), Redis::start());
    let forward = world.forward_to(&local(redis.port)).await;
    let script = "seq 1 $2 | awk '{ k = \"key:\" $1; v = \"value of \" $1;
        printf \"*3\\r\\n$3\\r\\nSET\\r\\n$%d\\r\\n%s\\r\\n$%d\\r\\n%s\\r\\n\", length(k), k, length(v), v }' |
        redis-cli -h 127.0.0.1 -p $1 --pipe | tail -1";
    let arguments = [forward.address().port().to_string(), COMMANDS.to_string()];
    let said = shell(script, &arguments).await;
    assert_eq!(said, format!("errors: 0, replies: {COMMANDS}\n"));
    let script = "redis-cli -h 127.0.0.1 -p $1 dbsize; redis-cli -h 127.0.0.1 -p $1 get key:$2";
    let said = shell(script, &arguments).await;
    assert_eq!(said, format!("{COMMANDS}\nvalue of {COMMANDS}\n"));
    world.settle().await;
}
