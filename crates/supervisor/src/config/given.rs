//! The same keys as flags, as environment variables and in a file.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser};
use serde::Deserialize;
use tidegate_daemon::{Dur, Size};

use crate::AllowRule;

/// Dials home from inside a sandbox and connects the streams that people open to their targets.
#[derive(Debug, Parser)]
#[command(
    name = "tidegate-supervisor",
    version,
    after_help = "Examples:\n  \
        tidegate-supervisor --gateway http://127.0.0.1:7070 --sandbox local\n  \
        tidegate-supervisor --gateway https://gateway.example.com:7070 --sandbox build-17 \\\n      \
            --ca gateway-ca.crt --cert supervisor.crt --key supervisor.key\n  \
        tidegate-supervisor --config /etc/tidegate/supervisor.toml --allow-target 10.0.0.0/8:5432"
)]
pub struct Cli {
    /// A TOML file with the same keys as the flags, underscores for dashes
    #[arg(long, value_name = "FILE", env = "TIDEGATE_CONFIG")]
    pub config: Option<PathBuf>,

    /// More logs: -v for decisions, -vv for everything
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,

    /// The keys themselves.
    #[command(flatten)]
    pub given: Given,
}

/// What can be said of a supervisor, in whichever place.
#[derive(Debug, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Given {
    /// A gateway to dial, http:// or https://; repeat it for others of the same service
    #[arg(
        long,
        value_name = "URL",
        env = "TIDEGATE_GATEWAY",
        value_delimiter = ','
    )]
    pub gateway: Vec<String>,

    /// The name that people ask for
    #[arg(long, value_name = "NAME", env = "TIDEGATE_SANDBOX")]
    pub sandbox: Option<String>,

    /// Authorities of the gateway's certificate, PEM; by default the system's
    #[arg(long, value_name = "FILE", env = "TIDEGATE_CA")]
    pub ca: Option<PathBuf>,

    /// The certificate chain to show, PEM
    #[arg(long, value_name = "FILE", env = "TIDEGATE_CERT")]
    pub cert: Option<PathBuf>,

    /// Its key, PEM
    #[arg(long, value_name = "FILE", env = "TIDEGATE_KEY")]
    pub key: Option<PathBuf>,

    /// A file with a bearer token, read again at each connect
    #[arg(long, value_name = "FILE", env = "TIDEGATE_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,

    /// Addresses beyond the loopback that streams may lead to; PORT is a number, FROM-TO or *
    #[arg(
        long,
        value_name = "CIDR:PORT",
        env = "TIDEGATE_ALLOW_TARGET",
        value_delimiter = ','
    )]
    pub allow_target: Vec<AllowRule>,

    /// The Unix socket behind ssh streams
    #[arg(long, value_name = "PATH", env = "TIDEGATE_SSH_SOCKET")]
    pub ssh_socket: Option<PathBuf>,

    /// An HTTP proxy to reach the gateway through; by default HTTPS_PROXY and NO_PROXY say
    #[arg(
        long,
        value_name = "URL",
        env = "TIDEGATE_PROXY",
        hide_env_values = true
    )]
    pub proxy: Option<String>,

    /// Where to serve /healthz, /readyz and /metrics
    #[arg(long, value_name = "ADDR", env = "TIDEGATE_ADMIN")]
    pub admin: Option<String>,

    /// Threads that move bytes [default: 1]
    #[arg(long, value_name = "N", env = "TIDEGATE_THREADS")]
    pub threads: Option<NonZeroUsize>,

    /// How long a target may take to answer [default: 10s]
    #[arg(long, value_name = "DUR", env = "TIDEGATE_DIAL_TIMEOUT")]
    pub dial_timeout: Option<Dur>,

    /// How long open streams may take to finish after SIGTERM [default: 10s]
    #[arg(long, value_name = "DUR", env = "TIDEGATE_STOP_GRACE")]
    pub stop_grace: Option<Dur>,

    /// The first wait before another attempt, which grows [default: 500ms]
    #[arg(long, value_name = "DUR", env = "TIDEGATE_REDIAL_MIN")]
    pub redial_min: Option<Dur>,

    /// The longest wait before another attempt [default: 30s]
    #[arg(long, value_name = "DUR", env = "TIDEGATE_REDIAL_MAX")]
    pub redial_max: Option<Dur>,

    /// Streams that may be open at once [default: 20000]
    #[arg(long, value_name = "N", env = "TIDEGATE_MAX_STREAMS")]
    pub max_streams: Option<usize>,

    /// Bytes that may be buffered before new streams are refused [default: 128MiB]
    #[arg(long, value_name = "SIZE", env = "TIDEGATE_MAX_BUFFERED")]
    pub max_buffered: Option<Size>,

    /// Bytes of one stream that may be on their way from the gateway [default: 1MiB]
    #[arg(long, value_name = "SIZE", env = "TIDEGATE_STREAM_WINDOW")]
    pub stream_window: Option<Size>,

    /// Send an empty frame into silence of this length, for balancers that cut silent streams
    #[arg(long, value_name = "DUR", env = "TIDEGATE_STREAM_KEEPALIVE")]
    pub stream_keepalive: Option<Dur>,

    /// Divide every time by this, in tests
    #[arg(long, value_name = "N", env = "TIDEGATE_TIME_SCALE", hide = true)]
    pub time_scale: Option<f64>,
}
