//! The roster's time, which tests let pass faster.

use std::time::Duration;

use tokio::time::Instant;

/// Translates between the operator's time, in which everything is decided, and the clock's.
#[derive(Debug)]
pub(super) struct Clock {
    scale: f64,
    born: Instant,
}

impl Clock {
    pub(super) fn new(scale: f64) -> Self {
        Self {
            scale,
            born: Instant::now(),
        }
    }

    pub(super) fn now(&self) -> std::time::Instant {
        (self.born + self.born.elapsed().mul_f64(self.scale)).into_std()
    }

    /// When the clock shows `at`.
    pub(super) fn real(&self, at: std::time::Instant) -> Instant {
        let since = at.saturating_duration_since(self.born.into_std());
        self.born + self.real_length(since)
    }

    /// How long `length` takes by the clock.
    pub(super) fn real_length(&self, length: Duration) -> Duration {
        length.div_f64(self.scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_as_much_shorter_as_time_passes_faster() {
        let clock = Clock::new(100.0);
        let wait = clock.real(clock.now() + Duration::from_secs(30)) - Instant::now();
        assert!(wait <= Duration::from_millis(300), "{wait:?}");
        assert!(wait >= Duration::from_millis(200), "{wait:?}");
    }
}
