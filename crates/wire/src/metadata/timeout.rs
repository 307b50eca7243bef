//! `grpc-timeout`: at most eight digits and a unit.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

/// Request: how long the whole call may take.
pub const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

const MAX_DIGITS: usize = 8;
const MAX_VALUE: u128 = 99_999_999;

/// Nanoseconds of each unit, the finest first.
const UNITS: [(char, u128); 6] = [
    ('n', 1),
    ('u', 1_000),
    ('m', 1_000_000),
    ('S', 1_000_000_000),
    ('M', 60 * 1_000_000_000),
    ('H', 3_600 * 1_000_000_000),
];

/// How long the whole call may take; none if nothing valid is said.
pub fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(TIMEOUT)?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > MAX_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value: u128 = digits.parse().ok()?;
    let (_, nanos) = UNITS
        .into_iter()
        .find(|(name, _)| unit.starts_with(*name))?;
    Some(duration(value * nanos))
}

/// Says how long the whole call may take, in the finest unit that can; never longer than given.
pub fn set_timeout(headers: &mut HeaderMap, limit: Duration) {
    let (unit, nanos) = UNITS
        .into_iter()
        .find(|(_, nanos)| limit.as_nanos() / nanos <= MAX_VALUE)
        .unwrap_or(UNITS[UNITS.len() - 1]);
    let value = (limit.as_nanos() / nanos).min(MAX_VALUE);
    if let Ok(value) = HeaderValue::from_str(&format!("{value}{unit}")) {
        headers.insert(TIMEOUT, value);
    }
}

fn duration(nanos: u128) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    let seconds = u64::try_from(nanos / SECOND).unwrap_or(u64::MAX);
    Duration::from_secs(seconds) + Duration::from_nanos((nanos % SECOND) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str) -> Option<Duration> {
        timeout(&HeaderMap::from_iter([(
            TIMEOUT,
            HeaderValue::from_static(text),
        )]))
    }

    #[test]
    fn every_unit_is_read() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(read("1H"), seconds(3600));
        assert_eq!(read("2M"), seconds(120));
        assert_eq!(read("3S"), seconds(3));
        assert_eq!(read("4m"), Some(Duration::from_millis(4)));
        assert_eq!(read("5u"), Some(Duration::from_micros(5)));
        assert_eq!(read("99999999n"), Some(Duration::from_nanos(99_999_999)));
        assert_eq!(read("99999999H"), seconds(99_999_999 * 3600));
        assert_eq!(read("0S"), seconds(0));
    }

    #[test]
    fn what_is_not_a_timeout_is_none() {
        for text in [
            "",
            "S",
            "1",
            "1s",
            "123456789n",
            "-1S",
            "+1S",
            "1.5S",
            "1 S",
            "\u{7f}",
        ] {
            let Ok(value) = HeaderValue::from_str(text) else {
                continue;
            };
            assert_eq!(
                timeout(&HeaderMap::from_iter([(TIMEOUT, value)])),
                None,
                "{text:?}"
            );
        }
        assert_eq!(timeout(&HeaderMap::new()), None);
    }

    #[test]
    fn what_is_written_is_read_as_nearly_the_same_and_never_longer() {
        for limit in [1, 1_500, 10_000_000, 86_400_000_000, 1_000_000_000_000_000] {
            let limit = Duration::from_micros(limit);
            let mut headers = HeaderMap::new();
            set_timeout(&mut headers, limit);
            let back = timeout(&headers).unwrap();
            assert!(
                back <= limit && limit - back <= limit / 1000,
                "{limit:?} {back:?}"
            );
        }
        let mut headers = HeaderMap::new();
        set_timeout(&mut headers, Duration::MAX);
        assert_eq!(headers[TIMEOUT], "99999999H");
    }
}
