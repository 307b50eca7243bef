//! How a command ended, between protobuf and ours.

use tidegate_lifecycle::exec::{Exit, ExitReason, KillScope, Summary};

use crate::convert;
use crate::proto::openshell as proto;

pub(super) fn encode(exit: &Exit) -> proto::ExecSandboxExit {
    proto::ExecSandboxExit {
        exit_code: exit.code,
        reason: reason(exit.reason).into(),
        signal: exit.signal.unwrap_or_default(),
        stdout: Some(encode_summary(exit.stdout)),
        stderr: Some(encode_summary(exit.stderr)),
        duration: Some(convert::duration(exit.duration)),
        kill_scope: encode_scope(exit.scope),
        leftover: exit.leftover,
    }
}

pub(super) fn decode(exit: &proto::ExecSandboxExit) -> Exit {
    Exit {
        code: exit.exit_code,
        reason: decode_reason(exit.reason()),
        signal: Some(exit.signal).filter(|signal| *signal != 0),
        stdout: exit.stdout.map(decode_summary).unwrap_or_default(),
        stderr: exit.stderr.map(decode_summary).unwrap_or_default(),
        duration: convert::length(exit.duration).unwrap_or_default(),
        scope: decode_scope(exit.kill_scope()),
        leftover: exit.leftover,
    }
}

const fn reason(reason: ExitReason) -> proto::ExecExitReason {
    match reason {
        ExitReason::Exited => proto::ExecExitReason::ProcessExited,
        ExitReason::Signaled => proto::ExecExitReason::Signaled,
        ExitReason::TimedOut => proto::ExecExitReason::OperationTimeout,
        ExitReason::Cancelled => proto::ExecExitReason::Cancelled,
    }
}

/// A reason that is not known here is read as none: the code tells enough.
const fn decode_reason(reason: proto::ExecExitReason) -> ExitReason {
    match reason {
        proto::ExecExitReason::Unspecified | proto::ExecExitReason::ProcessExited => {
            ExitReason::Exited
        }
        proto::ExecExitReason::Signaled => ExitReason::Signaled,
        proto::ExecExitReason::OperationTimeout => ExitReason::TimedOut,
        proto::ExecExitReason::Cancelled => ExitReason::Cancelled,
    }
}

pub(super) fn encode_scope(scope: KillScope) -> i32 {
    let scope = match scope {
        KillScope::None => proto::KillScope::Unspecified,
        KillScope::Cgroup => proto::KillScope::Cgroup,
        KillScope::Reaper => proto::KillScope::Reaper,
    };
    scope.into()
}

pub(super) const fn decode_scope(scope: proto::KillScope) -> KillScope {
    match scope {
        proto::KillScope::Unspecified => KillScope::None,
        proto::KillScope::Cgroup => KillScope::Cgroup,
        proto::KillScope::Reaper => KillScope::Reaper,
    }
}

const fn encode_summary(summary: Summary) -> proto::ExecOutputSummary {
    proto::ExecOutputSummary {
        bytes_total: summary.total,
        bytes_sent: summary.sent,
        truncated: summary.truncated,
        held_open: summary.held_open,
    }
}

const fn decode_summary(summary: proto::ExecOutputSummary) -> Summary {
    Summary {
        total: summary.bytes_total,
        sent: summary.bytes_sent,
        truncated: summary.truncated,
        held_open: summary.held_open,
    }
}
