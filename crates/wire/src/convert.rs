//! Time, targets and text between protobuf and ours.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidegate_lifecycle::Target;

use crate::decode::DecodeError;
use crate::proto::openshell::TcpRelayTarget;

/// The longest time that a peer can set: far beyond every clock's use, and safe to reckon with.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A length of time as protobuf writes it; the longest it can write, if it is longer.
pub(crate) fn duration(length: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(length.as_secs()).unwrap_or(i64::MAX),
        nanos: length.subsec_nanos().cast_signed(),
    }
}

/// A length of time as we hold it, a year at most; none for a negative one.
pub(crate) fn length(duration: Option<prost_types::Duration>) -> Option<Duration> {
    let length = Duration::try_from(duration?).ok()?;
    Some(length.min(LONGEST))
}

/// A length of time as 0.0.x reads it: in seconds, rounded up. Never 0, which a reader could take
/// for "unset" or for "all the time".
pub(crate) fn whole_seconds(length: Duration) -> u32 {
    let rounded_up = length
        .as_secs()
        .saturating_add(u64::from(length.subsec_nanos() > 0));
    u32::try_from(rounded_up).unwrap_or(u32::MAX).max(1)
}

/// A point in time as protobuf writes it.
pub(crate) fn timestamp(time: SystemTime) -> prost_types::Timestamp {
    prost_types::Timestamp::from(time)
}

/// A point in time as we hold it; none for one that the clock cannot show.
pub(crate) fn time(timestamp: Option<prost_types::Timestamp>) -> Option<SystemTime> {
    SystemTime::try_from(timestamp?).ok()
}

/// A point in time as 0.0.x writes it: milliseconds since 1970, or 0.
pub(crate) fn millis(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A point in time as 0.0.x reads it; none for 0 and less.
pub(crate) fn time_of_millis(millis: i64) -> Option<SystemTime> {
    let millis = u64::try_from(millis).ok().filter(|millis| *millis > 0)?;
    UNIX_EPOCH.checked_add(Duration::from_millis(millis))
}

/// A TCP target as it arrived.
pub(crate) fn tcp_target(target: &TcpRelayTarget) -> Result<Target, DecodeError> {
    Target::tcp(&target.host, target.port).map_err(|error| DecodeError::bad("target.tcp", error))
}

/// The longest beginning of `text` that has at most `max` bytes.
pub(crate) fn bounded(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_both_dialects() {
        let time_before = UNIX_EPOCH + Duration::from_millis(1_764_530_000_123);
        assert_eq!(time(Some(timestamp(time_before))), Some(time_before));
        assert_eq!(time_of_millis(millis(time_before)), Some(time_before));
        assert_eq!(time_of_millis(0), None);
        assert_eq!(time_of_millis(-1), None);
    }

    #[test]
    fn lengths_survive_and_negative_ones_are_none() {
        let length_before = Duration::new(3, 500_000_001);
        assert_eq!(length(Some(duration(length_before))), Some(length_before));
        assert_eq!(
            length(Some(prost_types::Duration {
                seconds: -1,
                nanos: 0
            })),
            None
        );
        assert_eq!(length(Some(duration(Duration::MAX))), Some(LONGEST));
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(bounded("aüb", 2), "a");
        assert_eq!(bounded("aüb", 3), "aü");
        assert_eq!(bounded("aüb", 30), "aüb");
    }
}
