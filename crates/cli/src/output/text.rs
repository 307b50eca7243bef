//! Times, sizes and foreign words as people and programs read them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The text without what could steer a terminal: control characters become blanks.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// How long ago it was, in its largest unit; `-` if nobody knows.
pub(crate) fn age(since: Option<SystemTime>, now: SystemTime) -> String {
    let Some(since) = since else {
        return "-".to_owned();
    };
    let seconds = now.duration_since(since).unwrap_or_default().as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A number of bytes in its largest binary unit.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A time in UTC, as RFC 3339 writes it, to the millisecond.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_millis()
    )
}

/// The date of a day counted from 1970-01-01, in the Gregorian calendar. Years begin in March here,
/// so that the leap day is the last of its year.
const fn civil(days: u64) -> (u64, u64, u64) {
    const ERA: u64 = 146_097; // days of 400 years
    let day = days + 719_468; // from 0000-03-01
    let of_era = day % ERA;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = day / ERA * 400 + year_of_era + (month <= 2) as u64;
    (year, month, of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        let check = |millis, text: &str| {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_millis(millis)), text);
        };
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
        check(1_767_225_599_999, "2025-12-31T23:59:59.999Z");
        check(4_107_542_400_000, "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn ages_and_sizes_have_one_unit() {
        let then = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let check = |seconds, text| {
            assert_eq!(age(Some(then), then + Duration::from_secs(seconds)), text);
        };
        check(0, "0s");
        check(61, "1m");
        check(7300, "2h");
        check(200_000, "2d");
        assert_eq!(age(None, then), "-");
        assert_eq!(age(Some(then), UNIX_EPOCH), "0s");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.0 KiB");
        assert_eq!(bytes(1_048_575), "1.0 MiB");
        assert_eq!(bytes(u64::MAX), "16384.0 PiB");
    }
}
