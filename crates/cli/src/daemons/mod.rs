//! `tidegate dev` and `tidegate demo`: commands that run gateways and supervisors themselves.

mod demo;
mod dev;
mod part;
mod start;

use clap::Subcommand;

use crate::failure::Failure;
use crate::output::Console;

/// Must be called before anything else: this binary is also what a supervisor runs beside commands,
/// and then this does not return.
pub(crate) fn enter() {
    #[cfg(target_os = "linux")]
    tidegate_supervisor::runner::enter();
}

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
