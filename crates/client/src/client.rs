//! A client of one gateway, or of several that serve the same sandboxes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use http::HeaderMap;
use tidegate_bridge::{End as TunnelEnd, FrameEnd, Handle, RpcKind, Tunnel};
use tidegate_lifecycle::cause::{End, Origin};
use tidegate_lifecycle::id::{HopName, SandboxName};
use tidegate_lifecycle::leg::{Leg, Orientation};
use tidegate_lifecycle::limits::StreamLimits;
use tidegate_lifecycle::relay::Relay;
use tidegate_lifecycle::{Capabilities, Target};
use tidegate_transport::{Buffered, Connection, Endpoint, Pool, PoolError, ResponseHead, SendHalf};
use tidegate_wire::frame::ForwardInit;
use tidegate_wire::metadata;

use crate::config::{Config, ConfigError};
use crate::stream::Stream;
use crate::unreached::{self, Unreached};

/// Connections to one gateway that a client may hold at once.
const CONNECTIONS: usize = 64;

/// Reaches sandboxes through a gateway. Cheap to clone; clones share their connections.
///
/// A stream is opened at the gateway that answered last; when that one is gone or leaves, at the next.
/// Once a stream was opened it is never replayed.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    gateways: Vec<Gateway>,
    current: AtomicUsize,
    token: Option<String>,
    shows_certificate: bool,
    buffered: Arc<Buffered>,
    hop: HopName,
}

#[derive(Debug)]
struct Gateway {
    endpoint: Endpoint,
    pool: Pool,
}

impl Client {
    /// Makes a client. Nothing is dialled before it is needed.
    ///
    /// # Errors
    ///
    /// When a URL, a certificate or a proxy of the configuration cannot be used.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let gateways = config.endpoints()?.into_iter().map(|endpoint| Gateway {
            pool: Pool::new(endpoint.clone(), CONNECTIONS),
            endpoint,
        });
        Ok(Self {
            shared: Arc::new(Shared {
                gateways: gateways.collect(),
                current: AtomicUsize::new(0),
                token: config.token.clone(),
                shows_certificate: config.cert.is_some(),
                buffered: Buffered::new(),
                hop: HopName::new("client"),
            }),
        })
    }

    /// Opens a stream to `target` inside `sandbox`, and waits until the whole path is open.
    ///
    /// # Errors
    ///
    /// Why the path could not be opened; see [`Reason`](tidegate_lifecycle::Reason).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the stream, at the target too.
    pub async fn forward(&self, sandbox: &SandboxName, target: Target) -> Result<Stream, End> {
        Stream::open(self, sandbox, target).await
    }

    /// Opens a stream and joins it to `local`, without waiting for the path to open: what `local`
    /// brings travels with the request.
    ///
    /// # Errors
    ///
    /// When no gateway can be reached.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future sends nothing, or cancels the stream.
    pub async fn tunnel<E: TunnelEnd<Item = Bytes>>(
        &self,
        sandbox: &SandboxName,
        target: Target,
        local: E,
        limits: StreamLimits,
        handle: Handle,
    ) -> Result<Tunnel<E, FrameEnd>, End> {
        let (send, head) = self.open(metadata::FORWARD_TCP).await?;
        let mut init = ForwardInit::new(sandbox.clone(), target);
        init.capabilities = Capabilities::STREAM;
        let remote = FrameEnd::opened(
            RpcKind::ForwardClient,
            send,
            head,
            init.encode(),
            None,
            &self.shared.buffered,
        );
        let now = Instant::now();
        let relay = Relay::new(
            Leg::socket(),
            Leg::opener(Orientation::Forward, None),
            limits,
            Origin::Client,
            self.shared.hop.clone(),
            now,
        );
        Ok(Tunnel::new(local, remote, relay, handle, now))
    }

    /// The count of bytes that this client's streams hold.
    pub fn buffered(&self) -> &Arc<Buffered> {
        &self.shared.buffered
    }

    /// A connection to a gateway that answers, for unary calls, and the gateway's URL.
    pub(crate) async fn connection(&self) -> Result<(Connection, &Endpoint), End> {
        let mut failed = Unreached::default();
        for index in self.order() {
            let gateway = &self.shared.gateways[index];
            match gateway.pool.connection().await {
                Ok(connection) => {
                    self.shared.current.store(index, Ordering::Relaxed);
                    return Ok((connection, &gateway.endpoint));
                }
                Err(error) => failed.add(self.unreachable(&gateway.endpoint, &error)),
            }
        }
        Err(failed.into_end())
    }

    /// Which gateway answered last.
    pub(crate) fn current(&self) -> usize {
        self.shared.current.load(Ordering::Relaxed)
    }

    /// Asks the next gateway from now on, because this one leaves; without effect if that was noticed
    /// already.
    pub(crate) fn pass_over(&self, gateway: usize) {
        let count = self.shared.gateways.len();
        let next = (gateway + 1) % count;
        let (order, current) = (Ordering::Relaxed, &self.shared.current);
        // Somebody else has moved on: then there is nothing to do.
        let _ = current.compare_exchange(gateway, next, order, order);
    }

    /// How many gateways there are.
    pub(crate) fn gateways(&self) -> usize {
        self.shared.gateways.len()
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.shared.token.as_deref()
    }

    pub(crate) fn hop(&self) -> &HopName {
        &self.shared.hop
    }

    /// Opens a call of `path` at the gateway that answered last, or at the next one.
    pub(crate) async fn open(&self, path: &'static str) -> Result<(SendHalf, ResponseHead), End> {
        let mut failed = Unreached::default();
        for index in self.order() {
            let gateway = &self.shared.gateways[index];
            let opened = gateway.pool.open(path, self.headers(gateway));
            match opened.await {
                Ok(opened) => {
                    self.shared.current.store(index, Ordering::Relaxed);
                    return Ok(opened);
                }
                Err(error) => failed.add(self.unreachable(&gateway.endpoint, &error)),
            }
        }
        Err(failed.into_end())
    }

    fn headers(&self, gateway: &Gateway) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(token) = self.token().filter(|_| gateway.endpoint.is_tls()) {
            metadata::set_bearer(&mut headers, token);
        }
        headers
    }

    fn unreachable(&self, endpoint: &Endpoint, error: &PoolError) -> End {
        unreached::end(&endpoint.url(), error, self.shared.shows_certificate)
    }

    /// The gateways in the order to try them: the one that answered last first.
    fn order(&self) -> impl Iterator<Item = usize> {
        let count = self.shared.gateways.len();
        let first = self.shared.current.load(Ordering::Relaxed);
        (0..count).map(move |step| (first + step) % count)
    }
}
