//! Running other programs: said before, explained when it fails.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs `command` with the terminal it was given, after saying what it is.
///
/// # Errors
/// If it cannot be started or does not end with success; the message holds the whole line.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = line(command);
    println!("$ {line}");
    let status = command
        .status()
        .with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed: {status}");
    }
    Ok(())
}

/// Runs `command` and returns what it wrote to stdout; its stderr goes to ours.
///
/// # Errors
/// As [`run`], and if the output is not UTF-8.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = line(command);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` failed: {}", output.status);
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{line}` wrote bytes that are no text"))
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| quoted(&word.to_string_lossy()))
        .collect::<Vec<_>>()
        .join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=@:+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_can_be_pasted_into_a_shell() {
        let mut command = Command::new("cargo");
        command.args(["nextest", "run", "-E", "not package(x)", ""]);
        assert_eq!(line(&command), "cargo nextest run -E 'not package(x)' ''");
    }

    #[test]
    fn a_failure_names_the_line() {
        let error = run(&mut Command::new("false")).expect_err("false fails");
        assert!(error.to_string().starts_with("`false` failed"), "{error}");
    }
}
