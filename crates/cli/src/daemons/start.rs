//! A gateway and a supervisor for this machine alone.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use tidegate_client::SandboxName;
use tidegate_gateway::{BindError, Gateway};
use tidegate_supervisor::Supervisor;

use crate::failure::{Failure, Trouble};

/// How long streams may go on after Ctrl-C: whoever presses it wants the end.
const STOP_GRACE: Duration = Duration::from_millis(200);

/// A gateway in plaintext that knows `sandbox`. It refuses to bind anything but the loopback.
///
/// # Errors
///
/// When the address cannot be had.
pub(super) async fn gateway(listen: SocketAddr, sandbox: SandboxName) -> Result<Gateway, Failure> {
    let config = tidegate_gateway::Config {
        listen: listen.into(),
        insecure_dev: true,
        sandboxes: vec![sandbox],
        ..tidegate_gateway::Config::default()
    };
    Gateway::bind(config).await.map_err(|error| {
        let remedy = match &error {
            BindError::Listen { source, .. } if source.kind() == ErrorKind::AddrInUse => {
                "Another `tidegate dev` may be running; --listen 127.0.0.1:0 takes a free port."
            }
            _ => "",
        };
        Failure::local(Trouble::Listen, error, remedy)
    })
}

/// A supervisor of `sandbox` that dials `url`, and nothing else: no proxy stands between.
///
/// # Errors
///
/// When it cannot start.
pub(super) fn supervisor(url: String, sandbox: SandboxName) -> Result<Supervisor, Failure> {
    let mut config = tidegate_supervisor::Config::new(url, sandbox);
    config.stop_grace = STOP_GRACE;
    Supervisor::new(config).map_err(|error| Failure::local(Trouble::System, error, ""))
}
