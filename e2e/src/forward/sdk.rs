//! A forward made of the SDK, in a thread of its own.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tidegate_client::{
    Client, End, Handle, Plug, SandboxName, Side, SocketEnd, StreamLimits, Target, harden,
};
use tidegate_testkit::wait;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::report::{Closed, Reporter, Reports};
use super::{Access, Inner, Server};
use crate::SANDBOX;

/// The thread, and what it has open.
#[derive(Debug)]
pub(super) struct Listener {
    stop: CancellationToken,
    open: Arc<AtomicUsize>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

pub(super) fn start(access: &Access, target: &str) -> Inner {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
    listener
        .set_nonblocking(true)
        .expect("a listener can be made not to block");
    let address = listener.local_addr().expect("it was bound");
    let (reporter, reports) = Reports::new();
    let stop = CancellationToken::new();
    let open = Arc::new(AtomicUsize::new(0));
    let service = Service {
        client: Client::new(access).expect("the test's configuration is good"),
        target: parse(target),
        reporter,
        open: Arc::clone(&open),
    };
    let told = stop.clone();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.expect("there is a runtime to be had");
        runtime.block_on(told.run_until_cancelled(Arc::new(service).serve(listener)));
    });
    let thread = Mutex::new(Some(thread));
    Inner {
        address,
        reports,
        server: Server::Sdk(Listener { stop, open, thread }),
    }
}

impl Listener {
    /// Drops everything: sockets and streams are reset.
    pub(super) fn stop(&self) {
        self.stop.cancel();
        let thread = self.thread.lock().expect("no holder panics").take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            panic!("the forward's thread panicked; its message is above");
        }
        self.open.store(0, Ordering::Relaxed);
    }

    pub(super) async fn idle(&self, bound: Duration) -> Result<(), String> {
        let idle = wait::until_async(bound, async || self.open.load(Ordering::Relaxed) == 0);
        let open = |_| format!("{} streams are open", self.open.load(Ordering::Relaxed));
        idle.await.map_err(open)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[derive(Debug)]
struct Service {
    client: Client,
    target: Target,
    reporter: Reporter,
    open: Arc<AtomicUsize>,
}

impl Service {
    async fn serve(self: Arc<Self>, listener: TcpListener) {
        let listener = tokio::net::TcpListener::from_std(listener);
        let listener = listener.expect("a listener registers");
        let mut streams = JoinSet::new();
        loop {
            let arrival = tokio::select! {
                arrival = listener.accept() => arrival,
                Some(_) = streams.join_next() => continue,
            };
            if let Ok((socket, peer)) = arrival {
                let service = Arc::clone(&self);
                self.open.fetch_add(1, Ordering::Relaxed);
                streams.spawn(async move {
                    service.carry(socket, peer).await;
                    service.open.fetch_sub(1, Ordering::Relaxed);
                });
            }
        }
    }

    async fn carry(&self, socket: TcpStream, peer: SocketAddr) {
        if harden(&socket).is_err() {
            return; // the local program has gone before we could look
        }
        let local = SocketEnd::new(
            Side::Downstream,
            Plug::Tcp(Arc::new(socket)),
            self.client.buffered(),
        );
        let sandbox = SandboxName::parse(SANDBOX).expect("it is a name");
        let (limits, handle) = (StreamLimits::default(), Handle::new(Instant::now()));
        let tunnel = self
            .client
            .tunnel(&sandbox, self.target.clone(), local, limits, handle)
            .await;
        match tunnel {
            Ok(mut tunnel) => {
                let outcome = tunnel.run().await;
                let (up, down) = (outcome.bytes_up, outcome.bytes_down);
                self.report(peer, outcome.end.as_deref(), up, down);
                tunnel.linger().await;
            }
            Err(end) => self.report(peer, Some(&end), 0, 0),
        }
    }

    fn report(&self, peer: SocketAddr, end: Option<&End>, bytes_up: u64, bytes_down: u64) {
        let closed = Closed {
            reason: end.map_or("FINISHED", |end| end.reason.as_str()).to_owned(),
            origin: end.map_or("", |end| end.origin.as_str()).to_owned(),
            bytes_up,
            bytes_down,
        };
        self.reporter.send_modify(|reports| {
            reports.insert(peer, closed);
        });
    }
}

fn parse(target: &str) -> Target {
    let (host, port) = target.rsplit_once(':').expect("a target is HOST:PORT");
    let port = port.parse().expect("a port is a number");
    Target::tcp(host.trim_matches(['[', ']']), port).expect("the test's target is good")
}
