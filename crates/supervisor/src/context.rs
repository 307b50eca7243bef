//! What every part of a supervisor may look at.

use std::sync::Arc;

use http::HeaderMap;
use tidegate_lifecycle::Capabilities;
use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_lifecycle::id::{HopName, InstanceId};
use tidegate_transport::Buffered;
use tidegate_wire::metadata;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::dial::Dialer;
use crate::exec::{self, Commands};
use crate::metrics::Metrics;
use crate::streams::Streams;
use crate::{Config, Phase};

/// Shared by every task of one supervisor.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) config: Config,
    pub(crate) instance: InstanceId,
    /// The name of this hop on a stream's path.
    pub(crate) hop: HopName,
    pub(crate) dialer: Dialer,
    /// Who runs commands, where that is done.
    pub(crate) commands: Option<Commands>,
    pub(crate) streams: Arc<Streams>,
    pub(crate) buffered: Arc<Buffered>,
    pub(crate) metrics: Metrics,
    pub(crate) phase: watch::Sender<Phase>,
    /// Every relay's task, of whichever session.
    pub(crate) relays: TaskTracker,
}

impl Context {
    pub(crate) fn new(config: Config, commands: Option<Commands>) -> Arc<Self> {
        let streams = Arc::new(Streams::default());
        let buffered = Buffered::new();
        Arc::new(Self {
            instance: InstanceId::new(uuid::Uuid::new_v4().to_string()),
            hop: HopName::new("supervisor"),
            dialer: Dialer::new(&config),
            metrics: Metrics::new(
                Arc::clone(&streams),
                Arc::clone(&buffered),
                commands.clone(),
            ),
            commands,
            streams,
            buffered,
            phase: watch::Sender::new(Phase::Dialling),
            relays: TaskTracker::new(),
            config,
        })
    }

    /// What a session is offered.
    pub(crate) fn offered(&self) -> Capabilities {
        exec::offered(self.commands.as_ref())
    }

    /// The metadata of every call: the token, read again each time so that it can be replaced.
    ///
    /// # Errors
    ///
    /// When the token's file cannot be read.
    pub(crate) async fn metadata(&self) -> Result<HeaderMap, End> {
        let mut headers = HeaderMap::new();
        if let Some(path) = &self.config.token_file {
            let token = tokio::fs::read_to_string(path).await.map_err(|error| {
                let message = format!("cannot read the token in {}: {error}", path.display());
                End::new(Origin::Supervisor, Reason::CredentialInvalid, message)
            })?;
            metadata::set_bearer(&mut headers, token.trim());
        }
        Ok(headers)
    }
}
