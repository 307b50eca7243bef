//! One local connection, from accept to its end.

use std::sync::Arc;
use std::time::Instant;

use tidegate_client::{Client, End, Handle, Origin, Plug, Reason, Side, SocketEnd, StreamId};
use tokio::net::TcpStream;

use super::Forward;
use super::event::{Connection, Ended, Event};
use super::link::Concern;

impl Forward {
    /// Carries what the socket, which is hardened, brings into the sandbox and back. Dropping the
    /// future resets it.
    pub(super) async fn carry(self: Arc<Self>, client: Client, socket: TcpStream, on: Connection) {
        let born = Instant::now();
        let local = SocketEnd::new(
            Side::Downstream,
            Plug::Tcp(Arc::new(socket)),
            client.buffered(),
        );
        let handle = Handle::new(born);
        let opening = client.tunnel(
            &self.sandbox,
            on.target.clone(),
            local,
            <_>::default(),
            handle.clone(),
        );
        let opening = tokio::select! {
            opened = opening => opened,
            () = self.stop.cancelled() => Err(stopped()),
        };
        let mut tunnel = match opening {
            Ok(tunnel) => tunnel,
            Err(end) => return self.closed(None, on, not_begun(end, born)).await,
        };
        let carrying = async {
            let (id, outcome) = match tunnel.open().await {
                Ok(opened) => {
                    self.opened(opened.stream.clone(), &on).await;
                    (opened.stream, tunnel.run().await)
                }
                Err(outcome) => (None, outcome),
            };
            self.closed(id, on, outcome.into()).await;
            tunnel.linger().await;
        };
        let stopping = async {
            self.stop.cancelled().await;
            handle.close(stopped());
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = carrying => {}
            () = stopping => {}
        }
    }

    async fn opened(&self, id: Option<StreamId>, on: &Connection) {
        let on = on.clone();
        self.reporter.tell(Event::Opened { id, on }).await;
        self.reporter.served().await;
    }

    async fn closed(&self, id: Option<StreamId>, on: Connection, how: Ended) {
        let end = how.end.clone();
        self.reporter.tell(Event::Closed { id, on, how }).await;
        let Some(end) = end else { return };
        match Concern::of(end.reason) {
            Concern::Stream => {}
            // The watch asks the gateway, and tells it if it is so.
            Concern::Sandbox => self.look.notify_one(),
            Concern::Way => {
                self.reporter.failed(&end).await;
                self.look.notify_one();
            }
        }
    }
}

/// How the connections end that are open when the forward is told to stop.
fn stopped() -> End {
    End::new(
        Origin::Client,
        Reason::ClientCancelled,
        "the forward was stopped",
    )
}

/// How a stream ended for which no gateway could be reached.
fn not_begun(end: End, born: Instant) -> Ended {
    Ended {
        end: Some(Arc::new(end)),
        bytes_up: 0,
        bytes_down: 0,
        duration: born.elapsed(),
    }
}
