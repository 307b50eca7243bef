//! What a session tells the task that wanted it.

use std::collections::VecDeque;

use tidegate_lifecycle::roster::Seat;
use tidegate_lifecycle::session::Accepted;
use tokio::sync::mpsc;

/// What happens to a session, but for its end.
#[derive(Debug)]
pub(crate) enum News {
    /// It stands.
    Began(Accepted),
    /// Its gateway leaves.
    AskedToMove {
        /// Where it says that others are.
        alternatives: Vec<String>,
    },
}

/// Where a session's news goes.
#[derive(Debug)]
pub(crate) struct Outlet {
    seat: Seat,
    sender: mpsc::Sender<(Seat, News)>,
}

impl Outlet {
    pub(crate) const fn new(seat: Seat, sender: mpsc::Sender<(Seat, News)>) -> Self {
        Self { seat, sender }
    }

    /// Passes the first of `news` on when there is room.
    ///
    /// # Cancel safety
    ///
    /// What was not passed on stays.
    pub(super) async fn pass(&self, news: &mut VecDeque<News>) {
        // Nobody listens any more: the supervisor is stopping.
        let Ok(place) = self.sender.reserve().await else {
            return news.clear();
        };
        if let Some(first) = news.pop_front() {
            place.send((self.seat, first));
        }
    }

    pub(super) async fn tell(&self, news: News) {
        // As above.
        let _ = self.sender.send((self.seat, news)).await;
    }
}
