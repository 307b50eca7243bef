//! The small programs of the bench: this executable under hidden subcommands.
//!
//! A worker prints `ready …` once it serves, and ends when its standard input does: the bench holds
//! the other end, so no worker outlives it, however it ends.

mod grpc;
mod relay;
mod sessions;
mod source;
mod target;
pub(crate) mod tls;

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;

/// Which worker, with all it needs to know.
#[derive(Subcommand)]
pub(crate) enum Worker {
    /// Serves whatever the load generator orders.
    #[command(hide = true)]
    Target,
    /// One hop of a plain relay chain.
    #[command(hide = true)]
    Relay {
        /// Where each accepted connection goes.
        #[arg(long)]
        connect: SocketAddr,
        /// TLS on the accepted side.
        #[arg(long)]
        accept_tls: bool,
        /// TLS on the dialled side.
        #[arg(long)]
        connect_tls: bool,
        /// The folder with keys and certificates.
        #[arg(long)]
        certificates: PathBuf,
    },
    /// Holds idle supervisor sessions.
    #[command(hide = true)]
    Sessions {
        /// The gateway.
        #[arg(long)]
        gateway: SocketAddr,
        /// How many sessions, each on a connection of its own.
        #[arg(long)]
        count: usize,
        /// The folder with keys and certificates; plaintext without.
        #[arg(long)]
        certificates: Option<PathBuf>,
    },
    /// A command that writes in bulk. The bench has it run in a sandbox: it alone does not end with
    /// its standard input, on which it is told to begin.
    #[command(hide = true)]
    Source {
        /// How much.
        #[arg(long)]
        bytes: u64,
    },
}

impl Worker {
    /// Works until standard input ends, or the work.
    pub(crate) async fn run(self) -> Result<()> {
        if !matches!(self, Self::Source { .. }) {
            end_with_stdin();
        }
        match self {
            Self::Source { bytes } => source::run(bytes),
            Self::Target => target::run().await,
            Self::Relay {
                connect,
                accept_tls,
                connect_tls,
                certificates,
            } => {
                let acceptor = accept_tls
                    .then(|| tls::acceptor(&certificates))
                    .transpose()?;
                let connector = connect_tls
                    .then(|| tls::connector(&certificates))
                    .transpose()?;
                relay::run(relay::Hop {
                    connect,
                    acceptor,
                    connector,
                })
                .await
            }
            Self::Sessions {
                gateway,
                count,
                certificates,
            } => sessions::run(gateway, count, certificates.as_deref()).await,
        }
    }

    /// The subcommand.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Relay { .. } => "relay",
            Self::Sessions { .. } => "sessions",
            Self::Source { .. } => "source",
        }
    }

    /// The command line that makes this value again.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut line: Vec<OsString> = vec![self.name().into()];
        match self {
            Self::Target => {}
            Self::Relay {
                connect,
                accept_tls,
                connect_tls,
                certificates,
            } => {
                line.extend(["--connect".into(), connect.to_string().into()]);
                line.extend(accept_tls.then(|| "--accept-tls".into()));
                line.extend(connect_tls.then(|| "--connect-tls".into()));
                line.extend(["--certificates".into(), certificates.into()]);
            }
            Self::Sessions {
                gateway,
                count,
                certificates,
            } => {
                line.extend(["--gateway".into(), gateway.to_string().into()]);
                line.extend(["--count".into(), count.to_string().into()]);
                if let Some(folder) = certificates {
                    line.extend(["--certificates".into(), folder.into()]);
                }
            }
            Self::Source { bytes } => line.extend(["--bytes".into(), bytes.to_string().into()]),
        }
        line
    }
}

/// Tells the bench that the worker serves.
fn ready(answer: impl std::fmt::Display) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "ready {answer}")?;
    stdout.flush()
}

fn end_with_stdin() {
    std::thread::spawn(|| {
        let ended = io::copy(&mut io::stdin().lock(), &mut io::sink());
        std::process::exit(i32::from(ended.is_err()));
    });
}
