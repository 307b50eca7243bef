//! The gateways that this one asks for streams.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use tidegate_bridge::{Cargo, End as _, Opened, Read, RpcEnd, RpcKind};
use tidegate_lifecycle::relay::Rank;
use tidegate_lifecycle::{End, Origin, Reason};
use tidegate_transport::{Buffered, ClientTls, ConnectError, Endpoint, Ping, PoolError, Settings};
use tidegate_wire::frame::PeerInit;
use tidegate_wire::metadata;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::slot::Slot;

/// How other gateways are reached.
#[derive(Clone, Debug)]
pub struct PeerSettings {
    /// Whom this gateway trusts, and what it shows. Without, the system's authorities, and nothing.
    pub tls: Option<Arc<ClientTls>>,
    /// Whether a gateway may be asked in plaintext.
    pub plaintext: bool,
    /// Bytes that may be on their way in one direction of one stream.
    pub stream_window: u32,
    /// Connections of one thread to one gateway over which streams are spread from the beginning.
    pub width: usize,
    /// How many there may be, where the other gateway allows few streams on each.
    pub connections: usize,
    /// How long connecting may take.
    pub connect: Duration,
    /// When silence of another gateway is taken for its death.
    pub ping: Ping,
    /// How long an owner may take to open the path and answer.
    pub answer: Duration,
    /// How long a connection without streams is kept.
    pub idle: Duration,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            tls: None,
            plaintext: false,
            stream_window: Settings::default().stream_window,
            width: 1,
            connections: 16,
            connect: Duration::from_secs(2),
            ping: Ping {
                interval: Duration::from_secs(3),
                timeout: Duration::from_secs(3),
            },
            answer: Duration::from_secs(14),
            idle: Duration::from_secs(300),
        }
    }
}

/// What an owner is asked.
#[derive(Clone, Debug)]
pub struct PeerCall {
    /// The first message. Its requester is named in the metadata too.
    pub init: PeerInit,
    /// Metadata to send with it: a deadline, a trace.
    pub headers: HeaderMap,
    /// Where the bytes of the stream are counted.
    pub buffered: Arc<Buffered>,
}

/// Why there is no stream. Nothing but the first message was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unopened {
    /// The owner answered so.
    Refused(End),
    /// The owner could not be reached, or was lost before it answered. Another gateway may have the
    /// session, or this one be back soon.
    Unreached(End),
    /// This gateway cannot ask: a limit, or settings that somebody has to change.
    Unable(End),
}

/// Connections to other gateways, made when they are first needed.
///
/// A connection belongs to the thread that made it, and serves the streams of that thread's clients: no
/// byte crosses threads.
#[derive(Debug)]
pub struct Peers {
    settings: PeerSettings,
    slots: Mutex<HashMap<(String, usize), Arc<Slot>>>,
}

impl Peers {
    /// Knows nobody yet.
    pub fn new(settings: PeerSettings) -> Self {
        Self {
            settings,
            slots: Mutex::default(),
        }
    }

    /// Asks the gateway at `url` for a stream, from the thread numbered `lane`, on which this must
    /// run; and waits for its answer.
    ///
    /// # Errors
    ///
    /// [`Unopened`] tells whose word it was.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it resets the call, and the owner gives the path up.
    pub async fn open<I: Cargo>(
        &self,
        url: &str,
        lane: usize,
        call: PeerCall,
    ) -> Result<(RpcEnd<I>, Opened), Unopened> {
        let slot = self.slot(url, lane)?;
        let PeerCall {
            init,
            mut headers,
            buffered,
        } = call;
        metadata::set_peer_replica(&mut headers, &init.requester);
        let opened = slot.open(&headers).await;
        let (send, head) = opened.map_err(|error| unconnected(url, &error))?;
        let (kind, init) = (RpcKind::PeerClient, init.encode());
        let end = RpcEnd::opened(kind, send, head, init, None, &buffered);
        match timeout(self.settings.answer, answered(end)).await {
            Ok(answer) => answer,
            Err(_) => Err(Unopened::Unreached(lost(format!(
                "the gateway at {url} did not answer within {:?}",
                self.settings.answer
            )))),
        }
    }

    /// Tells how many connections are open.
    pub fn connections(&self) -> usize {
        self.all().map(|slot| slot.connections()).sum()
    }

