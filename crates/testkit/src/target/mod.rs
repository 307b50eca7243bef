//! TCP programs for the far end of a tunnel. Each connection runs the same script and keeps an
//! account of what it read, wrote and met.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use tidegate_testkit::{record::Ended, target::Target};
//!
//! let target = Target::answer_after_end()?;
//! // ... a client sends 5 bytes and FIN to target.address() ...
//! let seen = target.next().await.until_read_end().await;
//! assert_eq!((seen.bytes_read, seen.read_end), (5, Some(Ended::Eof)));
//! # Ok(())
//! # }
//! ```

mod black_hole;
mod script;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};

pub use self::{black_hole::BlackHole, script::Step};
use crate::{
    background::Background,
    content::Content,
    record::Record,
    socket::Socket,
    wait::{self, GENEROUS},
};

/// A TCP server on loopback; dropping it closes its port and all its connections.
#[derive(Debug)]
pub struct Target {
    address: SocketAddr,
    connections: watch::Receiver<Vec<Connection>>,
    handed_out: AtomicUsize,
    _thread: Background,
}

/// Each way to start one fails only if there is no port or no thread to be had.
impl Target {
    /// Sends back all it reads; answers FIN with FIN.
    pub fn echo() -> io::Result<Self> {
        Self::start([Step::Echo])
    }

    /// Sends `content`, then FIN, and reads to the end meanwhile.
    pub fn source(content: Content) -> io::Result<Self> {
        Self::start([Step::Exchange(content)])
    }

    /// Reads to FIN, then closes; its account has the digest.
    pub fn sink() -> io::Result<Self> {
        Self::start([Step::ReadToEnd])
    }

    /// Reads at most `chunk` bytes every `every`.
    pub fn slow_sink(chunk: usize, every: Duration) -> io::Result<Self> {
        Self::start([Step::ReadSlowly { chunk, every }])
    }

    /// Reads to FIN and says nothing, not even FIN of its own, until the test's cue.
    pub fn silent() -> io::Result<Self> {
        Self::start([Step::ReadToEnd, Step::Cue])
    }

    /// Reads nothing and sends nothing.
    pub fn never_reader() -> io::Result<Self> {
        Self::start([Step::Hold])
    }

    /// Speaks first, then echoes.
    pub fn banner(banner: impl Into<Bytes>) -> io::Result<Self> {
        Self::start([Step::Send(banner.into()), Step::Echo])
    }

    /// Sends `before` bytes and, on the test's cue, a RST.
    pub fn resetter(before: u64) -> io::Result<Self> {
        Self::start([
            Step::SendContent(Content::new(before, 0)),
            Step::Cue,
            Step::Reset,
        ])
    }

    /// Reads to FIN, then answers `OK <bytes>` and a newline, and closes.
    pub fn answer_after_end() -> io::Result<Self> {
        Self::start([Step::ReadToEnd, Step::SendTotal])
    }

    /// Sends `content` and FIN at once, then reads to the end.
    pub fn finish_first(content: Content) -> io::Result<Self> {
        Self::start([Step::SendContent(content), Step::Finish, Step::ReadToEnd])
    }

    /// Sends without end until a write fails.
    pub fn endless() -> io::Result<Self> {
        Self::start([Step::SendForever])
    }

    /// Runs `script` on each connection to a free port of 127.0.0.1.
    pub fn start(script: impl Into<Vec<Step>>) -> io::Result<Self> {
        Self::start_on((Ipv4Addr::LOCALHOST, 0).into(), script)
    }

    /// Runs `script` on each connection to `address`, for instance one of `::1`.
    ///
    /// # Errors
    ///
    /// If the address cannot be bound.
    pub fn start_on(address: SocketAddr, script: impl Into<Vec<Step>>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (accepted, connections) = watch::channel(Vec::new());
        let script: Arc<[Step]> = script.into().into();
        let thread = Background::start("target", move || serve(listener, script, accepted))?;
        Ok(Self {
            address,
            connections,
            handed_out: AtomicUsize::new(0),
            _thread: thread,
        })
    }

    /// Returns the address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns how many connections it has accepted.
    pub fn accepted(&self) -> usize {
        self.connections.borrow().len()
    }

    /// Returns how many of its connections are open at its end.
    pub fn open(&self) -> usize {
        self.connections
            .borrow()
            .iter()
            .filter(|connection| !connection.seen().closed)
            .count()
    }

    /// Returns every connection so far, in the order of their arrival.
    pub fn all(&self) -> Vec<Connection> {
        self.connections.borrow().clone()
    }

