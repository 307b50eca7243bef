//! `tidegate dev` and `tidegate demo`: commands that run gateways and supervisors themselves.

mod demo;
mod dev;
mod part;
mod start;

use clap::Subcommand;

use crate::failure::Failure;
use crate::output::Console;

/// The commands that need the daemons.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Dev(dev::Args),
    Demo(demo::Args),
    #[command(hide = true)]
    DemoPart(part::Args),
}

/// Does what was asked for.
pub(crate) async fn run(command: Command, console: &Console) -> Result<(), Failure> {
    match command {
        Command::Dev(args) => dev::run(args, console).await,
        Command::Demo(args) => demo::run(&args, console).await,
        Command::DemoPart(args) => part::run(args, console).await,
    }
}
