//! What kept a launcher from becoming the command.

use std::io;

/// The step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::runner) enum Stage {
    /// Tying its life to that of its reaper.
    Scope,
    /// Entering the working directory.
    Workdir,
    /// Making a session, taking the terminal or the pipes.
    Setup,
    /// Finding the program: it is not there.
    Missing,
    /// It is there, and not executable.
    NotExecutable,
    /// It is there, and the interpreter that it names is not.
    Interpreter,
    /// Anything else that `execve` says.
    Execute,
}

impl Stage {
    const ALL: [Self; 7] = [
        Self::Scope,
        Self::Workdir,
        Self::Setup,
        Self::Missing,
        Self::NotExecutable,
        Self::Interpreter,
        Self::Execute,
    ];
}

/// A step, and the number of the error it ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::runner) struct Failure {
    pub(in crate::runner) stage: Stage,
    pub(in crate::runner) errno: i32,
}

impl Failure {
    pub(super) fn new(stage: Stage, errno: i32) -> Self {
        Self { stage, errno }
    }

    /// For `map_err`: the error of a system call, at this stage.
    pub(super) fn at<E: Into<io::Error>>(stage: Stage) -> impl FnOnce(E) -> Self {
        move |error| Self::new(stage, error.into().raw_os_error().unwrap_or_default())
    }

    pub(super) fn encode(self) -> [u8; 5] {
        let [a, b, c, d] = self.errno.to_le_bytes();
        [self.stage as u8, a, b, c, d]
    }

    pub(super) fn decode(bytes: &[u8]) -> io::Result<Self> {
        let &[stage, a, b, c, d] = bytes else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let stage = Stage::ALL
            .get(usize::from(stage))
            .ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self::new(*stage, i32::from_le_bytes([a, b, c, d])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_survives_the_way() {
        for stage in Stage::ALL {
            let failure = Failure::new(stage, 13);
            assert_eq!(Failure::decode(&failure.encode()).unwrap(), failure);
        }
        assert!(Failure::decode(&[99, 0, 0, 0, 0]).is_err());
    }
}
