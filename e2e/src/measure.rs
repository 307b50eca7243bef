//! Round trips and rates.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tidegate_client::{Client, Stream};
use tidegate_testkit::content::Content;
use tidegate_testkit::socket::Socket;

use crate::world::open;

/// Durations of the same thing, done many times.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    /// Adds one.
    pub fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    /// Adds all of another.
    pub fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
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

/// How often something is measured that is promised to be quick.
const TRIES: usize = 6;

/// Measures until what was measured is as good as promised, a few times at most. Whatever else the
/// machine does spoils some of the tries; a fault of ours spoils them all.
///
/// # Panics
///
/// If no try was good.
pub async fn in_one_try<T: fmt::Debug>(
    mut measure: impl AsyncFnMut() -> T,
    good: impl Fn(&T) -> bool,
) {
    let mut bad = Vec::new();
    while bad.len() < TRIES {
        let measured = measure().await;
        if good(&measured) {
            return;
        }
        bad.push(measured);
    }
    panic!("not once was it as good as promised: {bad:#?}");
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

/// The same on a stream of the SDK.
///
/// # Panics
///
/// If the stream ends, or returns something else.
pub async fn ping_pong_on(
    stream: &mut Stream,
    message: &[u8],
    rounds: usize,
    pause: Duration,
) -> Samples {
    let mut samples = Samples::default();
    for _ in 0..rounds {
        let begun = Instant::now();
        stream.send(message).await.expect("the echo is alive");
        let mut returned = Vec::new();
        while returned.len() < message.len() {
            let piece = stream.recv().await.expect("the echo is alive");
            returned.extend_from_slice(&piece.expect("the echo has more to say"));
        }
        assert_eq!(returned, message, "the echo returns what it was sent");
        samples.push(begun.elapsed());
        tokio::time::sleep(pause).await;
    }
    samples
}

/// Downloads everything on a stream of `client`'s, checks it, and says how long that took.
///
/// # Panics
///
/// If something else arrives.
pub async fn fetch_with(client: &Client, source: SocketAddr, content: Content) -> Duration {
    let begun = Instant::now();
    let fetching = async {
        let mut stream = open(client, source).await?;
        stream.finish().await?;
        let mut fetched = Vec::new();
        while let Some(piece) = stream.recv().await? {
            fetched.extend_from_slice(&piece);
        }
        stream.closed().await?;
        Ok::<_, tidegate_client::End>(fetched)
    };
    let fetched = fetching.await.expect("the download finishes");
    let took = begun.elapsed();
    assert!(fetched == content.to_vec(), "it is what was sent");
    took
}