    /// Waits for the next connection that this has not returned yet.
    ///
    /// # Cancel safety
    ///
    /// Not safe: a call that was begun has its connection.
    ///
    /// # Panics
    ///
    /// After 30 s.
    pub async fn next(&self) -> Connection {
        let index = self.handed_out.fetch_add(1, Ordering::Relaxed);
        let mut connections = self.connections.clone();
        let arrived = connections.wait_for(|connections| connections.len() > index);
        wait::within(GENEROUS, "a connection to the target", arrived)
            .await
            .expect("the target lives as long as `self`")[index]
            .clone()
    }
}

/// One connection a target has accepted: its account, and the cue for a script that waits for one.
#[derive(Clone, Debug)]
pub struct Connection {
    peer: SocketAddr,
    record: Arc<Record>,
    cue: Arc<Notify>,
}

impl Connection {
    /// Returns the other end's address.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Lets one [`Step::Cue`], reached or yet to come, pass.
    pub fn cue(&self) {
        self.cue.notify_one();
    }
}

impl Deref for Connection {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.record
    }
}

async fn serve(
    listener: TcpListener,
    script: Arc<[Step]>,
    accepted: watch::Sender<Vec<Connection>>,
) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listener registers");
    let mut running = JoinSet::new();
    loop {
        let arrival = tokio::select! {
            arrival = listener.accept() => arrival,
            Some(_) = running.join_next() => continue,
        };
        let Ok((stream, peer)) = arrival else {
            continue;
        };
        let _ = stream.set_nodelay(true); // fails on a connection that is reset already
        let connection = Connection {
            peer,
            record: Arc::new(Record::new()),
            cue: Arc::new(Notify::new()),
        };
        let socket = Socket::recorded(stream, Arc::clone(&connection.record));
        let (script, cue) = (Arc::clone(&script), Arc::clone(&connection.cue));
        accepted.send_modify(|connections| connections.push(connection));
        running.spawn(async move { script::run(&script, socket, cue).await });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Ended;

    async fn connect(target: &Target) -> (Socket, Connection) {
        let client = Socket::connect(target.address()).await.unwrap();
        (client, target.next().await)
    }

    #[tokio::test]
    async fn echo_returns_every_byte_then_fin() {
        let content = Content::new(3_000_001, 1);
        let target = Target::echo().unwrap();
        let (client, connection) = connect(&target).await;
        let upload = async {
            client.write_content(content).await.unwrap();
            client.shutdown_write().unwrap();
        };
        let (seen, ()) = tokio::join!(client.read_to_end_soon(), upload);
        assert_eq!(
            (seen.sha256, seen.read_end),
            (content.sha256(), Some(Ended::Eof))
        );
        assert_eq!(connection.until_closed().await.sha256, content.sha256());
        assert_eq!(target.open(), 0);
    }

    #[tokio::test]
    async fn a_half_close_is_answered() {
        let target = Target::answer_after_end().unwrap();
        let (client, connection) = connect(&target).await;
        client.write(b"12345").await.unwrap();
        client.shutdown_write().unwrap();
        let seen = client.read_to_end_soon().await;
        assert_eq!(
            (&seen.head[..], seen.read_end),
            (&b"OK 5\n"[..], Some(Ended::Eof))
        );
        assert_eq!(connection.until_read_end().await.bytes_read, 5);
    }

    #[tokio::test]
    async fn the_resetter_waits_for_its_cue() {
        let target = Target::resetter(1000).unwrap();
        let (client, connection) = connect(&target).await;
        assert_eq!(client.read(1000).await.len(), 1000);
        connection.cue();
        assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Reset));
    }

    #[tokio::test]
    async fn a_never_reader_still_notices_a_reset() {
        let target = Target::never_reader().unwrap();
        let (client, connection) = connect(&target).await;
        client
            .write_until_blocked(Duration::from_millis(100))
            .await
            .unwrap();
        client.reset();
        let seen = connection.until_reset(GENEROUS).await;
        assert_eq!((seen.bytes_read, seen.read_end), (0, Some(Ended::Reset)));
    }

    #[tokio::test]
    async fn an_endless_source_learns_that_nobody_listens() {
        let target = Target::endless().unwrap();
        let (client, connection) = connect(&target).await;
        client.read(1 << 20).await;
        drop(client);
        assert!(connection.until_write_fails(GENEROUS).await.was_reset());
    }

    #[tokio::test]
    async fn a_reset_met_by_a_write_is_no_eof_for_the_reader() {
        let target = Target::start([Step::Read(1), Step::Reset]).unwrap();
        let (client, _) = connect(&target).await;
        let failed = client.write_until_refused().await;
        assert_ne!(failed, Ended::Eof);
        assert_ne!(client.read_to_end_soon().await.read_end, Some(Ended::Eof));
    }

    #[tokio::test]
    async fn dropping_a_target_frees_its_port() {
        let target = Target::silent().unwrap();
        let (client, _) = connect(&target).await;
        let address = target.address();
        drop(target);
        assert!(client.read_to_end_soon().await.read_end.is_some());
        assert!(Socket::connect(address).await.is_err());
    }
}
