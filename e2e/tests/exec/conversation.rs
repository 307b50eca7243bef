//! A server that is spoken to over its stdin, through the shipped command: JSON-RPC, message by
//! message.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tidegate_e2e::{Options, Topology, World, every_topology, sized};
use tidegate_testkit::process::Process;
use tidegate_testkit::wait::within;

use crate::{GONE, MOMENT, cli};

every_topology!(a_json_rpc_server_is_kept_talking);

/// Every so many messages one is longer than a frame.
const LONG_ONES: u64 = 500;

/// A client of the server that `tidegate exec -i` leads to.
struct Session {
    process: Process,
    stdin: std::process::ChildStdin,
    heard: usize,
}

impl Session {
    fn open(world: &World) -> Self {
        let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exec/rpc.py");
        let mut command = cli(world, &["-i"], &["python3", server.to_str().unwrap()]);
        command.env("PYTHONUTF8", "1").stdin(Stdio::piped());
        let process = Process::spawn(command).unwrap();
        let stdin = process.take_stdin().unwrap();
        Self {
            process,
            stdin,
            heard: 0,
        }
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    fn ask(&mut self, id: u64, method: &str, params: &Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// Waits for the next answer, which there must be one of.
    async fn answer(&mut self) -> Value {
        let stdout = self.process.stdout();
        let lines = within(MOMENT, "an answer", stdout.beyond(self.heard)).await;
        let lines = lines.unwrap_or_else(|| panic!("it ended: {}", self.process));
        self.heard += 1;
        serde_json::from_str(&lines[0]).unwrap()
    }

    /// Waits for the answer to `id`.
    async fn result(&mut self, id: u64) -> Value {
        let mut answer = self.answer().await;
        assert_eq!(
            (&answer["jsonrpc"], &answer["id"]),
            (&json!("2.0"), &json!(id))
        );
        answer["result"].take()
    }
}

async fn a_json_rpc_server_is_kept_talking(topology: Topology) {
    let utf8 = toml::Value::from(vec!["PATH", "HOME", "PYTHONUTF8=1"]);
    let options = Options::new()
        .commands()
        .supervisor("base_environment", utf8);
    let world = World::start(topology, options).await;
    let mut session = Session::open(&world);
    let messages = sized(1_000, 10_000);
    for id in 0..messages {
        let long = id % LONG_ONES == LONG_ONES / 2;
        let params = json!({"text": format!("äß€ {id} ").repeat(if long { 20_000 } else { 1 })});
        session.ask(id, "echo", &params);
        assert!(session.result(id).await == params, "{id}");
    }
    // Several on their way at once, and one that is not answered.
    for id in messages..messages + 50 {
        session.ask(id, "reverse", &json!({"text": format!("{id} abc")}));
    }
    session.say(&json!({"jsonrpc": "2.0", "method": "log", "params": {"text": "noted"}}));
    for id in messages..messages + 50 {
        let mirrored: String = format!("{id} abc").chars().rev().collect();
        assert_eq!(session.result(id).await, json!({"text": mirrored}));
    }
    session.ask(0, "nothing", &json!({}));
    assert_eq!(session.answer().await["error"]["code"], -32601);

    let Session { process, stdin, .. } = session;
    drop(stdin);
    let status = process.exit(GONE).await;
    assert_eq!(status.code(), Some(0), "{process}");
    process
        .stderr()
        .line(|line| line == "goodbye")
        .await
        .unwrap();
    assert_eq!(&*process.stderr().lines()[0], "noted");
    drop(process);
    world.settle().await;
}
