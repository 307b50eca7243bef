//! `tidegate sandboxes`

use std::time::SystemTime;

use clap::Subcommand;
use serde_json::{Value, json};
use tidegate_client::{Deletion, Phase, Sandbox, SandboxName};

use crate::args::Global;
use crate::failure::Failure;
use crate::output::{Cell, Console, Style, Table, age, plain, rfc3339};
use crate::settings;

/// List the sandboxes that the gateway knows
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tidegate sandboxes\n  \
    tidegate sandboxes --output json | jq -r '.[] | select(.phase == \"READY\") | .name'\n  \
    tidegate sandboxes delete build-17")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make the gateway forget a sandbox: its supervisor is sent away for good
    Delete {
        /// Which sandbox
        #[arg(value_parser = SandboxName::parse)]
        sandbox: SandboxName,
    },
}

pub(crate) async fn run(args: Args, global: &Global, console: &Console) -> Result<(), Failure> {
    let client = settings::client(global)?;
    if let Some(Command::Delete { sandbox }) = args.command {
        let deleted = client.delete_sandbox(&sandbox).await;
        let deleted =
            deleted.map_err(|end| Failure::end(format!("delete sandbox {sandbox}"), end))?;
        return tell_deleted(&sandbox, deleted, console);
    }
    let listed = client.sandboxes().await;
    let sandboxes = listed.map_err(|end| Failure::end("list the sandboxes", end))?;
    if console.is_json() {
        return console.json(&sandboxes.iter().map(object).collect::<Vec<_>>());
    }
    console.line(table(&sandboxes, SystemTime::now()).render(console.style()))
}

fn tell_deleted(name: &SandboxName, deletion: Deletion, console: &Console) -> Result<(), Failure> {
    let known = match deletion {
        Deletion::Done => true,
        Deletion::AlreadyAbsent => false,
    };
    if console.is_json() {
        return console.json(&json!({ "name": name.as_str(), "deleted": known }));
    }
    console.line(if known {
        format!("Sandbox {name} is deleted.")
    } else {
        format!("Sandbox {name} was not known.")
    })
}

fn object(sandbox: &Sandbox) -> Value {
    json!({
        "name": sandbox.name.as_str(),
        "phase": sandbox.phase.as_str(),
        "homes": sandbox.homes.iter().map(|home| home.as_str()).collect::<Vec<_>>(),
        "sessions": sandbox.sessions,
        "since": sandbox.since.map(rfc3339),
    })
}

fn table(sandboxes: &[Sandbox], now: SystemTime) -> Table {
    let mut table = Table::new(["NAME", "PHASE", "HOMES", ">SESSIONS", ">SINCE"]);
    for sandbox in sandboxes {
        let homes: Vec<_> = sandbox
            .homes
            .iter()
            .map(|home| plain(home.as_str()))
            .collect();
        table.row([
            Cell::from(sandbox.name.as_str()),
            Cell::painted(sandbox.phase.to_string(), paint(sandbox.phase)),
            if homes.is_empty() {
                "-".into()
            } else {
                homes.join(",").into()
            },
            sandbox.sessions.to_string().into(),
            age(sandbox.since, now).into(),
        ]);
    }
    table
}

fn paint(phase: Phase) -> fn(Style, &str) -> String {
    match phase {
        Phase::Ready | Phase::Completed => Style::green,
        Phase::Error => Style::red,
        Phase::Unknown | Phase::Provisioning | Phase::Starting => Style::yellow,
        Phase::Unspecified | Phase::Deleting | Phase::Stopping | Phase::Stopped => Style::dim,
    }
}
