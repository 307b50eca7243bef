//! What a caller asks to be run.

use std::time::Duration;

use thiserror::Error;

/// A command: an argument vector, not a line. No shell reads it unless it names one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Where it starts; the supervisor's choice if unset.
    pub workdir: Option<String>,
    /// Variables on top of the sandbox's base environment; of two with the same name the last counts.
    pub environment: Vec<(String, String)>,
    /// The terminal to run it on; pipes if unset.
    pub terminal: Option<TerminalSize>,
    /// How long it may run.
    pub timeout: Option<Duration>,
    /// Between TERM and KILL when it is made to end; the supervisor's default if unset.
    pub kill_grace: Option<Duration>,
    /// Its descendants end with it even when it ends by itself.
    pub kill_background: bool,
    /// The most bytes of stdout to send on; unlimited if unset.
    pub stdout_limit: Option<u64>,
    /// The most bytes of stderr to send on; unlimited if unset.
    pub stderr_limit: Option<u64>,
}

/// The size of a terminal in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TerminalSize {
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
}

impl Default for TerminalSize {
    fn default() -> Self {
        Self { cols: 80, rows: 24 }
    }
}

/// How large a command may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandLimits {
    /// Arguments, the program included.
    pub arguments: usize,
    /// Bytes of one argument, or of one variable's value.
    pub argument_bytes: usize,
    /// Bytes of all arguments and variables together.
    pub total_bytes: usize,
    /// Bytes of the working directory's path.
    pub workdir_bytes: usize,
    /// The longest time between TERM and KILL.
    pub kill_grace: Duration,
}

impl Default for CommandLimits {
    fn default() -> Self {
        Self {
            arguments: 1024,
            argument_bytes: 32 * 1024,
            total_bytes: 256 * 1024,
            workdir_bytes: 4096,
            kill_grace: Duration::from_secs(30),
        }
    }
}

/// A command that cannot be run; the message names the field and the limit.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: {problem}")]
pub struct InvalidCommand {
    /// The field, as the request calls it.
    pub field: &'static str,
    /// What is wrong with it, and what would be right.
    pub problem: String,
}

impl Command {
    /// Checks everything that can be told without the sandbox.
    ///
    /// # Errors
    ///
    /// The first field that cannot be used.
    pub fn check(&self, limits: &CommandLimits) -> Result<(), InvalidCommand> {
        self.check_argv(limits)?;
        self.check_environment(limits)?;
        self.check_workdir(limits)?;
        self.check_total(limits)?;
        if self.terminal.is_some() && self.stderr_limit.is_some() {
            return Err(invalid(
                "stderr_limit",
                "a terminal merges both outputs: limit stdout, or run without a terminal",
            ));
        }
        if self.timeout == Some(Duration::ZERO) {
            return Err(invalid(
                "timeout",
                "0 leaves no time: leave it out for no limit",
            ));
        }
        if self
            .kill_grace
            .is_some_and(|grace| grace > limits.kill_grace)
        {
            let most = limits.kill_grace;
            return Err(invalid("kill_grace", format!("use at most {most:?}")));
        }
        Ok(())
    }

    fn check_argv(&self, limits: &CommandLimits) -> Result<(), InvalidCommand> {
        if self.argv.first().is_none_or(String::is_empty) {
            return Err(invalid("command", "name a program to run"));
        }
        if self.argv.len() > limits.arguments {
            let (count, most) = (self.argv.len(), limits.arguments);
            return Err(invalid(
                "command",
                format!("{count} arguments, at most {most} may be given"),
            ));
        }
        for (index, argument) in self.argv.iter().enumerate() {
            check_text(
                "command",
                &format!("argument {index}"),
                argument,
                limits.argument_bytes,
            )?;
        }
        Ok(())
    }

