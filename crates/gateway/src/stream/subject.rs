//! What a stream is about.

use std::time::Duration;

use tidegate_lifecycle::Target;
use tidegate_lifecycle::exec::{Command, CommandLimits};
use tidegate_lifecycle::id::SandboxName;

/// How much of a program's name is shown.
const NAME: usize = 64;

/// What a stream is, in tables and as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// To a TCP target.
    Forward,
    /// To the sandbox's SSH server.
    Ssh,
    /// To a command.
    Exec,
}

impl Kind {
    /// Every kind.
    pub(crate) const ALL: [Self; 3] = [Self::Forward, Self::Ssh, Self::Exec];

    /// The word for it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Ssh => "ssh",
            Self::Exec => "exec",
        }
    }

    /// What a stream to `target` is.
    pub(crate) const fn of(target: &Target) -> Self {
        match target {
            Target::Tcp { .. } => Self::Forward,
            Target::Ssh => Self::Ssh,
            Target::Exec => Self::Exec,
        }
    }
}

/// What a stream leads to.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// The sandbox.
    pub(crate) sandbox: SandboxName,
    /// Where in it.
    pub(crate) target: Target,
    /// Which program, if it is a command.
    pub(crate) program: Option<Program>,
}

/// A command, without anything that could be a secret.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    name: String,
    /// How long it may take to end when it is asked to: the most that is allowed where its caller
    /// leaves that to the supervisor, whose own length a gateway does not know.
    pub(crate) kill_grace: Duration,
}

impl Subject {
    /// A stream to a target.
    pub(crate) const fn target(sandbox: SandboxName, target: Target) -> Self {
        Self {
            sandbox,
            target,
            program: None,
        }
    }

    /// A stream to a command.
    pub(crate) fn command(sandbox: SandboxName, command: &Command) -> Self {
        let name = command.argv.first().map_or("", String::as_str);
        let name = name.chars().filter(|c| !c.is_control()).take(NAME);
        let most = CommandLimits::default().kill_grace;
        let program = Program {
            name: name.collect(),
            kill_grace: command.kill_grace.unwrap_or(most),
        };
        Self {
            sandbox,
            target: Target::Exec,
            program: Some(program),
        }
    }

    pub(crate) const fn kind(&self) -> Kind {
        Kind::of(&self.target)
    }

    /// What tables call it: of a command the program's name, since arguments may hold secrets.
    pub(crate) fn label(&self) -> String {
        let name = self.program.as_ref().map(|program| program.name.clone());
        name.unwrap_or_else(|| self.target.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grace_that_only_the_supervisor_knows_is_taken_for_the_longest() {
        let grace = |kill_grace| {
            let command = Command {
                kill_grace,
                ..Command::default()
            };
            let sandbox = SandboxName::parse("build").unwrap();
            let subject = Subject::command(sandbox, &command);
            subject.program.unwrap().kill_grace
        };
        assert_eq!(grace(None), Duration::from_secs(30));
        let said = Duration::from_secs(1);
        assert_eq!(grace(Some(said)), said);
    }
}
