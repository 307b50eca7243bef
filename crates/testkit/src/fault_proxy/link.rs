//! One proxied connection: two pumps, and the many ways to end both.

use tokio::{
    io::Interest,
    net::TcpStream,
    sync::{Notify, watch},
};

use super::{
    pump::{Pump, Stopped},
    settings::{Birth, Ending, Gate, Settings, Way},
};
use crate::socket::{Socket, reset_on_close};

/// Serves `downstream` until both directions are finished or one of them breaks.
pub(super) async fn run(downstream: TcpStream, settings: watch::Receiver<Settings>) {
    let first = settings.borrow().clone();
    let Ok(upstream) = TcpStream::connect(first.upstream).await else {
        return reset_on_close(&downstream);
    };
    let _ = downstream.set_nodelay(true); // both fail only on a connection that is gone already
    let _ = upstream.set_nodelay(true);
    match relay(&downstream, &upstream, &settings, first.now()).await {
        Ok(()) => {}
        Err(Stopped(Ending::Reset)) => {
            reset_on_close(&downstream);
            reset_on_close(&upstream);
        }
        Err(Stopped(Ending::Fin)) => {
            tokio::join!(close_with_fin(downstream), close_with_fin(upstream));
        }
    }
}

async fn relay(
    downstream: &TcpStream,
    upstream: &TcpStream,
    settings: &watch::Receiver<Settings>,
    birth: Birth,
) -> Result<(), Stopped> {
    let (down_finished, up_finished) = (Notify::new(), Notify::new());
    let mut told = settings.clone();
    let up = Pump::new(
        Way::Up,
        downstream,
        upstream,
        (settings.clone(), birth),
        &down_finished,
    );
    let down = Pump::new(
        Way::Down,
        upstream,
        downstream,
        (settings.clone(), birth),
        &up_finished,
    );
    tokio::select! {
        moved = async { tokio::try_join!(up.run(), down.run()) } => moved.map(|_| ()),
        broken = breaks_after_fin(downstream, &down_finished, (settings, birth), Way::Up) => {
            Err(broken)
        }
        broken = breaks_after_fin(upstream, &up_finished, (settings, birth), Way::Down) => {
            Err(broken)
        }
        told = told.wait_for(|settings| settings.ends(birth)) => {
            Err(Stopped(told.map_or(Ending::Reset, |settings| settings.ending)))
        }
    }
}

/// Waits for `socket` to break once its FIN was read: nobody reads it any more, so nobody else
/// would notice.
async fn breaks_after_fin(
    socket: &TcpStream,
    finished: &Notify,
    (settings, birth): (&watch::Receiver<Settings>, Birth),
    way: Way,
) -> Stopped {
    finished.notified().await;
    let broken = socket.ready(Interest::ERROR).await;
    let mut settings = settings.clone();
    let passes = settings
        .wait_for(|settings| settings.flow(way, birth).gate == Gate::Open)
        .await;
    drop((broken, passes)); // whichever failed, the connection is of no use any more
    Stopped(Ending::Reset)
}

/// Sends FIN and takes what still arrives: closing a socket with bytes unread would be a RST.
async fn close_with_fin(stream: TcpStream) {
    let socket = Socket::new(stream);
    let _ = socket.shutdown_write(); // fails on a connection that is gone already
    socket.read_to_end().await;
}