    fn check_environment(&self, limits: &CommandLimits) -> Result<(), InvalidCommand> {
        for (key, value) in &self.environment {
            let mut chars = key.chars();
            let begins = chars
                .next()
                .is_some_and(|c| c == '_' || c.is_ascii_alphabetic());
            if !begins || !chars.all(|c| c == '_' || c.is_ascii_alphanumeric()) {
                let key: String = key.chars().take(64).collect();
                return Err(invalid(
                    "environment",
                    format!("{key:?} is no variable's name: use letters, digits and _"),
                ));
            }
            check_text(
                "environment",
                &format!("the value of {key}"),
                value,
                limits.argument_bytes,
            )?;
        }
        Ok(())
    }

    fn check_workdir(&self, limits: &CommandLimits) -> Result<(), InvalidCommand> {
        self.workdir.as_deref().map_or(Ok(()), |path| {
            check_text("workdir", "the path", path, limits.workdir_bytes)
        })
    }

    fn check_total(&self, limits: &CommandLimits) -> Result<(), InvalidCommand> {
        let arguments: usize = self.argv.iter().map(String::len).sum();
        let variables: usize = self
            .environment
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum();
        let (total, most) = (arguments + variables, limits.total_bytes);
        if total > most {
            return Err(invalid(
                "command",
                format!(
                    "arguments and environment have {total} bytes, at most {most} may be given"
                ),
            ));
        }
        Ok(())
    }
}

fn check_text(
    field: &'static str,
    what: &str,
    text: &str,
    most: usize,
) -> Result<(), InvalidCommand> {
    if text.contains('\0') {
        return Err(invalid(field, format!("{what} holds a NUL byte")));
    }
    if text.len() > most {
        let len = text.len();
        return Err(invalid(
            field,
            format!("{what} has {len} bytes, at most {most} may be given"),
        ));
    }
    Ok(())
}

fn invalid(field: &'static str, problem: impl Into<String>) -> InvalidCommand {
    InvalidCommand {
        field,
        problem: problem.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        Command {
            argv: vec!["true".to_owned()],
            ..Command::default()
        }
    }

    fn field(command: &Command) -> Option<&'static str> {
        command
            .check(&CommandLimits::default())
            .err()
            .map(|it| it.field)
    }

    #[test]
    fn what_cannot_be_run_is_named() {
        assert_eq!(field(&command()), None);
        let long = "x".repeat(32 * 1024 + 1);
        let bad = [
            ("command", Command::default()),
            (
                "command",
                Command {
                    argv: vec![String::new()],
                    ..command()
                },
            ),
            (
                "command",
                Command {
                    argv: vec!["x".to_owned(); 1025],
                    ..command()
                },
            ),
            (
                "command",
                Command {
                    argv: vec![long.clone()],
                    ..command()
                },
            ),
            (
                "command",
                Command {
                    argv: vec!["a\0b".to_owned()],
                    ..command()
                },
            ),
            (
                "command",
                Command {
                    argv: vec!["x".repeat(32 * 1024); 9],
                    ..command()
                },
            ),
            (
                "environment",
                Command {
                    environment: vec![("1A".to_owned(), String::new())],
                    ..command()
                },
            ),
            (
                "environment",
                Command {
                    environment: vec![(String::new(), String::new())],
                    ..command()
                },
            ),
            (
                "environment",
                Command {
                    environment: vec![("A".to_owned(), long)],
                    ..command()
                },
            ),
            (
                "workdir",
                Command {
                    workdir: Some("x".repeat(4097)),
                    ..command()
                },
            ),
            (
                "timeout",
                Command {
                    timeout: Some(Duration::ZERO),
                    ..command()
                },
            ),
            (
                "kill_grace",
                Command {
                    kill_grace: Some(Duration::from_secs(31)),
                    ..command()
                },
            ),
            (
                "stderr_limit",
                Command {
                    terminal: Some(TerminalSize::default()),
                    stderr_limit: Some(1),
                    ..command()
                },
            ),
        ];
        for (expected, command) in bad {
            assert_eq!(field(&command), Some(expected), "{command:?}");
        }
    }

    #[test]
    fn what_is_at_the_limit_is_run() {
        let argv = vec!["x".repeat(32 * 1024); 8];
        assert_eq!(field(&Command { argv, ..command() }), None);
        assert_eq!(
            field(&Command {
                argv: vec!["x".to_owned(); 1024],
                ..command()
            }),
            None
        );
    }
}
