//! Why a command did not start, in the words of a stream.

use tidegate_lifecycle::cause::{End, Origin, Reason};

use crate::runner::StartError;

/// The end of a stream whose command did not start.
pub(super) fn end(error: &StartError) -> End {
    let reason = match error {
        StartError::Invalid(_) => Reason::InvalidRequest,
        StartError::NotFound { .. } => Reason::ExecNotFound,
        StartError::NotExecutable { .. } => Reason::ExecNotExecutable,
        StartError::BadWorkdir { .. } => Reason::ExecBadWorkdir,
        StartError::Limit { .. } => Reason::LimitExecs,
        StartError::Resources { .. } => Reason::LimitResources,
        StartError::Stopping => Reason::SupervisorStopped,
        StartError::Failed { .. } => Reason::ExecStartFailed,
    };
    End::new(Origin::Supervisor, reason, error.to_string())
}
