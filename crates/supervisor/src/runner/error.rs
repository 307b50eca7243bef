//! Why a command does not run.

use std::io;

use nix::errno::Errno;
use thiserror::Error;
use tidegate_lifecycle::exec::{Command, InvalidCommand};

use super::launch::{Failure, Stage};

/// Why a command does not run. Nothing of it has run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StartError {
    /// It could not be run anywhere.
    #[error(transparent)]
    Invalid(#[from] InvalidCommand),
    /// There is no such program.
    #[error("{program:?} was not found")]
    NotFound {
        /// As the command calls it.
        program: String,
    },
    /// There is such a file, and it cannot be executed.
    #[error("{program:?} cannot be executed: {problem}")]
    NotExecutable {
        /// As the command calls it.
        program: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// There is no such directory, or it may not be entered.
    #[error("the working directory {workdir:?} cannot be entered ({errno})")]
    BadWorkdir {
        /// As the command calls it.
        workdir: String,
        /// The error's name, like `ENOENT`.
        errno: String,
    },
    /// As many commands run as may run at a time.
    #[error("{limit} commands run in this sandbox, which is as many as may (exec_limit)")]
    Limit {
        /// How many that are.
        limit: usize,
    },
    /// There are no processes, descriptors or memory left.
    #[error("the sandbox has no resources left for another process ({errno})")]
    Resources {
        /// The error's name, like `EMFILE`.
        errno: String,
    },
    /// The runner has been stopped.
    #[error("the supervisor is stopping")]
    Stopping,
    /// Anything else.
    #[error("the program could not be started ({errno})")]
    Failed {
        /// The error's name, like `EIO`.
        errno: String,
    },
}

impl StartError {
    /// What a launcher's failure means for the command it should have become.
    pub(super) fn launch(failure: Failure, command: &Command, workdir: Option<&str>) -> Self {
        let program = || command.argv.first().cloned().unwrap_or_default();
        let not_executable = |problem| Self::NotExecutable {
            program: program(),
            problem,
        };
        let errno = Errno::from_raw(failure.errno);
        match failure.stage {
            _ if is_shortage(errno) => Self::Resources { errno: name(errno) },
            Stage::Missing => Self::NotFound { program: program() },
            Stage::NotExecutable if errno == Errno::ENOEXEC => {
                not_executable("it has no format that the system knows")
            }
            Stage::NotExecutable => not_executable("it is not permitted"),
            Stage::Interpreter => not_executable("the interpreter that it names was not found"),
            Stage::Workdir => Self::BadWorkdir {
                workdir: workdir.unwrap_or_default().to_owned(),
                errno: name(errno),
            },
            Stage::Scope | Stage::Setup | Stage::Execute => Self::Failed { errno: name(errno) },
        }
    }

    /// What an error of ours means before there is a launcher.
    pub(super) fn own(error: &io::Error) -> Self {
        let Some(number) = error.raw_os_error() else {
            return Self::Failed {
                errno: error.kind().to_string(),
            };
        };
        let errno = Errno::from_raw(number);
        match is_shortage(errno) {
            true => Self::Resources { errno: name(errno) },
            false => Self::Failed { errno: name(errno) },
        }
    }
}

fn is_shortage(errno: Errno) -> bool {
    use Errno::{EAGAIN, EMFILE, ENFILE, ENOMEM, ENOSPC};
    matches!(errno, EAGAIN | EMFILE | ENFILE | ENOMEM | ENOSPC)
}

fn name(errno: Errno) -> String {
    format!("{errno:?}")
}
