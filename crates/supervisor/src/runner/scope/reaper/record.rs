//! What a supervisor and a reaper say to each other: records of nine bytes.

use std::time::Duration;

use crate::runner::child::Ending;
use crate::runner::scope::Manner;

/// Bytes of a record: what it is, and two numbers.
pub(super) const RECORD: usize = 9;

/// What a reaper is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// The first record; the launcher's socket and the command's input come with it.
    Setup {
        manner: Manner,
        kill_background: bool,
    },
    /// A signal for the command's group.
    Signal(i32),
    /// The command's input is over.
    CloseInput,
    /// The tree has to end.
    End(Manner),
    /// The command has ended, and what it left behind is nobody's concern.
    Leave,
}

impl Told {
    pub(super) fn encode(self) -> [u8; RECORD] {
        match self {
            Self::Setup {
                manner,
                kill_background,
            } => record(
                1,
                millis(manner.grace),
                flags(manner.hangup, kill_background),
            ),
            Self::Signal(signal) => record(2, signal, 0),
            Self::CloseInput => record(3, 0, 0),
            Self::End(manner) => record(4, millis(manner.grace), flags(manner.hangup, false)),
            Self::Leave => record(5, 0, 0),
        }
    }

    pub(super) fn decode(bytes: [u8; RECORD]) -> Option<Self> {
        let (kind, a, b) = split(bytes);
        let manner = Manner {
            grace: Duration::from_millis(u64::try_from(a).unwrap_or_default()),
            hangup: b & 1 != 0,
        };
        match kind {
            1 => Some(Self::Setup {
                manner,
                kill_background: b & 2 != 0,
            }),
            2 => Some(Self::Signal(a)),
            3 => Some(Self::CloseInput),
            4 => Some(Self::End(manner)),
            5 => Some(Self::Leave),
            _ => None,
        }
    }
}

/// What a reaper says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// There is no launcher: this error's number says why.
    SpawnFailed(i32),
    /// The command has ended.
    Ended(Ending),
    /// The tree has been made to end, but for so many.
    Gone { leftover: u32 },
}

impl Said {
    pub(super) fn encode(self) -> [u8; RECORD] {
        match self {
            Self::SpawnFailed(errno) => record(1, errno, 0),
            Self::Ended(Ending::Code(code)) => record(2, code, 0),
            Self::Ended(Ending::Signal(signal)) => record(3, signal, 0),
            Self::Gone { leftover } => record(4, i32::try_from(leftover).unwrap_or(i32::MAX), 0),
        }
    }

    pub(super) fn decode(bytes: [u8; RECORD]) -> Option<Self> {
        let (kind, a, _) = split(bytes);
        match kind {
            1 => Some(Self::SpawnFailed(a)),
            2 => Some(Self::Ended(Ending::Code(a))),
            3 => Some(Self::Ended(Ending::Signal(a))),
            4 => Some(Self::Gone {
                leftover: u32::try_from(a).unwrap_or_default(),
            }),
            _ => None,
        }
    }
}

fn record(kind: u8, a: i32, b: i32) -> [u8; RECORD] {
    let mut bytes = [kind; RECORD];
    bytes[1..5].copy_from_slice(&a.to_le_bytes());
    bytes[5..].copy_from_slice(&b.to_le_bytes());
    bytes
}

fn split(bytes: [u8; RECORD]) -> (u8, i32, i32) {
    let [kind, a, b, c, d, e, f, g, h] = bytes;
    (
        kind,
        i32::from_le_bytes([a, b, c, d]),
        i32::from_le_bytes([e, f, g, h]),
    )
}

fn millis(time: Duration) -> i32 {
    i32::try_from(time.as_millis()).unwrap_or(i32::MAX)
}

fn flags(first: bool, second: bool) -> i32 {
    i32::from(first) | i32::from(second) << 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_survives_the_way() {
        let manner = Manner {
            grace: Duration::from_millis(1500),
            hangup: true,
        };
        for kill_background in [false, true] {
            let setup = Told::Setup {
                manner,
                kill_background,
            };
            assert_eq!(Told::decode(setup.encode()), Some(setup));
        }
        for told in [
            Told::Signal(10),
            Told::CloseInput,
            Told::End(manner),
            Told::Leave,
        ] {
            assert_eq!(Told::decode(told.encode()), Some(told));
        }
        for said in [
            Said::SpawnFailed(11),
            Said::Ended(Ending::Code(-1)),
            Said::Ended(Ending::Signal(9)),
            Said::Gone { leftover: 7 },
        ] {
            assert_eq!(Said::decode(said.encode()), Some(said));
        }
    }
}
