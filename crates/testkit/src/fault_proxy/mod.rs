//! A TCP hop that misbehaves on command, between any two others.
//!
//! Everything may be changed while connections live, through a shared [`FaultProxy`]:
//!
//! | call | what the two ends notice |
//! |---|---|
//! | [`delay`](FaultProxy::delay), [`rate`](FaultProxy::rate) | a long or a thin line |
//! | [`hold`](FaultProxy::hold) | nothing moves; sockets stay open, writers block at last |
//! | [`discard`](FaultProxy::discard) | bytes are taken and lost; sockets stay open |
//! | [`cut_after`](FaultProxy::cut_after) | FIN or RST after so many bytes of one direction |
//! | [`end_all`](FaultProxy::end_all) | FIN (no TLS close_notify before it) or RST at once |
//! | [`strand`](FaultProxy::strand) | nothing moves on what is open; later connections work |
//! | [`end_stranded`](FaultProxy::end_stranded) | FIN or RST, late |
//! | [`refuse`](FaultProxy::refuse) | new connections are reset |
//! | [`redirect`](FaultProxy::redirect) | new connections go elsewhere |
//!
//! Otherwise it is transparent: FIN is passed on as FIN, RST as RST, in order and with the delay.

mod link;
mod pump;
mod settings;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{sync::watch, task::JoinSet};

use self::settings::{Cut, Flow, Gate, Settings};
pub use self::settings::{Direction, Ending};
use crate::{background::Background, socket::reset_on_close};

/// A proxy on its own thread; dropping it closes its port and all its connections.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    settings: watch::Sender<Settings>,
    counts: Arc<Counts>,
    _thread: Background,
}

#[derive(Debug, Default)]
struct Counts {
    accepted: AtomicUsize,
    open: AtomicUsize,
}

impl FaultProxy {
    /// Listens on a free port of 127.0.0.1 and passes connections on to `upstream`.
    ///
    /// # Errors
    ///
    /// If there is no free port or thread.
    pub fn start(upstream: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let settings = watch::Sender::new(Settings::new(upstream));
        let counts = Arc::new(Counts::default());
        let (watched, counted) = (settings.subscribe(), Arc::clone(&counts));
        let thread = Background::start("fault-proxy", move || serve(listener, watched, counted))?;
        Ok(Self {
            address,
            settings,
            counts,
            _thread: thread,
        })
    }

    /// Returns the address to connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns how many connections it has accepted.
    pub fn accepted(&self) -> usize {
        self.counts.accepted.load(Ordering::Relaxed)
    }

    /// Returns how many connections are open.
    pub fn open(&self) -> usize {
        self.counts.open.load(Ordering::Relaxed)
    }

    /// Makes each byte, FIN and RST of `direction` arrive this much later.
    pub fn delay(&self, direction: Direction, delay: Duration) {
        self.change(direction, |flow| flow.delay = delay);
    }

    /// Limits `direction` to this many bytes a second on each connection; `None` lifts the limit.
    pub fn rate(&self, direction: Direction, bytes_per_second: Option<u64>) {
        self.change(direction, |flow| flow.rate = bytes_per_second);
    }

    /// Stops reading and writing `direction`.
    pub fn hold(&self, direction: Direction) {
        self.change(direction, |flow| flow.gate = Gate::Held);
    }

    /// Throws away what arrives in `direction`; the sender notices nothing.
    pub fn discard(&self, direction: Direction) {
        self.change(direction, |flow| flow.gate = Gate::Discarding);
    }

    /// Lets `direction` flow again.
    pub fn pass(&self, direction: Direction) {
        self.change(direction, |flow| flow.gate = Gate::Open);
    }

    /// Ends a connection once it has moved `bytes` bytes in `direction`, counted from its start.
    pub fn cut_after(&self, direction: Direction, bytes: u64, ending: Ending) {
        self.change(direction, |flow| flow.cut = Some(Cut { bytes, ending }));
    }

    /// Ends the connections that are open, and leaves later ones alone.
    pub fn end_all(&self, ending: Ending) {
        self.settings
            .send_modify(|settings| settings.end_all(ending));
    }

    /// Holds the connections that are open for ever, both ways, and leaves later ones alone.
    pub fn strand(&self) {
        self.settings
            .send_modify(|settings| settings.strandings += 1);
    }

    /// Ends the connections that were stranded.
    pub fn end_stranded(&self, ending: Ending) {
        self.settings
            .send_modify(|settings| settings.end_stranded(ending));
    }

    /// Resets new connections at once, or serves them again.
    pub fn refuse(&self, refuse: bool) {
        self.settings
            .send_modify(|settings| settings.refuse = refuse);
    }

    /// Passes new connections on to `upstream`.
    pub fn redirect(&self, upstream: SocketAddr) {
        self.settings
            .send_modify(|settings| settings.upstream = upstream);
    }

    fn change(&self, direction: Direction, change: impl Fn(&mut Flow)) {
        self.settings
            .send_modify(|settings| settings.flows_mut(direction).for_each(&change));
    }
}

async fn serve(listener: TcpListener, settings: watch::Receiver<Settings>, counts: Arc<Counts>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listener registers");
    let mut links = JoinSet::new();
    loop {
        let arrival = tokio::select! {
            arrival = listener.accept() => arrival,
            Some(_) = links.join_next() => continue,
        };
        let Ok((downstream, _)) = arrival else {
            continue;
        };
        counts.accepted.fetch_add(1, Ordering::Relaxed);
        if settings.borrow().refuse {
            reset_on_close(&downstream);
            continue;
        }
        let open = OpenGuard::new(&counts);
        let settings = settings.clone();
        links.spawn(async move {
            link::run(downstream, settings).await;
            drop(open);
        });
    }
}

/// Counts a connection as open for as long as it lives.
struct OpenGuard(Arc<Counts>);

impl OpenGuard {
    fn new(counts: &Arc<Counts>) -> Self {
        counts.open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(counts))
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
