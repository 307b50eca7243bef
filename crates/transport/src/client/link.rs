//! What keeps a connection alive: its handles and its streams, and the task that drives it.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use h2::client::{Connection, SendRequest};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::io::Io;
use crate::keepalive::KeepAlive;
use crate::life::Life;
use crate::{Lost, Payload, Reason};

/// How long a connection that nobody holds may take to say goodbye.
const GOODBYE_LIMIT: Duration = Duration::from_secs(1);

/// A connection, held by its handles and its streams. When the last of them is gone, the driver
/// sends what is queued and GOAWAY, within a second, and ends.
pub(crate) struct Link {
    request: SendRequest<Payload>,
    life: Arc<Life>,
    close: CancellationToken,
    forgotten: CancellationToken,
    driver: JoinSet<()>,
}

impl Link {
    pub(crate) fn start(
        request: SendRequest<Payload>,
        connection: Connection<Io, Payload>,
        keepalive: KeepAlive,
        life: Arc<Life>,
    ) -> Arc<Self> {
        let mut link = Self {
            request,
            life,
            close: CancellationToken::new(),
            forgotten: CancellationToken::new(),
            driver: JoinSet::new(),
        };
        let driver = Driver {
            life: Arc::clone(&link.life),
            close: link.close.clone(),
            forgotten: link.forgotten.clone(),
        };
        link.driver.spawn(driver.run(connection, keepalive));
        Arc::new(link)
    }

    pub(crate) fn request(&self) -> SendRequest<Payload> {
        self.request.clone()
    }

    pub(crate) fn max_streams(&self) -> usize {
        self.request.current_max_send_streams()
    }

    pub(crate) fn life(&self) -> &Arc<Life> {
        &self.life
    }

    /// Tells whether the peer still takes streams, as far as has arrived.
    pub(crate) fn is_open(&self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        self.life.cause().is_none()
            && matches!(self.request().poll_ready(&mut cx), Poll::Ready(Ok(())))
    }

    pub(crate) fn close(&self) {
        self.close.cancel();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.forgotten.cancel();
        // The driver ends by itself within GOODBYE_LIMIT.
        self.driver.detach_all();
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("life", &self.life)
            .finish_non_exhaustive()
    }
}

/// The task that moves a connection's frames.
struct Driver {
    life: Arc<Life>,
    close: CancellationToken,
    forgotten: CancellationToken,
}

impl Driver {
    async fn run(self, connection: Connection<Io, Payload>, mut keepalive: KeepAlive) {
        let mut connection = pin!(connection);
        let lost = tokio::select! {
            ended = &mut connection => after(ended),
            () = poll_fn(|cx| keepalive.poll_expired(cx)) => Lost::PingTimeout,
            () = self.close.cancelled() => Lost::GoAway(Reason::NO_ERROR),
            () = self.forgotten.cancelled() => {
                match tokio::time::timeout(GOODBYE_LIMIT, &mut connection).await {
                    Ok(ended) => after(ended),
                    Err(_) => Lost::GoAway(Reason::NO_ERROR),
                }
            }
        };
        tracing::debug!(%lost, "a connection to a server ended");
        // Noted before the streams see their connection vanish with this function.
        self.life.end(lost);
    }
}

fn after(ended: Result<(), h2::Error>) -> Lost {
    match ended {
        Ok(()) => Lost::GoAway(Reason::NO_ERROR),
        Err(error) => Lost::from(&error),
    }
}

/// One stream's place among those that a connection may have.
#[derive(Debug)]
pub(crate) struct Place {
    link: Arc<Link>,
}

impl Place {
    /// Takes a place, if the peer's limit leaves one.
    pub(crate) fn take(link: &Arc<Link>) -> Option<Self> {
        let entered = link.life.enter_stream(link.max_streams());
        entered.then(|| Self {
            link: Arc::clone(link),
        })
    }

    pub(crate) fn life(&self) -> &Arc<Life> {
        &self.link.life
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.link.life.leave_stream();
    }
}
