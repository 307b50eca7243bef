//! The repository's own commands: `cargo xtask COMMAND`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command's way of talking"
)]

mod bench;
mod bless;
mod ci;
mod command;
mod proto;
mod setup;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

use workspace::Workspace;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  ci                          everything a change must pass, installing what is missing first
  test [--fast|--e2e] [-- …]  the tests alone: --fast those of single crates, --e2e real binaries
  tidy                        the rules of this house that no compiler checks
  proto [--check]             generate Rust from the .proto files, or fail when it is stale
  bless                       accept what snapshot tests see
  bench [ARGUMENT…]           release binaries against plain relays; --help says what can be chosen
  setup                       install what checks and tests need; skips what is there";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let Some((command, rest)) = arguments.split_first() else {
        bail!("{USAGE}")
    };
    let workspace = Workspace::discover()?;
    let flags: Vec<_> = rest.iter().map(String::as_str).collect();
    match (command.as_str(), flags.as_slice()) {
        ("ci", []) => ci::run(&workspace),
        ("test", _) => test::run(&workspace, rest),
        ("tidy", []) => tidy::run(&workspace),
        ("proto", []) => proto::generate(workspace.root()),
        ("proto", ["--check"]) => proto::check(workspace.root()),
        ("bless", []) => bless::run(&workspace),
        ("bench", passed_on) => bench::run(&workspace, passed_on),
        ("setup", []) => setup::run(&workspace),
        ("help" | "--help" | "-h", _) => {
            println!("{USAGE}");
            Ok(())
        }
        _ => bail!("`{}` is not understood\n\n{USAGE}", arguments.join(" ")),
    }
}
