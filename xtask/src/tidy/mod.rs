//! `cargo xtask tidy`: the rules of this house that no compiler checks.
//!
//! - `floors`: which of our crates may use which;
//! - `sources`: how a file begins, how long it gets, what it may not say;
//! - `enums`: how enumerations of the protocol are written.
//!
//! A rule is a function from text to findings, so that its tests need no folder.

mod enums;
mod floors;
mod sources;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// Something a person should mend, and where.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: PathBuf,
    line: usize,
    message: String,
}

impl Finding {
    fn new(path: &Path, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.message)
    }
}

/// Checks every file of the checkout and prints what is to be mended.
///
/// # Errors
/// If anything was found, or a file could not be read.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let files = workspace.files()?;
    let mut findings = Vec::new();
    let mut manifests = Vec::new();
    for path in &files {
        let bytes = fs::read(workspace.root().join(path))
            .with_context(|| format!("cannot read {}", path.display()))?;
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        findings.extend(sources::check(path, &text));
        if path.file_name().is_some_and(|name| name == "Cargo.toml") {
            manifests.push((path.clone(), text));
        }
    }
    findings.extend(floors::check(&manifests)?);
    findings.extend(enums::check(workspace.root(), &files)?);
    report(findings, files.len())
}

fn report(mut findings: Vec<Finding>, files: usize) -> Result<()> {
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        bail!("tidy: {} to mend", findings.len());
    }
    println!("tidy: {files} files in order");
    Ok(())
}
