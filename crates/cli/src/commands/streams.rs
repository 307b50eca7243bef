//! `tidegate streams`

use std::time::SystemTime;

use clap::Subcommand;
use serde_json::{Value, json};
use tidegate_client::{SandboxName, StreamId, StreamInfo};

use crate::args::Global;
use crate::failure::Failure;
use crate::output::{Console, Table, age, bytes, plain, rfc3339};
use crate::settings;

/// List the streams that are open
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    tidegate streams\n  \
    tidegate streams --sandbox build-17 --output json\n  \
    tidegate streams close 7f3c9d1e           # both ends see a reset"
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
    /// Reset a stream
    Close {
        /// Its id, as `tidegate streams` and the events of `port-forward` tell it
        id: String,
    },
}

pub(crate) async fn run(args: Args, global: &Global, console: &Console) -> Result<(), Failure> {
    let client = settings::client(global)?;
    if let Some(Command::Close { id }) = args.command {
        let closed = client.close_stream(&StreamId::new(id.as_str())).await;
        closed.map_err(|end| Failure::end(format!("close stream {}", plain(&id)), end))?;
        if console.is_json() {
            return console.json(&json!({ "closed": [id] }));
        }
        return console.line(format_args!("Closed stream {}.", plain(&id)));
    }
    let listed = client.streams(args.sandbox.as_ref()).await;
    let streams = listed.map_err(|end| Failure::end("list the streams", end))?;
    if console.is_json() {
        return console.json(&streams.iter().map(object).collect::<Vec<_>>());
    }
    console.line(table(&streams, SystemTime::now()).render(console.style()))
}

fn object(stream: &StreamInfo) -> Value {
    json!({
        "id": stream.id.as_str(),
        "sandbox": stream.sandbox.as_str(),
        "kind": stream.kind,
        "target": stream.target,
        "state": stream.state,
        "path": stream.path.iter().map(|hop| hop.as_str()).collect::<Vec<_>>(),
        "since": stream.since.map(rfc3339),
        "bytesUp": stream.bytes_up,
        "bytesDown": stream.bytes_down,
        "user": stream.user,
    })
}

fn table(streams: &[StreamInfo], now: SystemTime) -> Table {
    let mut table = Table::new([
        "ID", "SANDBOX", "KIND", "TARGET", "STATE", "PATH", ">UP", ">DOWN", ">SINCE",
    ]);
    for stream in streams {
        let path: Vec<_> = stream.path.iter().map(|hop| plain(hop.as_str())).collect();
        table.row([
            plain(stream.id.as_str()),
            stream.sandbox.to_string(),
            plain(&stream.kind),
            plain(&stream.target),
            plain(&stream.state),
            path.join(","),
            bytes(stream.bytes_up),
            bytes(stream.bytes_down),
            age(stream.since, now),
        ]);
    }
    table
}
