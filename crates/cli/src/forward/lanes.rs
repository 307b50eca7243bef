//! The threads that carry connections.
//!
//! A local connection and the one to the gateway wake each other for every frame, so both belong on
//! one thread. Where there are cores to spare, there are several such threads, each with a client,
//! and so with connections, of its own.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use tidegate_client::Client;
use tidegate_transport::Shards;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::failure::Failure;

/// More only help where one person's connections fill more than this many cores.
const MOST: usize = 4;

/// Threads, each with a client.
#[derive(Debug)]
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    next: usize,
    /// Ends the threads when it is dropped; none if this very thread does the work.
    _threads: Option<Shards>,
}

#[derive(Debug)]
struct Lane {
    client: Client,
    thread: Option<Handle>,
}

impl Lanes {
    /// As many as were asked for, else half the cores: the other half is for the programs at the
    /// near end. One lane is this thread, with `ours`; others get a client from `make`.
    ///
    /// # Errors
    ///
    /// When there is no thread to be had, or those of `make`.
    pub(super) fn new(
        count: Option<NonZeroUsize>,
        ours: &Client,
        make: impl Fn() -> Result<Client, Failure>,
    ) -> Result<Self, Failure> {
        let cores = available_parallelism().map_or(1, NonZeroUsize::get);
        let count = count.map_or_else(|| (cores / 2).clamp(1, MOST), NonZeroUsize::get);
        if count == 1 {
            let (client, thread) = (ours.clone(), None);
            return Ok(Self::of(vec![Lane { client, thread }], None));
        }
        let threads = Shards::new(count).map_err(|error| Failure::io("start threads", error))?;
        let lane = |index| {
            let thread = Some(threads.get(index).handle().clone());
            make().map(|client| Lane { client, thread })
        };
        let lanes = (0..count).map(lane).collect::<Result<_, _>>()?;
        Ok(Self::of(lanes, Some(threads)))
    }

    const fn of(lanes: Vec<Lane>, threads: Option<Shards>) -> Self {
        Self {
            lanes,
            next: 0,
            _threads: threads,
        }
    }

    /// Runs what `carry` makes of the socket and a client on the next thread in turn.
    pub(super) fn spawn<F>(
        &mut self,
        connections: &mut JoinSet<()>,
        socket: TcpStream,
        carry: impl FnOnce(Client, TcpStream) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.next = (self.next + 1) % self.lanes.len();
        let Lane { client, thread } = &self.lanes[self.next];
        let client = client.clone();
        let Some(thread) = thread else {
            connections.spawn(carry(client, socket));
            return;
        };
        // The socket has to move to the other thread's reactor. One that cannot is reset.
        let Ok(socket) = socket.into_std() else {
            return;
        };
        let task = async move {
            if let Ok(socket) = TcpStream::from_std(socket) {
                carry(client, socket).await;
            }
        };
        connections.spawn_on(task, thread);
    }
}
