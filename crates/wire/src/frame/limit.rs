//! How large a frame may be.

use tidegate_lifecycle::limits::{MAX_FRAME, MAX_LEGACY_MESSAGE};
use tidegate_lifecycle::{Capabilities, Capability};

use super::FrameError;

/// How large the frames of a peer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameLimit {
    /// 64 KiB of payload: the peer promised so with `frame-limit-v1`.
    Strict,
    /// Messages of 1 MiB, as released gateways take them.
    Legacy,
}

impl FrameLimit {
    /// What a message of a strict peer may hold besides payload: fields of a newer version.
    const STRICT_SLACK: usize = 1024;

    /// What follows from what a peer offered.
    pub fn of(offered: Capabilities) -> Self {
        if offered.has(Capability::FrameLimit) {
            Self::Strict
        } else {
            Self::Legacy
        }
    }

    /// Whether a message may have `len` bytes, known before any of them is there.
    pub(crate) fn check_message(self, len: usize) -> Result<(), FrameError> {
        let limit = match self {
            Self::Strict => MAX_FRAME + Self::STRICT_SLACK,
            Self::Legacy => MAX_LEGACY_MESSAGE,
        };
        check(len, limit)
    }

    /// Whether a frame may carry `len` bytes of payload.
    pub(crate) fn check_payload(self, len: usize) -> Result<(), FrameError> {
        match self {
            Self::Strict => check(len, MAX_FRAME),
            Self::Legacy => Ok(()), // the message's length is the limit
        }
    }
}

fn check(len: usize, limit: usize) -> Result<(), FrameError> {
    if len <= limit {
        Ok(())
    } else {
        Err(FrameError::TooLarge { len, limit })
    }
}