    /// Tells how many streams are open on them.
    pub fn streams(&self) -> usize {
        self.all().map(|slot| slot.streams()).sum()
    }

    /// Lets go of connections that have had no stream for long enough, for ever.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe; cancelling is how it ends.
    pub async fn tend(&self) {
        let mut ticks = interval(self.settings.idle.max(Duration::from_millis(2)) / 2);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let idle = self.settings.idle;
            // A call that holds a slot still uses what it opens on it, and nobody finds that again.
            self.slots()
                .retain(|_, slot| Arc::strong_count(slot) > 1 || !slot.rest(idle));
        }
    }

    fn slot(&self, url: &str, lane: usize) -> Result<Arc<Slot>, Unopened> {
        let mut slots = self.slots();
        if let Some(slot) = slots.get(&(url.to_owned(), lane)) {
            return Ok(Arc::clone(slot));
        }
        let endpoint = self.endpoint(url)?;
        let slot = Arc::new(Slot::new(
            &endpoint,
            self.settings.width,
            self.settings.connections,
        ));
        slots.insert((url.to_owned(), lane), Arc::clone(&slot));
        Ok(slot)
    }

    fn endpoint(&self, url: &str) -> Result<Endpoint, Unopened> {
        let endpoint = Endpoint::parse(url).map_err(|error| {
            unconfigured(format!("the owner's `peer_url` cannot be used: {error}"))
        })?;
        if !endpoint.is_tls() && !self.settings.plaintext {
            return Err(unconfigured(format!(
                "the owner's `peer_url` is {url}, and this gateway asks no other in plaintext: it has \
                 to be https://"
            )));
        }
        let settings = Settings {
            stream_window: self.settings.stream_window,
            ping: Some(self.settings.ping),
            ..Settings::default()
        };
        let endpoint = endpoint
            .with_settings(settings)
            .with_connect_timeout(self.settings.connect);
        Ok(match &self.settings.tls {
            Some(tls) => endpoint.with_tls(Arc::clone(tls)),
            None => endpoint,
        })
    }

    fn all(&self) -> impl Iterator<Item = Arc<Slot>> {
        let all: Vec<_> = self.slots().values().cloned().collect();
        all.into_iter()
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<(String, usize), Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until the owner has answered a call whose first message is on its way.
async fn answered<I: Cargo>(mut end: RpcEnd<I>) -> Result<(RpcEnd<I>, Opened), Unopened> {
    match poll_fn(|cx| end.poll_read(true, cx)).await {
        Read::Opened(opened) => Ok((end, opened)),
        Read::Ended(Rank::Transport, end) => Err(Unopened::Unreached(end)),
        Read::Ended(Rank::Own | Rank::Typed | Rank::Violation | Rank::Deadline, end) => {
            Err(Unopened::Refused(end))
        }
        Read::Violation(_, message) => Err(Unopened::Unreached(lost(message))),
        Read::Data(_) | Read::Empty | Read::FinFrame | Read::End | Read::Init | Read::Unknown => {
            let message = "the owner said something before it answered".to_owned();
            Err(Unopened::Unreached(lost(message)))
        }
    }
}

fn unconnected(url: &str, error: &PoolError) -> Unopened {
    match error {
        PoolError::Full(limit) => Unopened::Unable(End::new(
            Origin::Gateway,
            Reason::LimitStreams,
            format!(
                "the {limit} connections to the gateway at {url} carry as many streams as it allows"
            ),
        )),
        PoolError::Connect(error) if is_for_an_operator(error) => Unopened::Unable(lost(format!(
            "the gateway at {url} cannot be asked: {error}"
        ))),
        error => Unopened::Unreached(lost(format!(
            "the gateway at {url} cannot be reached: {error}"
        ))),
    }
}

/// Whether waiting would not help.
fn is_for_an_operator(error: &ConnectError) -> bool {
    matches!(error, ConnectError::Credentials(_)) || error.obstacle().is_some()
}

fn unconfigured(message: String) -> Unopened {
    Unopened::Unable(End::new(Origin::Peer, Reason::PeerUnconfigured, message))
}

fn lost(message: String) -> End {
    End::new(Origin::Peer, Reason::OwnerLost, message)
}
