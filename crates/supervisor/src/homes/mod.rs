//! The way home: which gateways the supervisor has sessions with, for as long as it runs.
//!
//! One task owns the [`Roster`], which decides. It dials, in tasks of their own, what the roster
//! orders, and tells it what became of each. The sessions tell it of their beginning and of gateways
//! that leave; they end by themselves.

mod complaint;
mod places;
mod schedule;

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_lifecycle::cause::End;
use tidegate_lifecycle::id::GatewayId;
use tidegate_lifecycle::redial::{Bounds, Ended};
use tidegate_lifecycle::roster::{Order, Roster, Seat};
use tidegate_transport::Shards;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use self::complaint::Complaint;
pub(crate) use self::places::{Places, Ready};
use self::schedule::Clock;
use crate::context::Context;
use crate::session::{self, Assignment, Gateway, News, Over};
use crate::{Phase, StopReason};

/// News of sessions that may wait for this task; who has more waits.
const NEWS: usize = 64;

/// Keeps sessions at as many gateways as are wanted.
#[derive(Debug)]
pub(crate) struct Homes {
    context: Arc<Context>,
    shards: Arc<Shards>,
    places: Places,
    roster: Roster,
    clock: Clock,
    complaint: Complaint,
    seats: HashMap<Seat, Taken>,
    sessions: JoinSet<(Seat, Over)>,
    lookups: JoinSet<Vec<Gateway>>,
    news: mpsc::Receiver<(Seat, News)>,
    reporter: mpsc::Sender<(Seat, News)>,
}

/// A seat that is dialled for, or has a session.
#[derive(Debug)]
struct Taken {
    gateway: Gateway,
    /// Cancelled when another session has taken over.
    let_go: CancellationToken,
    /// What it is doing, once it has a session.
    phase: Option<Phase>,
}

/// What the task wakes up for.
enum Event {
    News(Seat, News),
    Over(Seat, Over),
    Places(Vec<Gateway>),
    Timer,
    Stop,
}

impl Homes {
    pub(crate) fn new(
        context: Arc<Context>,
        shards: Arc<Shards>,
        places: Places,
        redial: Bounds,
    ) -> Self {
        let (reporter, news) = mpsc::channel(NEWS);
        let roster = Roster::new(context.config.homes.0, places.configured(), redial);
        Self {
            clock: Clock::new(context.config.time_scale.0),
            context,
            shards,
            places,
            roster,
            complaint: Complaint::default(),
            seats: HashMap::new(),
            sessions: JoinSet::new(),
            lookups: JoinSet::new(),
            news,
            reporter,
        }
    }

    /// Opens sessions one after the other until told to stop, or until there is no reason for the next.
    ///
    /// # Errors
    ///
    /// When another instance took over.
    pub(crate) async fn run(mut self, stop: &CancellationToken) -> Result<(), StopReason> {
        self.roster.start(self.clock.now());
        loop {
            if let Some(over) = self.obey(stop) {
                return over;
            }
            match self.next(stop).await {
                Event::News(seat, news) => self.hear(seat, news),
                Event::Over(seat, Over::Ended(how)) => self.ended(seat, &how),
                Event::Over(seat, Over::Stopped) => self.ended(seat, &Ended::Removed),
                Event::Places(found) => self.learn(found),
                Event::Timer => self.roster.handle_timeout(self.clock.now()),
                Event::Stop => return self.leave().await,
            }
            self.tell();
        }
    }

    async fn next(&mut self, stop: &CancellationToken) -> Event {
        let timer = self.roster.poll_timeout().map(|at| self.clock.real(at));
        tokio::select! {
            biased;
            () = stop.cancelled() => Event::Stop,
            // What a session has said is heard before its end.
            Some((seat, news)) = self.news.recv() => Event::News(seat, news),
            Some(over) = self.sessions.join_next() => {
                let (seat, over) = whole(over);
                Event::Over(seat, over)
            }
            Some(found) = self.lookups.join_next() => Event::Places(whole(found)),
            () = sleep_until(timer.unwrap_or_else(Instant::now)), if timer.is_some() => Event::Timer,
        }
    }

