//! The unary methods: what the gateway tells and does when asked by a person or a program.

use std::sync::Arc;
use std::time::SystemTime;

use tidegate_directory::{DirectoryError, Home, SandboxEntry};
use tidegate_lifecycle::id::{SandboxName, SessionId, StreamId};
use tidegate_lifecycle::ownership::Standing;
use tidegate_lifecycle::session::GatewayState;
use tidegate_lifecycle::{End, Origin, Reason};
use tidegate_transport::ConnectionInfo;
use tidegate_wire::unary::{
    Caller, Deletion, GatewayApi, GatewayInfo, Health, Phase, Sandbox, ServiceStatus, Session,
    SshSession, Stream, User,
};

use crate::session::{self, Ending};
use crate::state::State;
use crate::stream::{Entry, check_known};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Answers from the state of the gateway.
pub(crate) struct Api(pub(crate) Arc<State>);

impl Api {
    fn status(&self) -> ServiceStatus {
        if self.0.draining.is_cancelled() {
            ServiceStatus::Degraded
        } else {
            ServiceStatus::Healthy
        }
    }

    fn unavailable(&self, error: &DirectoryError) -> End {
        self.0.end(Reason::DirectoryUnavailable, error.to_string())
    }

    fn ssh_session(
        &self,
        caller: &Caller,
        sandbox: &SandboxName,
        (token, expires): (String, SystemTime),
    ) -> SshSession {
        let local = caller
            .extension::<Arc<ConnectionInfo>>()
            .map(|connection| connection.local);
        let scheme = if self.0.config.tls_cert.is_some() {
            "https"
        } else {
            "http"
        };
        SshSession {
            sandbox: sandbox.clone(),
            token,
            gateway_host: local
                .map(|local| local.ip().to_string())
                .unwrap_or_default(),
            gateway_port: local.map(|local| local.port()).unwrap_or_default(),
            gateway_scheme: scheme.to_owned(),
            expires: Some(expires),
        }
    }
}

#[tonic::async_trait]
impl GatewayApi for Api {
    async fn health(&self) -> Health {
        Health {
            status: self.status(),
            version: VERSION.to_owned(),
        }
    }

    async fn gateway_info(&self, _: &Caller) -> Result<GatewayInfo, End> {
        let gateway = self.0.id.clone();
        Ok(GatewayInfo {
            status: self.status(),
            version: VERSION.to_owned(),
            gateway,
        })
    }

    async fn current_user(&self, caller: &Caller) -> Result<User, End> {
        let connection = caller.extension::<Arc<ConnectionInfo>>();
        let certified = connection.is_some_and(|connection| connection.identity.is_some());
        let (subject, provider) = if certified {
            ("certificate", "mtls")
        } else {
            ("anonymous", "none")
        };
        Ok(User {
            subject: subject.to_owned(),
            display_name: subject.to_owned(),
            identity_provider: provider.to_owned(),
            ..User::default()
        })
    }

    async fn sandbox(&self, _: &Caller, name: &SandboxName) -> Result<Sandbox, End> {
        let entry = self
            .0
            .directory
            .entry(name)
            .await
            .map_err(|error| self.unavailable(&error))?;
        match entry {
            Some(entry) => Ok(sandbox(entry)),
            None => check_known(&self.0, name).await.map(|()| uncertain(name)),
        }
    }

    async fn sandboxes(&self, _: &Caller) -> Result<Vec<Sandbox>, End> {
        let entries = self
            .0
            .directory
            .list()
            .await
            .map_err(|error| self.unavailable(&error))?;
        Ok(entries.into_iter().map(sandbox).collect())
    }

    async fn delete_sandbox(&self, _: &Caller, name: &SandboxName) -> Result<Deletion, End> {
        let forgotten = self.0.directory.forget(name).await;
        let forgotten = forgotten.map_err(|error| self.unavailable(&error))?;
        for session in self.0.sessions.of(name) {
            session.end(Ending::Deleted);
        }
        let Some(_) = forgotten else {
            return Ok(Deletion::AlreadyAbsent);
        };
        tracing::info!(sandbox = %name, "a sandbox was deleted");
        Ok(Deletion::Done)
    }

    async fn create_ssh_session(
        &self,
        caller: &Caller,
        sandbox: &SandboxName,
    ) -> Result<SshSession, End> {
        check_known(&self.0, sandbox).await?;
        let token = self.0.tickets.issue(sandbox.clone())?;
        Ok(self.ssh_session(caller, sandbox, token))
    }

