//! `tidegate sessions`

use std::time::SystemTime;

use clap::Subcommand;
use serde_json::{Value, json};
use tidegate_client::{SandboxName, Session};

use crate::args::Global;
use crate::failure::Failure;
use crate::output::{Console, Table, age, plain, rfc3339};
use crate::settings;

/// List the supervisors' sessions
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    tidegate sessions\n  \
    tidegate sessions --sandbox build-17 --output json\n  \
    tidegate sessions close build-17          # a kick: its supervisor may come back"
)]
pub(crate) struct Args {
    /// Only those of one sandbox
    #[arg(long, value_name = "NAME", value_parser = SandboxName::parse)]
    sandbox: Option<SandboxName>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// End the session of a sandbox, and with it its streams; the supervisor may come back
    Close {
        /// Which sandbox
        #[arg(value_parser = SandboxName::parse)]
        sandbox: SandboxName,
    },
}

pub(crate) async fn run(args: Args, global: &Global, console: &Console) -> Result<(), Failure> {
    let client = settings::client(global)?;
    if let Some(Command::Close { sandbox }) = args.command {
        let closed = client.close_session(&sandbox).await;
        let closed = closed
            .map_err(|end| Failure::end(format!("close the session of sandbox {sandbox}"), end))?;
        let ids: Vec<_> = closed.iter().map(|id| plain(id.as_str())).collect();
        if console.is_json() {
            return console.json(&json!({ "sandbox": sandbox.as_str(), "closed": ids }));
        }
        return console.line(format_args!(
            "Closed session {} of sandbox {sandbox}; its supervisor may come back.",
            ids.join(", ")
        ));
    }
    let listed = client.sessions(args.sandbox.as_ref()).await;
    let sessions = listed.map_err(|end| Failure::end("list the sessions", end))?;
    if console.is_json() {
        return console.json(&sessions.iter().map(object).collect::<Vec<_>>());
    }
    console.line(table(&sessions, SystemTime::now()).render(console.style()))
}

fn object(session: &Session) -> Value {
    json!({
        "sandbox": session.sandbox.as_str(),
        "sessionId": session.session.as_str(),
        "instanceId": session.instance.as_str(),
        "gateway": session.gateway.as_str(),
        "generation": session.generation.value(),
        "state": session.state,
        "since": session.since.map(rfc3339),
        "capabilities": session.capabilities.names(),
        "streams": session.streams,
    })
}

fn table(sessions: &[Session], now: SystemTime) -> Table {
    let mut table = Table::new([
        "SANDBOX", "SESSION", "GATEWAY", "STATE", ">STREAMS", ">SINCE",
    ]);
    for session in sessions {
        table.row([
            session.sandbox.to_string(),
            plain(session.session.as_str()),
            plain(session.gateway.as_str()),
            plain(&session.state),
            session.streams.to_string(),
            age(session.since, now),
        ]);
    }
    table
}