    /// Does what the roster orders, until there is nothing more to do or no reason to go on.
    fn obey(&mut self, stop: &CancellationToken) -> Option<Result<(), StopReason>> {
        while let Some(order) = self.roster.poll_order() {
            match order {
                Order::Dial {
                    seat,
                    place,
                    replaces,
                    held,
                } => {
                    // The roster knows no place that was not told it.
                    let Some(gateway) = self.places.gateway(&place) else {
                        continue;
                    };
                    let assignment = Assignment {
                        gateway,
                        homes: self.context.config.homes.0,
                        replaces,
                        held,
                        ready: self.places.ready(),
                        let_go: CancellationToken::new(),
                    };
                    self.dial(seat, assignment, stop);
                }
                Order::LetGo(seat) => {
                    if let Some(taken) = self.seats.get(&seat) {
                        taken.let_go.cancel();
                    }
                }
                Order::Short { held, wanted } => tracing::warn!(
                    held,
                    wanted,
                    "there are fewer gateways than homes are asked for: the supervisor runs with \
                     fewer, and goes on looking"
                ),
                Order::Stop => {
                    tracing::info!("the sandbox was removed");
                    return Some(Ok(()));
                }
                Order::GiveWay(end) => return Some(Err(self.superseded(end))),
            }
        }
        None
    }

    fn dial(&mut self, seat: Seat, assignment: Assignment, stop: &CancellationToken) {
        let taken = Taken {
            gateway: assignment.gateway.clone(),
            let_go: assignment.let_go.clone(),
            phase: None,
        };
        self.seats.insert(seat, taken);
        let (context, shards) = (Arc::clone(&self.context), Arc::clone(&self.shards));
        let (reporter, stop) = (self.reporter.clone(), stop.clone());
        self.sessions.spawn(async move {
            let news = session::Outlet::new(seat, reporter);
            let over = session::serve(&context, &shards, assignment, news, &stop).await;
            (seat, over)
        });
    }

    fn hear(&mut self, seat: Seat, news: News) {
        let now = self.clock.now();
        match news {
            News::Began(accepted) => {
                if let Some(taken) = self.seats.get_mut(&seat) {
                    taken.phase = Some(Phase::Live {
                        gateway: taken.gateway.url.clone(),
                        session: accepted.session.clone(),
                    });
                }
                self.complaint.settle();
                let gateway = GatewayId::new(accepted.gateway);
                self.roster.began(seat, accepted.session, gateway, now);
                let known = self.places.admit(accepted.gateways);
                self.roster.learn(known, now);
                self.look_up();
            }
            News::AskedToMove { alternatives } => {
                tracing::info!(
                    gateway = self
                        .seats
                        .get(&seat)
                        .map(|taken| taken.gateway.url.as_str()),
                    "the gateway leaves, and asks for a session elsewhere"
                );
                let known = self.places.admit(alternatives);
                self.roster.asked_to_move(seat, known, now);
                self.look_up();
            }
        }
    }

    fn ended(&mut self, seat: Seat, how: &Ended) {
        let Some(taken) = self.seats.remove(&seat) else {
            return;
        };
        let now = self.clock.now();
        let again = self.roster.ended(seat, how, rand::random(), now);
        let (Some(again), Ended::With(end)) = (again, how) else {
            return;
        };
        let (stood, again) = (taken.phase.is_some(), self.clock.real_length(again));
        self.complaint.make(&taken.gateway, end, stood, again);
        self.look_up();
    }

    fn learn(&mut self, found: Vec<Gateway>) {
        let names = self.places.add(found);
        self.roster.learn(names, self.clock.now());
    }

    /// Looks up what the names of configured gateways stand for, unless that is being done.
    fn look_up(&mut self) {
        if self.lookups.is_empty() {
            self.lookups.spawn(self.places.lookup());
        }
    }

    /// Says what the supervisor is doing.
    fn tell(&self) {
        let live = self
            .seats
            .iter()
            .filter(|(seat, _)| self.roster.is_live(**seat));
        let newest = live.max_by_key(|(seat, _)| **seat);
        let phase = newest.and_then(|(_, taken)| taken.phase.clone());
        let phase = phase.unwrap_or(Phase::Dialling);
        self.context.phase.send_if_modified(|said| {
            let changed = *said != phase;
            *said = phase;
            changed
        });
    }

    /// Waits for the sessions, which say goodbye by themselves.
    async fn leave(mut self) -> Result<(), StopReason> {
        self.context.phase.send_replace(Phase::Leaving);
        loop {
            tokio::select! {
                // Nobody listens to their news any more, and none of them is to wait for that.
                Some(_) = self.news.recv() => {}
                over = self.sessions.join_next() => match over {
                    Some(over) => {
                        whole(over);
                    }
                    None => return Ok(()),
                },
            }
        }
    }

    fn superseded(&self, end: End) -> StopReason {
        StopReason::Superseded {
            sandbox: self.context.config.sandbox.clone(),
            instance: self.context.instance.clone(),
            end: Box::new(end),
        }
    }
}

/// Nobody aborts these tasks, and their thread lives as long as we do: one that has no result panicked.
fn whole<T>(joined: Result<T, JoinError>) -> T {
    joined.unwrap_or_else(|died| std::panic::resume_unwind(died.into_panic()))
}
