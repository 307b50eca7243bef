//! Durations and sizes as people write them in flags and files.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A duration: a number with `ms`, `s`, `m` or `h`; a bare number is seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dur(pub Duration);

/// A number of bytes: a number with `KiB`, `MiB` or `GiB`, or `k`, `m`, `g` for the same powers of
/// two; a bare number is bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// A text that is no such value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not {expected}")]
pub struct ValueError {
    given: String,
    expected: &'static str,
}

const DURATION: &str = "a duration: use a number with ms, s, m or h (a bare number is seconds)";
const SIZE: &str = "a size: use a number with KiB, MiB or GiB (a bare number is bytes)";

impl Dur {
    /// The duration of `seconds`.
    pub const fn secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// The duration of `milliseconds`.
    pub const fn millis(milliseconds: u64) -> Self {
        Self(Duration::from_millis(milliseconds))
    }
}

impl Size {
    /// The size of `mebibytes`.
    pub const fn mib(mebibytes: u64) -> Self {
        Self(mebibytes << 20)
    }

    /// The number of bytes, or the most that can be held in memory.
    pub fn bytes(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromStr for Dur {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let (number, unit) = split(text);
        let seconds_per_unit = match unit {
            "ms" => 0.001,
            "s" | "" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return Err(error(text, DURATION)),
        };
        let number = decimal(number).ok_or_else(|| error(text, DURATION))?;
        Duration::try_from_secs_f64(number * seconds_per_unit)
            .map(Self)
            .map_err(|_| error(text, DURATION))
    }
}

impl FromStr for Size {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let (number, unit) = split(text);
        let shift = match unit.to_ascii_lowercase().as_str() {
            "" => 0,
            "k" | "kib" => 10,
            "m" | "mib" => 20,
            "g" | "gib" => 30,
            _ => return Err(error(text, SIZE)),
        };
        let number: u64 = number.parse().map_err(|_| error(text, SIZE))?;
        number
            .checked_mul(1 << shift)
            .map(Self)
            .ok_or_else(|| error(text, SIZE))
    }
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim_start())
}

/// Digits with at most one point: neither a sign nor `inf` nor an exponent.
fn decimal(text: &str) -> Option<f64> {
    text.starts_with(|c: char| c.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

fn error(given: &str, expected: &'static str) -> ValueError {
    ValueError {
        given: given.chars().take(64).collect(),
        expected,
    }
}

impl fmt::Display for Dur {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        match millis {
            0 => f.write_str("0s"),
            _ if !millis.is_multiple_of(1000) => write!(f, "{millis}ms"),
            _ if millis.is_multiple_of(3_600_000) => write!(f, "{}h", millis / 3_600_000),
            _ if millis.is_multiple_of(60_000) => write!(f, "{}m", millis / 60_000),
            _ => write!(f, "{}s", millis / 1000),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
        let whole = |(shift, _): &(u32, &str)| self.0 > 0 && self.0.trailing_zeros() >= *shift;
        match units.into_iter().find(whole) {
            Some((shift, unit)) => write!(f, "{}{unit}", self.0 >> shift),
            None => self.0.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        for (text, millis, written) in [
            ("1500ms", 1500, "1500ms"),
            ("2s", 2000, "2s"),
            ("1.5", 1500, "1500ms"),
            ("90 m", 5_400_000, "90m"),
            ("2h", 7_200_000, "2h"),
            ("0", 0, "0s"),
        ] {
            let dur: Dur = text.parse().unwrap();
            assert_eq!(dur, Dur::millis(millis), "{text}");
            assert_eq!(dur.to_string(), written);
        }
        for bad in ["", "s", "-1s", "1d", "inf", "1e400s", "1.2.3s", "."] {
            assert!(bad.parse::<Dur>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn sizes_are_read_and_written() {
        for (text, bytes, written) in [
            ("512", 512, "512"),
            ("64k", 65_536, "64KiB"),
            ("1MiB", 1 << 20, "1MiB"),
            ("3 GiB", 3 << 30, "3GiB"),
            ("0", 0, "0"),
        ] {
            let size: Size = text.parse().unwrap();
            assert_eq!(size, Size(bytes), "{text}");
            assert_eq!(size.to_string(), written);
        }
        for bad in ["", "1.5MiB", "-1", "1MB", "99999999999GiB"] {
            assert!(bad.parse::<Size>().is_err(), "{bad:?}");
        }
    }
}
