//! `cargo xtask ci`: all that a change must pass, in order, and how long each stage took.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::workspace::Workspace;
use crate::{command, proto, setup, test, tidy};

/// One step of the whole check.
struct Stage {
    name: &'static str,
    run: fn(&Workspace) -> Result<()>,
    /// Whether later stages make no sense without it.
    needed: bool,
}

const STAGES: [Stage; 14] = [
    needed("tools", setup::install_tools),
    needed("packages", setup::install_packages),
    needed("clients", setup::install_clients),
    check("fmt", fmt),
    check("clippy", clippy),
    check("docs", docs),
    check("deny", deny),
    check("proto", proto_is_current),
    check("tidy", tidy::run),
    needed("build", test::build),
    check("unit tests", test::unit),
    check("doc tests", test::examples),
    check("e2e tests", test::e2e),
    check("foreign clients", test::foreign),
];

const fn needed(name: &'static str, run: fn(&Workspace) -> Result<()>) -> Stage {
    Stage {
        name,
        run,
        needed: true,
    }
}

const fn check(name: &'static str, run: fn(&Workspace) -> Result<()>) -> Stage {
    Stage {
        name,
        run,
        needed: false,
    }
}

/// Runs every stage, also after one that failed, unless the later ones need it.
///
/// # Errors
/// If a stage failed; the table that is printed last says which.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut outcomes = Vec::new();
    for stage in &STAGES {
        println!("\n== {}", stage.name);
        let start = Instant::now();
        let result = (stage.run)(workspace);
        if let Err(error) = &result {
            println!("{} failed: {error:#}", stage.name);
        }
        outcomes.push(Outcome {
            name: stage.name,
            took: start.elapsed(),
            passed: result.is_ok(),
        });
        if result.is_err() && stage.needed {
            break;
        }
    }
    println!("\n{}", table(&outcomes));
    verdict(&outcomes)
}

struct Outcome {
    name: &'static str,
    took: Duration,
    passed: bool,
}

fn table(outcomes: &[Outcome]) -> String {
    let mut table = String::new();
    for outcome in outcomes {
        let result = if outcome.passed { "passed" } else { "FAILED" };
        let seconds = outcome.took.as_secs_f64();
        let _infallible = writeln!(table, "{:<16} {seconds:>8.1} s  {result}", outcome.name);
    }
    let total: Duration = outcomes.iter().map(|outcome| outcome.took).sum();
    let _infallible = write!(table, "{:<16} {:>8.1} s", "all stages", total.as_secs_f64());
    table
}

fn verdict(outcomes: &[Outcome]) -> Result<()> {
    let failed = outcomes.iter().filter(|outcome| !outcome.passed);
    let failed: Vec<_> = failed.map(|outcome| outcome.name).collect();
    match failed.is_empty() {
        true => Ok(()),
        false => bail!("failed: {}", failed.join(", ")),
    }
}

fn fmt(workspace: &Workspace) -> Result<()> {
    command::run(&mut workspace.cargo(&["fmt", "--all", "--check"]))
}

fn clippy(workspace: &Workspace) -> Result<()> {
    let arguments = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ];
    command::run(&mut workspace.cargo(&arguments))
}

fn docs(workspace: &Workspace) -> Result<()> {
    let mut cargo = workspace.cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
    command::run(cargo.env("RUSTDOCFLAGS", "-D warnings"))
}

fn deny(workspace: &Workspace) -> Result<()> {
    command::run(&mut workspace.cargo(&["deny", "check", "bans", "licenses", "sources"]))
}

fn proto_is_current(workspace: &Workspace) -> Result<()> {
    proto::check(workspace.root())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(name: &'static str, seconds: u64, passed: bool) -> Outcome {
        Outcome {
            name,
            took: Duration::from_secs(seconds),
            passed,
        }
    }

    #[test]
    fn the_table_says_what_failed_and_how_long_all_took() {
        let outcomes = [outcome("fmt", 1, true), outcome("clippy", 61, false)];
        assert_eq!(
            table(&outcomes),
            "fmt                   1.0 s  passed\n\
             clippy               61.0 s  FAILED\n\
             all stages           62.0 s"
        );
        assert_eq!(
            verdict(&outcomes).expect_err("one failed").to_string(),
            "failed: clippy"
        );
        assert!(verdict(&outcomes[..1]).is_ok());
    }
}
