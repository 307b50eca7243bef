//! A gateway as a value: bound, then run until it is told to stop.

use std::net::SocketAddr;
use std::sync::Arc;

use tidegate_daemon::AdminServer;
use tidegate_directory::{Directory, Memory, MemorySettings};
use tidegate_transport::{Listener, Server, ServerTls, Settings, Shards, TlsError, listen};
use tidegate_wire::unary::{HealthSwitch, routes};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::admin::Told;
use crate::config::{Address, Config, ConfigError, Protection};
use crate::departure::Departure;
use crate::handler::Handler;
use crate::session::obey;
use crate::state::State;
use crate::stream::watch_memory;
use crate::unary::Api;

/// How long the end of everything that is open may take.
const STOP: std::time::Duration = tidegate_lifecycle::limits::CLEANUP;

/// Why a gateway cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The configuration does not allow it.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An address cannot be listened on.
    #[error("cannot listen on {address} (`{key}`): {source}")]
    Listen {
        /// The key that names the address.
        key: &'static str,
        /// The address.
        address: Address,
        /// What the system says.
        source: std::io::Error,
    },
    /// Certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The threads cannot be started.
    #[error("cannot start threads: {0}")]
    Threads(std::io::Error),
    /// The directory of sessions does not answer.
    #[error(transparent)]
    Directory(#[from] tidegate_directory::DirectoryError),
}

/// A gateway that listens.
pub struct Gateway {
    state: Arc<State>,
    shards: Arc<Shards>,
    listener: Listener,
    local_addr: SocketAddr,
    admin: Option<(AdminServer, SocketAddr)>,
    tls: Option<Arc<ServerTls>>,
    routes: Routes,
    health: HealthSwitch,
}

impl Gateway {
    /// Checks the configuration, reads certificates, starts threads and listens. Must be called on a
    /// runtime, which then also carries the admin address and accepts connections; bytes are moved
    /// by threads of the gateway's own.
    ///
    /// # Errors
    ///
    /// [`BindError`] says what stands against it. Nothing is left behind.
    pub async fn bind(config: Config) -> Result<Self, BindError> {
        config.check()?;
        let directory = directory(&config).await?;
        Self::bind_to(config, directory).await
    }

    /// As [`Gateway::bind`], with a seat, for [`Config::replica`], in a directory that others share.
    ///
    /// # Errors
    ///
    /// As [`Gateway::bind`].
    pub async fn bind_to(config: Config, directory: Arc<dyn Directory>) -> Result<Self, BindError> {
        config.check()?;
        let protection = config.protection()?;
        let (listener, local_addr) =
            bind("listen", &config.listen, |addr| config.check_reach(addr))?;
        let admin = match &config.admin {
            Some(address) => {
                let (listener, addr) = bind("admin", address, |_| Ok(()))?;
                Some((AdminServer::new(listener), addr))
            }
            None => None,
        };
        // The server's files first: what is wrong with them is told by the names they were set with.
        let tls = load(protection.clone())?;
        let peering = config.peering(&protection)?;
        let shards = Arc::new(Shards::new(config.threads.0).map_err(BindError::Threads)?);
        let state = Arc::new(State::new(config, directory, peering));
        let (routes, health) = routes(Arc::new(Api(Arc::clone(&state)))).await;
        Ok(Self {
            state,
            shards,
            listener,
            local_addr,
            admin,
            tls,
            routes,
            health,
        })
    }

    /// The address that clients and supervisors connect to.
    pub const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The admin address, if there is one.
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|(_, addr)| *addr)
    }

    /// The certificates in use, to have them read again.
    pub fn tls(&self) -> Option<Arc<ServerTls>> {
        self.tls.clone()
    }

    /// Serves until `shutdown` is cancelled, then ends what is open with GATEWAY_DRAINING and returns
    /// when nothing is left, after 5 s at the latest.
    ///
    /// # Cancel safety
    ///
    /// Dropping it ends everything at once, without a word to anybody.
    pub async fn run(self, shutdown: CancellationToken) {
        self.run_and_drain(CancellationToken::new(), shutdown).await;
    }

    /// As [`Gateway::run`], and when `drain` is cancelled it leaves without breaking anything: it says
    /// that it is not ready, asks supervisors to move, stops listening, lets open streams finish for
    /// as long as the configuration says, and returns. `shutdown` ends that too.
    ///
    /// # Cancel safety
    ///
    /// As [`Gateway::run`].
    pub async fn run_and_drain(self, drain: CancellationToken, shutdown: CancellationToken) {
        let Self {
            state,
            shards,
            listener,
            admin,
            tls,
            routes,
            health,
            local_addr,
        } = self;
        let mut background = JoinSet::new();
        tracing::info!(address = %local_addr, "listening on {local_addr}");
        if let Some((server, _)) = admin {
            let told = Told::new(Arc::clone(&state), Arc::clone(&shards));
            background.spawn(server.serve(Arc::new(told)));
        }
        if let Some(tls) = &tls {
            background.spawn(Arc::clone(tls).watch());
        }
        background.spawn(watch_memory(Arc::clone(&state)));
        background.spawn(obey(Arc::clone(&state)));
        background.spawn({
            let state = Arc::clone(&state);
            async move { state.peers.tend().await }
        });
        let doors = Doors::new(&state, shards, tls, routes);
        let mut listener = Some(listener);
        tokio::select! {
            () = doors.accept(listener.as_ref()) => {}
            () = shutdown.cancelled() => {}
            () = drain.cancelled() => {
                let departure = Departure::new(&state, &doors, &health, &mut listener);
                shutdown.run_until_cancelled(departure.run()).await;
            }
        }
        state.draining.cancel();
        health.set_serving(false).await;
        drop(listener);
        tracing::info!("stopping: no new connections, what is open ends");
        doors.close(&state).await;
        if let Err(error) = state.directory.leave().await {
            tracing::warn!(%error, "the directory was not told that this gateway is gone");
        }
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway")
            .field("local_addr", &self.local_addr)
            .finish_non_exhaustive()
    }
}

