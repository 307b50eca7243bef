//! From a target's name to a connected socket.
//!
//! A name is resolved first, then its addresses are judged, then a judged address is connected to:
//! that very one, so that a name which changes in between leads nowhere else.

mod failure;
mod resolve;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tidegate_bridge::{Plug, harden};
use tidegate_lifecycle::Target;
use tidegate_lifecycle::cause::{End, Origin, Reason};
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio::time::{Instant, timeout, timeout_at};

use self::failure::{end, reason};
use crate::{Allowlist, Config};

/// How often a Unix socket whose backlog is full is tried: the kernel does not tell when it has room.
const BACKLOG_RETRY: Duration = Duration::from_millis(20);

/// Connects targets.
#[derive(Debug)]
pub(crate) struct Dialer {
    allow: Allowlist,
    ssh_socket: Option<PathBuf>,
    limit: Duration,
}

impl Dialer {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            allow: Allowlist::new(config.allow_target.clone()),
            ssh_socket: config.ssh_socket.clone(),
            limit: config.scaled(config.dial_timeout),
        }
    }

    /// Connects `target` within our own limit, or the shorter one that the gateway asks for.
    ///
    /// # Errors
    ///
    /// The end of the stream that asked for it. TARGET_NOT_ALLOWED means that no packet was sent.
    ///
    /// # Cancel safety
    ///
    /// A connection that was begun is closed.
    pub(crate) async fn dial(&self, target: &Target, asked: Option<Duration>) -> Result<Plug, End> {
        let limit = asked.map_or(self.limit, |asked| asked.min(self.limit));
        let by = Instant::now() + limit;
        let connected = match target {
            Target::Tcp { host, port } => self.tcp(host, *port, by).await,
            Target::Ssh => self.ssh(by).await,
            Target::Exec => Err(no_commands().into()),
        };
        connected.map_err(|failure| match failure {
            Failure::Late => {
                let message = format!("{target} did not answer within {limit:?}");
                End::new(Origin::Supervisor, Reason::DialTimeout, message)
            }
            Failure::End(end) => end,
        })
    }

    async fn tcp(&self, host: &str, port: u16, by: Instant) -> Result<Plug, Failure> {
        let addresses = timeout_at(by, resolve::addresses(host, port)).await??;
        let allowed: Vec<SocketAddr> = addresses
            .iter()
            .copied()
            .filter(|one| self.allow.permits(*one))
            .collect();
        if allowed.is_empty() {
            return Err(not_allowed(host, port, &addresses).into());
        }
        let stream = connect_first(&allowed, by).await?;
        Ok(Plug::Tcp(Arc::new(stream)))
    }

    async fn ssh(&self, by: Instant) -> Result<Plug, Failure> {
        let Some(path) = &self.ssh_socket else {
            let message = "this supervisor serves no ssh: start it with --ssh-socket PATH";
            return Err(End::new(Origin::Target, Reason::TargetUnreachable, message).into());
        };
        let connected = timeout_at(by, connect_unix(path)).await?;
        let stream = connected.map_err(|error| {
            let reason = match error.kind() {
                io::ErrorKind::NotFound => Reason::TargetUnreachable,
                _ => reason(&error),
            };
            end(reason, &path.display(), &error)
        })?;
        Ok(Plug::Unix(Arc::new(stream)))
    }
}

/// Why there is no connection.
#[derive(Debug)]
enum Failure {
    /// The time was over.
    Late,
    /// Anything else.
    End(End),
}

impl From<End> for Failure {
    fn from(end: End) -> Self {
        Self::End(end)
    }
}

impl From<tokio::time::error::Elapsed> for Failure {
    fn from(_: tokio::time::error::Elapsed) -> Self {
        Self::Late
    }
}

/// Tries the addresses in their order. Each gets its share of the time that is left, so that one
/// that swallows everything leaves some to the next. Of several failures a refusal tells most.
async fn connect_first(addresses: &[SocketAddr], by: Instant) -> Result<TcpStream, Failure> {
    let mut told: Option<Failure> = None;
    for (index, address) in addresses.iter().enumerate() {
        let others = u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
        let share = by.saturating_duration_since(Instant::now()) / others;
        let failure = match timeout(share, connect(*address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => match reason(&error) {
                Reason::DialTimeout => Failure::Late,
                reason => end(reason, address, &error).into(),
            },
            Err(_) => Failure::Late,
        };
        if told
            .as_ref()
            .is_none_or(|told| weight(&failure) > weight(told))
        {
            told = Some(failure);
        }
    }
    Err(told.unwrap_or(Failure::Late))
}

/// Connects a socket that resets from the beginning: a dial that is given up may have succeeded
/// already.
async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    harden(&socket)?;
    socket.connect(address).await
}

/// How much a failure tells, compared with that of another address of the same name.
const fn weight(failure: &Failure) -> u8 {
    match failure {
        Failure::End(End {
            reason: Reason::LimitResources,
            ..
        }) => 3,
        Failure::End(End {
            reason: Reason::TargetRefused,
            ..
        }) => 2,
        Failure::Late => 1,
        Failure::End(_) => 0,
    }
}

async fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                tokio::time::sleep(BACKLOG_RETRY).await;
            }
            done => return done,
        }
    }
}

fn not_allowed(host: &str, port: u16, addresses: &[SocketAddr]) -> End {
    let name = stream_name(host, port);
    let found: Vec<String> = addresses.iter().map(|one| one.ip().to_string()).collect();
    let message = format!(
        "{name} leads to {}, which this supervisor may not connect to: only the loopback and what \
         --allow-target names",
        found.join(", ")
    );
    End::new(Origin::Supervisor, Reason::TargetNotAllowed, message)
}

fn no_commands() -> End {
    let message = "this supervisor runs no commands";
    End::new(Origin::Supervisor, Reason::CapabilityRequired, message)
}

fn stream_name(host: &str, port: u16) -> String {
    let host = host.to_owned();
    Target::Tcp { host, port }.to_string()
}

#[cfg(test)]
mod tests;
