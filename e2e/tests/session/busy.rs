//! A session whose processor has its hands full of data.

use std::io::Read as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tidegate_client::Client;
use tidegate_e2e::measure::Samples;
use tidegate_e2e::options::NO_HEARTBEATS;
use tidegate_e2e::raw::{self, Supervisor};
use tidegate_e2e::world::open;
use tidegate_e2e::{Options, Topology, World, every_topology, sized};
use tidegate_testkit::target::Target;
use tokio::time::{timeout, timeout_at};

every_topology! {
    ss_05_control_gets_through_a_busy_processor,
}

const INTERVAL: Duration = Duration::from_secs(1);

/// What heartbeat and round trip are promised.
const PROMISED: Duration = Duration::from_secs(1);

/// What may be carried while a word of control waits: some turns of every stream. A machine that is
/// busy with other things makes the wait longer, and not what passes meanwhile.
const OVERTAKING: u64 = 128 << 20;

/// By when eight times that must have been carried.
const FLOODED: Duration = Duration::from_secs(150);

/// Eight streams at full speed on one CPU. A session of the test's own counts the heartbeats; opening
/// streams takes a word there and a word back on the session that carries the flood.
async fn ss_05_control_gets_through_a_busy_processor(topology: Topology) {
    let options = Options::new()
        .one_cpu()
        .gateway("heartbeat_interval", "1s")
        .expect_warning(NO_HEARTBEATS);
    let world = World::start(topology, options).await;
    let (endless, echo) = (Target::endless().unwrap(), Target::echo().unwrap());
    let client = world.client();
    let mut watch = Supervisor::connect_for(&world, "watch", &raw::SESSION).await;
    let flood = Flood::start(world.forward(&endless).await.address());
    let long = Instant::now() + sized(Duration::from_secs(8), Duration::from_secs(60));
    // A machine that does other things as well takes longer for as much.
    let enough = || long < Instant::now() && flood.carried() > 8 * OVERTAKING;
    let measured = async {
        tokio::join!(
            heartbeats(&mut watch, &flood, enough),
            words(&client, &echo, &flood, enough),
        )
    };
    let (heartbeats, words) = timeout(FLOODED, measured).await.expect("a flood");
    flood.stop();
    heartbeats.assert_in_time("heartbeats");
    words.assert_in_time("words there and back");
    assert_eq!(world.sessions(), 1);
    drop((watch, client));
    world.settle().await;
}

/// Listens to heartbeats, which are late from one interval after the one before.
async fn heartbeats(watch: &mut Supervisor, flood: &Flood, enough: impl Fn() -> bool) -> Waits {
    let mut waits = Waits::default();
    watch.heartbeat().await;
    while !enough() {
        let due = Instant::now() + INTERVAL;
        if timeout_at(due.into(), watch.heartbeat()).await.is_err() {
            let wait = Wait::begin(flood);
            watch.heartbeat().await;
            waits.push(wait, flood);
        } else {
            waits.none();
        }
    }
    waits
}

/// Opens streams to an echo.
async fn words(client: &Client, echo: &Target, flood: &Flood, enough: impl Fn() -> bool) -> Waits {
    let mut waits = Waits::default();
    while !enough() {
        let wait = Wait::begin(flood);
        let stream = open(client, echo.address()).await.unwrap();
        waits.push(wait, flood);
        stream.reset();
        tokio::time::sleep(INTERVAL / 5).await;
    }
    waits
}

/// How long was waited, and what passed meanwhile.
#[derive(Debug, Default)]
struct Waits {
    times: Samples,
    passed: Vec<u64>,
}

struct Wait {
    begun: Instant,
    carried: u64,
}

impl Wait {
    fn begin(flood: &Flood) -> Self {
        Self {
            begun: Instant::now(),
            carried: flood.carried(),
        }
    }
}

impl Waits {
    fn push(&mut self, wait: Wait, flood: &Flood) {
        self.times.push(wait.begun.elapsed());
        self.passed.push(flood.carried() - wait.carried);
    }

    fn none(&mut self) {
        self.times.push(Duration::ZERO);
        self.passed.push(0);
    }

    /// Fails if more than one in a hundred had to wait for long while much else was carried.
    fn assert_in_time(&self, what: &str) {
        assert!(self.times.count() >= 5, "{what}: {self:?}");
        let overtaken = self.passed.iter().filter(|&&passed| passed > OVERTAKING);
        let overtaken = overtaken.count();
        let in_time = self.times.percentile(99) < PROMISED;
        assert!(
            in_time || overtaken * 100 <= self.passed.len(),
            "{what}: {self:?}"
        );
    }
}

/// Local programs that read all they can get.
struct Flood {
    carried: Arc<AtomicU64>,
    stopped: Arc<AtomicBool>,
    readers: Vec<JoinHandle<()>>,
}

impl Flood {
    const READERS: usize = 8;

    fn start(address: SocketAddr) -> Self {
        let carried = Arc::new(AtomicU64::new(0));
        let stopped = Arc::new(AtomicBool::new(false));
        let reader = |_| {
            let (carried, stopped) = (Arc::clone(&carried), Arc::clone(&stopped));
            let socket = TcpStream::connect(address).unwrap();
            std::thread::spawn(move || read_all(socket, &carried, &stopped))
        };
        let readers = (0..Self::READERS).map(reader).collect();
        Self {
            carried,
            stopped,
            readers,
        }
    }

    fn carried(&self) -> u64 {
        self.carried.load(Ordering::Relaxed)
    }

    /// Ends the streams, which have not ended before.
    fn stop(self) {
        self.stopped.store(true, Ordering::Relaxed);
        for reader in self.readers {
            reader.join().expect("an endless stream goes on");
        }
    }
}

fn read_all(mut socket: TcpStream, carried: &AtomicU64, stopped: &AtomicBool) {
    let mut buffer = vec![0; 256 * 1024];
    while !stopped.load(Ordering::Relaxed) {
        let read = socket.read(&mut buffer).expect("an endless stream goes on");
        assert_ne!(read, 0, "an endless stream has ended");
        carried.fetch_add(read as u64, Ordering::Relaxed);
    }
}