/// Where connections come in and go to their threads.
pub(crate) struct Doors {
    server: Arc<Server>,
    handler: Arc<Handler>,
    shards: Arc<Shards>,
    routes: Routes,
    /// Tells every connection to take no new streams.
    going: CancellationToken,
    tasks: tokio_util::task::TaskTracker,
}

impl Doors {
    fn new(
        state: &Arc<State>,
        shards: Arc<Shards>,
        tls: Option<Arc<ServerTls>>,
        routes: Routes,
    ) -> Self {
        let window = u32::try_from(state.config.stream_window.0).unwrap_or(u32::MAX);
        let settings = Settings {
            stream_window: window,
            ping: Some(state.times.ping),
            ..Settings::default()
        };
        let server = Arc::new(Server {
            settings,
            tls,
            abort: CancellationToken::new(),
        });
        let handler = Arc::new(Handler::new(Arc::clone(state), Arc::clone(&shards)));
        let (going, tasks) = (CancellationToken::new(), state.tasks.clone());
        Self {
            server,
            handler,
            shards,
            routes,
            going,
            tasks,
        }
    }

    /// Takes connections in for ever; without a listener there are none.
    pub(crate) async fn accept(&self, listener: Option<&Listener>) {
        let Some(listener) = listener else {
            return std::future::pending().await;
        };
        loop {
            let (stream, peer) = listener.accept().await;
            if let Err(error) = self.admit(stream) {
                tracing::debug!(%peer, %error, "a connection broke as it was accepted");
            }
        }
    }

    /// Hands a connection to the next thread, whose reactor takes it over.
    fn admit(&self, stream: TcpStream) -> std::io::Result<()> {
        let stream = stream.into_std()?;
        let shard = self.shards.pick();
        let server = Arc::clone(&self.server);
        let handler = Arc::clone(&self.handler);
        let (routes, going) = (self.routes.clone(), self.going.clone());
        let home = shard.clone();
        shard.spawn(
            "connection",
            self.tasks.track_future(async move {
                match TcpStream::from_std(stream) {
                    Ok(stream) => server.serve(stream, home, handler, routes, going).await,
                    Err(error) => {
                        tracing::debug!(%error, "a connection broke on its way to its thread")
                    }
                }
            }),
        );
        Ok(())
    }

    /// Tells every client that no new stream is taken; what is open goes on.
    pub(crate) fn say_goaway(&self) {
        self.going.cancel();
    }

    /// Ends every stream and session, then the connections.
    async fn close(self, state: &State) {
        state.closed.cancel();
        state.sessions.close();
        state.streams.close(&state.drained());
        self.going.cancel();
        self.tasks.close();
        if tokio::time::timeout(STOP, self.tasks.wait()).await.is_err() {
            tracing::info!("some connections did not end in time and are cut");
        }
    }
}

impl Drop for Doors {
    /// Connections live on threads that they keep alive themselves: nothing else would end them.
    fn drop(&mut self) {
        self.server.abort.cancel();
    }
}

fn bind(
    key: &'static str,
    address: &Address,
    check: impl FnOnce(SocketAddr) -> Result<(), ConfigError>,
) -> Result<(Listener, SocketAddr), BindError> {
    let failed = |source| BindError::Listen {
        key,
        address: address.clone(),
        source,
    };
    let addr = address.resolve().map_err(failed)?;
    check(addr)?;
    let listener = listen(addr).map_err(failed)?;
    let local = listener.local_addr().map_err(failed)?;
    Ok((listener, local))
}

fn load(protection: Protection) -> Result<Option<Arc<ServerTls>>, TlsError> {
    match protection {
        Protection::Authenticated {
            cert,
            key,
            client_ca,
        } => ServerTls::load(&cert, &key, Some(&client_ca)).map(Some),
        Protection::Unauthenticated { cert, key } => ServerTls::load(&cert, &key, None).map(Some),
        Protection::Plaintext => Ok(None),
    }
}

async fn directory(config: &Config) -> Result<Arc<dyn Directory>, BindError> {
    let times = config.times();
    let memory = Memory::new(MemorySettings {
        retention: times.retention,
        grace: times.grace,
    });
    let seat = memory.seat(config.replica());
    for sandbox in &config.sandboxes {
        seat.declare(sandbox).await?;
    }
    Ok(Arc::new(seat))
}
