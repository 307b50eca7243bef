//! The supervisor as a whole.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tidegate_daemon::{AdminServer, ConfigError, Health};
use tidegate_lifecycle::cause::End;
use tidegate_lifecycle::id::{InstanceId, SandboxName};
use tidegate_lifecycle::limits::CLEANUP;
use tidegate_lifecycle::redial::Bounds;
use tidegate_transport::{
    ClientTls, Endpoint, EndpointError, ProxyRules, Settings as Http2, Shards, TlsError,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::config::GatewayUrl;
use crate::context::Context;
use crate::exec::Commands;
use crate::homes::{Homes, Places, Ready};
use crate::session::Gateway;
use crate::{Config, Phase, memory};

/// How long connecting to a gateway may take, proxy and TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A supervisor, ready to run.
///
/// Its streams run on threads of its own, which end with it.
#[derive(Debug)]
pub struct Supervisor {
    context: Arc<Context>,
    shards: Arc<Shards>,
    settings: Arc<Dialling>,
    gateways: Vec<Gateway>,
    redial: Bounds,
}

/// Why a supervisor cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration does not allow it.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A gateway's URL is none.
    #[error(transparent)]
    Gateway(#[from] EndpointError),
    /// A certificate or key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Commands cannot be run in the way that was asked for.
    #[error("cannot run commands with `exec_scope` as it is set: {0}")]
    Commands(#[source] io::Error),
    /// The token cannot be read.
    #[error("cannot read the token in {} (`token_file`): {source}", path.display())]
    Token {
        /// Its file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There are no threads to be had.
    #[error("cannot start threads: {0}")]
    Threads(#[source] io::Error),
}

/// Why a supervisor stopped although nobody told it to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StopReason {
    /// Another process serves the same sandbox. It is given way to, so that two never duel.
    #[error("another supervisor took sandbox {sandbox} over from instance {instance}: {end}")]
    Superseded {
        /// The sandbox.
        sandbox: SandboxName,
        /// This process.
        instance: InstanceId,
        /// The gateway's words, which name the other instance where it is known.
        end: Box<End>,
    },
    /// The address for health and metrics cannot be used.
    #[error("cannot listen on the admin address {address}: {source}")]
    Admin {
        /// The address.
        address: String,
        /// What the system said.
        source: io::Error,
    },
}

impl Supervisor {
    /// Reads certificates and starts threads. Nothing is dialled yet.
    ///
    /// # Errors
    ///
    /// [`StartError`] says what cannot be used.
    pub fn new(config: Config) -> Result<Self, StartError> {
        config.check()?;
        let redial = config.redial()?;
        let (settings, gateways) = gateways(&config)?;
        let commands = Commands::new(&config).map_err(StartError::Commands)?;
        check_token(&config)?;
        let shards = Shards::new(config.threads.0).map_err(StartError::Threads)?;
        Ok(Self {
            context: Context::new(config, commands),
            shards: Arc::new(shards),
            settings: Arc::new(settings),
            gateways,
            redial,
        })
    }

    /// Which process this is, for gateways.
    pub fn instance(&self) -> &InstanceId {
        &self.context.instance
    }

    /// What it is doing, to be watched.
    pub fn phase(&self) -> watch::Receiver<Phase> {
        self.context.phase.subscribe()
    }

    /// Serves the sandbox until `stop` is cancelled, and then says goodbye and lets open streams
    /// finish; or until the sandbox is removed.
    ///
    /// # Errors
    ///
    /// [`StopReason`], when it stopped by itself.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the session without a goodbye; its streams end within the time that
    /// anything may outlive its end.
    pub async fn run(&self, stop: CancellationToken) -> Result<(), StopReason> {
        let admin = self.admin().await?;
        let health: Arc<dyn Health> = Arc::new(Told(Arc::clone(&self.context)));
        let serve = async {
            match admin {
                Some(server) => server.serve(health).await,
                None => std::future::pending().await,
            }
        };
        let home = async {
            let stopped = self.home(stop).await;
            self.context.phase.send_replace(Phase::Leaving);
            self.context.relays.close();
            // Nothing of a stream outlives its end by more; what still does is cut with the threads,
            // and commands by those who watch over this process.
            let ended = async {
                self.context.relays.wait().await;
                if let Some(commands) = &self.context.commands {
                    commands.stop_all().await;
                }
            };
            let _ = tokio::time::timeout(CLEANUP, ended).await;
            stopped
        };
        tokio::select! {
            stopped = home => stopped,
            () = serve => Ok(()),
            () = memory::watch(&self.context) => Ok(()),
        }
    }

    /// Keeps sessions on the thread of the first lane: what a relay there and its session tell each
    /// other crosses no threads.
    async fn home(&self, stop: CancellationToken) -> Result<(), StopReason> {
        let settings = Arc::clone(&self.settings);
        let learnt = Ready::new(move |url| settings.learnt(url));
        let homes = Homes::new(
            Arc::clone(&self.context),
            Arc::clone(&self.shards),
            Places::new(self.gateways.clone(), learnt),
            self.redial,
        );
        let task = self
            .shards
            .get(0)
            .spawn("homes", async move { homes.run(&stop).await });
        match AbortOnDropHandle::new(task).await {
            Ok(stopped) => stopped,
            // Nobody aborts it, and its thread lives as long as we do.
            Err(died) => std::panic::resume_unwind(died.into_panic()),
        }
    }

    async fn admin(&self) -> Result<Option<AdminServer>, StopReason> {
        let Some(address) = &self.context.config.admin else {
            return Ok(None);
        };
        let bound = AdminServer::bind(&address.to_string()).await;
        bound.map(Some).map_err(|source| StopReason::Admin {
            address: address.to_string(),
            source,
        })
    }
}

/// A token that is not there yet is a mistake. One that goes away later is waited for.
fn check_token(config: &Config) -> Result<(), StartError> {
    let Some(path) = &config.token_file else {
        return Ok(());
    };
    match std::fs::read_to_string(path) {
        Ok(_) => Ok(()),
        Err(source) => Err(StartError::Token {
            path: path.clone(),
            source,
        }),
    }
}

/// The configured gateways, and how others are dialled that they tell of.
fn gateways(config: &Config) -> Result<(Dialling, Vec<Gateway>), StartError> {
    let endpoints: Vec<Endpoint> = config
        .gateway
        .iter()
        .map(GatewayUrl::endpoint)
        .collect::<Result<_, _>>()?;
    let dialling = Dialling {
        tls: config.tls(&endpoints)?,
        proxy: config.proxy.rules()?,
        http2: config.http2(),
        connect_timeout: config.scaled(CONNECT_TIMEOUT),
        plaintext: !endpoints.iter().any(Endpoint::is_tls),
        token: config.token_file.is_some(),
    };
    let endpoints: Vec<Endpoint> = endpoints
        .into_iter()
        .map(|one| dialling.ready(one))
        .collect();
    config.check_token_is_safe(&endpoints)?;
    Ok((dialling, endpoints.into_iter().map(Gateway::new).collect()))
}

/// How gateways are dialled, wherever they are.
#[derive(Debug)]
struct Dialling {
    tls: Option<Arc<ClientTls>>,
    proxy: ProxyRules,
    http2: Http2,
    connect_timeout: Duration,
    /// Whether every configured gateway is dialled without TLS.
    plaintext: bool,
    /// Whether a token is shown.
    token: bool,
}

impl Dialling {
    fn ready(&self, endpoint: Endpoint) -> Endpoint {
        let endpoint = endpoint
            .with_proxy(self.proxy.clone())
            .with_settings(self.http2.clone())
            .with_connect_timeout(self.connect_timeout);
        match &self.tls {
            Some(tls) => endpoint.with_tls(Arc::clone(tls)),
            None => endpoint,
        }
    }

    /// An address that a gateway told, if it is as safe to dial as the configured ones.
    fn learnt(&self, url: &str) -> Option<Endpoint> {
        let endpoint = self.ready(Endpoint::parse(url).ok()?);
        let as_safe = endpoint.is_tls() || (self.plaintext && (!self.token || endpoint.is_local()));
        // Without configured TLS nobody has said which authorities are trusted.
        let trusted = !endpoint.is_tls() || !self.plaintext;
        (as_safe && trusted).then_some(endpoint)
    }
}

/// What the supervisor tells about itself.
struct Told(Arc<Context>);

impl Health for Told {
    fn ready(&self) -> Result<&'static str, String> {
        match &*self.0.phase.borrow() {
            Phase::Live { .. } => Ok("ready"),
            Phase::Dialling => Err("no session at a gateway".to_owned()),
            Phase::Leaving => Err("leaving".to_owned()),
        }
    }

    fn metrics(&self) -> String {
        self.0.metrics.text()
    }
}
