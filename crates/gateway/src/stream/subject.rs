//! What a stream is about.

use std::time::Duration;

use tidegate_lifecycle::Target;
use tidegate_lifecycle::exec::{Command, CommandLimits};
use tidegate_lifecycle::id::{GatewayId, SandboxName};
use tidegate_wire::frame::{PeerInit, Relayed};

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
    /// The gateway that took it in, if that was another one.
    pub(crate) requester: Option<GatewayId>,
}

/// A command, without anything that could be a secret.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    name: String,
    /// How long it may take to end when it is asked to: the most that is allowed where its caller
    /// leaves that to the supervisor, whose own length a gateway does not know.
    pub(crate) kill_grace: Duration,
}

impl Program {
    fn new(name: &str, kill_grace: Option<Duration>) -> Self {
        let name = name.chars().filter(|c| !c.is_control()).take(NAME);
        let most = CommandLimits::default().kill_grace;
        Self {
            name: name.collect(),
            kill_grace: kill_grace.unwrap_or(most).min(most),
        }
    }
}

impl Subject {
    /// A stream to a target.
    pub(crate) const fn target(sandbox: SandboxName, target: Target) -> Self {
        Self {
            sandbox,
            target,
            program: None,
            requester: None,
        }
    }

    /// What another gateway asks for.
    pub(crate) fn relayed(init: &PeerInit) -> Self {
        let of_command = init.target == Target::Exec;
        let Relayed {
            program,
            kill_grace,
        } = &init.command;
        Self {
            sandbox: init.sandbox.clone(),
            target: init.target.clone(),
            program: of_command.then(|| Program::new(program, *kill_grace)),
            requester: Some(init.requester.clone()),
        }
    }

    /// What another gateway is told of it beside its target.
    pub(crate) fn told(&self) -> Relayed {
        self.program
            .as_ref()
            .map_or_else(Relayed::default, |program| Relayed {
                program: program.name.clone(),
                kill_grace: Some(program.kill_grace),
            })
    }

    /// A stream to a command.
    pub(crate) fn command(sandbox: SandboxName, command: &Command) -> Self {
        let name = command.argv.first().map_or("", String::as_str);
        Self {
            sandbox,
            target: Target::Exec,
            program: Some(Program::new(name, command.kill_grace)),
            requester: None,
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
