//! The end of every test: nothing is left, and nobody complained.

use std::time::Duration;

use tidegate_testkit::probe::{Baseline, SocketState, open_sockets, sockets_of_port};
use tidegate_testkit::wait;

use crate::daemon::Daemon;
use crate::forward::Forward;

/// How long everything may take to be as it was.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// Waits until no stream is open or wanted anywhere.
pub(crate) async fn streams_end(daemons: &[&Daemon], forwards: &[Forward]) -> Result<(), String> {
    for forward in forwards {
        forward.idle(SOON).await?;
    }
    for daemon in daemons {
        let mut left = (0.0, 0.0);
        let ended = wait::until_async(SOON, async || {
            let metrics = daemon.metrics();
            left = (
                metrics.sum("tidegate_streams"),
                metrics.sum("tidegate_pending_relays"),
            );
            left == (0.0, 0.0)
        });
        if ended.await.is_err() {
            let (streams, pending) = left;
            return Err(format!(
                "{streams} streams and {pending} pending relays are left after {SOON:?} at\n{}",
                daemon.process()
            ));
        }
    }
    Ok(())
}

/// Every stream that was counted in was counted out, with a reason.
pub(crate) fn counters_add_up(daemon: &Daemon) -> Result<(), String> {
    let metrics = daemon.metrics();
    let opened = metrics.sum("tidegate_streams_opened_total");
    let ended = metrics.sum("tidegate_streams_ended_total");
    if opened == ended {
        Ok(())
    } else {
        Err(format!(
            "{opened} streams were opened and {ended} ended: {:#?}",
            metrics.others
        ))
    }
}

/// Waits until the gateway's connections are exactly those of the supervisors.
pub(crate) async fn connections_end(gateway: &Daemon, supervisor: Option<&Daemon>) {
    let connected = |daemon: &Daemon| {
        let sockets = open_sockets(daemon.process().id());
        let established = sockets
            .iter()
            .filter(|socket| socket.state == SocketState::Established);
        established.count()
    };
    let alone = wait::until_async(SOON, async || {
        connected(gateway) == supervisor.map_or(0, connected)
    });
    alone
        .await
        .expect("a client that has gone leaves no connection");
}

/// Waits until descriptors, sockets and gauges are back.
pub(crate) async fn holdings_return(baseline: &Baseline, ports: &[u16]) -> Result<(), String> {
    let restored = baseline.wait_restored(SOON).await;
    restored.map_err(|leak| leak.to_string())?;
    let mut stuck = Vec::new();
    let gone = wait::until_async(SOON, async || {
        stuck = ports.iter().copied().flat_map(sockets_of_port).collect();
        stuck.retain(|socket| {
            matches!(socket.state, SocketState::CloseWait | SocketState::FinWait2)
        });
        stuck.is_empty()
    });
    gone.await.map_err(|_| format!("{stuck:?} are stuck"))
}
