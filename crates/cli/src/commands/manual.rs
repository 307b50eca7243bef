//! `tidegate man`

use std::path::PathBuf;

use clap_mangen::Man;

use crate::args;
use crate::failure::Failure;
use crate::output::Console;

/// Write the manual pages: one for each command into a folder, or the first one to stdout
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tidegate man | man -l -\n  \
    tidegate man ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// Where to put them; it is made if it is not there
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let failed = |error| Failure::io("write the manual", error);
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        Man::new(args::command())
            .render(&mut page)
            .map_err(failed)?;
        return console.line(String::from_utf8_lossy(&page).trim_end());
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(args::command(), folder).map_err(failed)
}
