//! Round trips and rates.

use std::time::{Duration, Instant};

use tidegate_testkit::socket::Socket;

/// Durations of the same thing, done many times.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    /// Adds one.
    pub fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The sample that `percent` of all are not above.
    ///
    /// # Panics
    ///
    /// If there are no samples.
    pub fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort();
        let index = (sorted.len() * percent).div_ceil(100).max(1) - 1;
        sorted[index.min(sorted.len() - 1)]
    }

    /// How many lie within `range`.
    pub fn within(&self, range: std::ops::Range<Duration>) -> usize {
        self.0
            .iter()
            .filter(|sample| range.contains(*sample))
            .count()
    }
}

/// Sends `message` to an echo and waits for its return, `rounds` times, with `pause` between.
///
/// # Panics
///
/// If the connection breaks, or returns something else.
pub async fn ping_pong(socket: &Socket, message: &[u8], rounds: usize, pause: Duration) -> Samples {
    let mut samples = Samples::default();
    for _ in 0..rounds {
        let begun = Instant::now();
        socket.write(message).await.expect("the echo is alive");
        let returned = socket.read(message.len()).await;
        assert_eq!(returned, message, "the echo returns what it was sent");
        samples.push(begun.elapsed());
        tokio::time::sleep(pause).await;
    }
    samples
}