    async fn revoke_ssh_session(&self, _: &Caller, token: &str) -> Result<Deletion, End> {
        let revoked = self.0.tickets.revoke(token);
        Ok(if revoked {
            Deletion::Done
        } else {
            Deletion::AlreadyAbsent
        })
    }

    async fn sessions(
        &self,
        _: &Caller,
        sandbox: Option<&SandboxName>,
    ) -> Result<Vec<Session>, End> {
        let all = self.0.sessions.all().into_iter();
        let asked = all.filter(|(session, _)| sandbox.is_none_or(|name| session.sandbox == *name));
        Ok(asked
            .map(|(session, state)| shown_session(&self.0, &session, state))
            .collect())
    }

    async fn streams(&self, _: &Caller, sandbox: Option<&SandboxName>) -> Result<Vec<Stream>, End> {
        let all = self.0.streams.all().into_iter();
        let asked = all.filter(|entry| sandbox.is_none_or(|name| entry.subject.sandbox == *name));
        Ok(asked.map(|entry| shown_stream(&self.0, &entry)).collect())
    }

    async fn close_stream(&self, _: &Caller, id: &StreamId) -> Result<(), End> {
        let Some(entry) = self.0.streams.find(id) else {
            let message = format!("no stream is called {id}: it may have ended");
            return Err(self.0.end(Reason::ChannelUnknown, message));
        };
        let end = End::new(
            Origin::Gateway,
            Reason::OperatorClosed,
            "an operator closed the stream",
        );
        entry.end(end);
        Ok(())
    }

    async fn close_session(
        &self,
        _: &Caller,
        sandbox: &SandboxName,
    ) -> Result<Vec<SessionId>, End> {
        let sessions = self.0.sessions.of(sandbox);
        if sessions.is_empty() {
            check_known(&self.0, sandbox).await?;
            let message = format!("no supervisor of sandbox {sandbox} is connected");
            return Err(self.0.end(Reason::NoSession, message));
        }
        for session in &sessions {
            session.end(Ending::Kicked);
        }
        Ok(sessions.iter().map(|session| session.id.clone()).collect())
    }
}

fn sandbox(entry: SandboxEntry) -> Sandbox {
    // What a gateway that is gone has recorded is a hint for streams, and no session.
    let is_there = |home: &Home| home.standing != Standing::Lapsed;
    let homes: Vec<Home> = entry.homes.into_iter().filter(is_there).collect();
    let phase = match (homes.is_empty(), entry.seen) {
        (false, _) => Phase::Ready,
        (true, true) => Phase::Unknown,
        (true, false) => Phase::Provisioning,
    };
    let instance = homes.first().map(|home| home.instance.clone());
    Sandbox {
        name: entry.name,
        phase,
        sessions: u32::try_from(homes.len()).unwrap_or(u32::MAX),
        instance: instance.filter(|instance| !instance.as_str().is_empty()),
        homes: homes.into_iter().map(|home| home.gateway).collect(),
        created: Some(entry.created),
        since: Some(entry.since),
    }
}

/// A name that may be one: the gateway has not been there for long enough to know, or waits for any.
fn uncertain(name: &SandboxName) -> Sandbox {
    Sandbox {
        name: name.clone(),
        phase: Phase::Unknown,
        homes: Vec::new(),
        sessions: 0,
        instance: None,
        created: None,
        since: None,
    }
}

fn shown_session(state: &State, session: &session::Session, phase: GatewayState) -> Session {
    Session {
        sandbox: session.sandbox.clone(),
        session: session.id.clone(),
        instance: session.instance.clone(),
        gateway: state.id.clone(),
        generation: session.generation,
        state: phase.as_str().to_owned(),
        since: Some(session.since),
        capabilities: session.agreed,
        streams: session.relays() as u64,
    }
}

fn shown_stream(state: &State, entry: &Entry) -> Stream {
    let progress = entry.progress();
    Stream {
        id: entry.id.clone(),
        sandbox: entry.subject.sandbox.clone(),
        kind: entry.kind().as_str().to_owned(),
        target: entry.subject.label(),
        state: progress.state.to_owned(),
        path: entry.path(&state.id),
        since: Some(entry.since),
        bytes_up: progress.bytes_up,
        bytes_down: progress.bytes_down,
        user: String::new(),
    }
}
