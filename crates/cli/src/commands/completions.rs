//! `tidegate completions`

use clap_complete::Shell;

use crate::args;
use crate::failure::Failure;
use crate::output::Console;

/// Write the completions of a shell to stdout
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tidegate completions bash > ~/.local/share/bash-completion/completions/tidegate\n  \
    tidegate completions fish > ~/.config/fish/completions/tidegate.fish")]
pub(crate) struct Args {
    /// Which shell
    shell: Shell,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "tidegate", &mut script);
    console.line(String::from_utf8_lossy(&script).trim_end())
}
