//! Which gateways a supervisor has sessions with, and which it dials next.
//!
//! A supervisor wants `homes` sessions, each with another gateway. A *place* is a way to reach one: a
//! configured URL, or an address that was learnt later. Two places may lead to one gateway, and one
//! place (a balancer) to several, so that gateways are told apart by the name they give, and places
//! only say where to try.
//!
//! ```text
//!            began                     asked to move
//! Dialling ─────────▶ held ──────────────────────────▶ held, and dialling for a successor
//!    ▲                 │ ended                             │ began: the old one is let go,
//!    └──── schedule ───┘                                   ▼ and only now
//!                                                        held
//! ```
//!
//! A session that is let go is in nobody's way: it carries what it has and ends by itself. What the
//! roster decides comes out of [`Roster::poll_order`]; every wait is a deadline in
//! [`Roster::poll_timeout`]. Random numbers and the time come from the shell.

mod home;
mod places;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use self::home::{Attempt, Held, Home};
use self::places::Places;
use crate::cause::{End, Reason};
use crate::id::{GatewayId, SessionId};
use crate::redial::{Bounds, Ended, Next};

/// One attempt at a session, and the session that came of it. A later one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seat(u64);

/// What the shell has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Dial a place.
    Dial {
        /// What the attempt, and its session, is called.
        seat: Seat,
        /// Where.
        place: String,
        /// The session that the new one takes over from.
        replaces: Option<SessionId>,
        /// The gateways that are not to take another session.
        held: Vec<GatewayId>,
    },
    /// Another session has taken over from this one: it takes nothing new and ends when it is empty.
    LetGo(Seat),
    /// There are not as many gateways as homes were asked for. Said once, until there are.
    Short {
        /// The sessions that stand.
        held: usize,
        /// Those that were asked for.
        wanted: usize,
    },
    /// The sandbox was removed: end with success.
    Stop,
    /// Another supervisor serves the sandbox: end with failure, never redial.
    GiveWay(End),
}

/// The sessions of one supervisor.
///
/// After each `start`, `began`, `asked_to_move`, `ended`, `learn` and `handle_timeout`, drain
/// [`Roster::poll_order`] and read [`Roster::poll_timeout`].
#[derive(Debug)]
pub struct Roster {
    places: Places,
    homes: Vec<Home>,
    /// The sessions that were let go, and whose they were.
    leaving: BTreeMap<Seat, GatewayId>,
    orders: VecDeque<Order>,
    next: u64,
    short: bool,
}

impl Roster {
    /// Wants `homes` sessions, and knows `places`, of which the first is dialled first.
    pub fn new(homes: u8, places: impl IntoIterator<Item = String>, bounds: Bounds) -> Self {
        let places = Places::new(places);
        let count = places.len();
        let home = |index| Home::new(index, count, bounds);
        Self {
            homes: (0..usize::from(homes.max(1))).map(home).collect(),
            places,
            leaving: BTreeMap::new(),
            orders: VecDeque::new(),
            next: 0,
            short: false,
        }
    }

    /// Begins.
    pub fn start(&mut self, now: Instant) {
        for home in &mut self.homes {
            home.attempt = Attempt::Due { at: now };
        }
        self.dispatch(now);
    }

    /// Learns of further places. What is known already is not learnt again.
    pub fn learn(&mut self, places: impl IntoIterator<Item = String>, now: Instant) {
        self.places.learn(places);
        self.dispatch(now);
    }

    /// An attempt led to a session, at the gateway of this name.
    pub fn began(&mut self, seat: Seat, session: SessionId, gateway: GatewayId, now: Instant) {
        let Some((index, place)) = self.dialling(seat) else {
            return;
        };
        self.yield_to(index, &gateway, now);
        let home = &mut self.homes[index];
        home.attempt = Attempt::None;
        home.replaces = None;
        home.redial.found();
        let held = Held {
            seat,
            session,
            gateway,
            place,
            since: now,
            moving: false,
        };
        if let Some(old) = home.held.replace(held) {
            self.let_go(old);
        }
        if self.live() == self.homes.len() {
            self.short = false;
        }
        self.dispatch(now);
    }

    /// The gateway of a session asks for one elsewhere. The session stays until that one stands.
    pub fn asked_to_move(&mut self, seat: Seat, alternatives: Vec<String>, now: Instant) {
        self.places.learn(alternatives);
        let count = self.places.len();
        if let Some(home) = self.homes.iter_mut().find(|home| home.holds(seat)) {
            home.ask_to_move(count, now);
        }
        self.dispatch(now);
    }

    /// An attempt, or a session, is over; `jitter` is uniform in 0..1. Says after which time the next
    /// attempt in its place follows, if one does.
    pub fn ended(
        &mut self,
        seat: Seat,
        how: &Ended,
        jitter: f64,
        now: Instant,
    ) -> Option<Duration> {
        if self.leaving.remove(&seat).is_some() {
            return None;
        }
        let index = self.homes.iter().position(|home| home.is_of(seat))?;
        if self.is_own_doing(index, seat, how) {
            self.homes[index].lose_to_ourselves(now);
            self.dispatch(now);
            return None;
        }
        let count = self.places.len();
        let home = &mut self.homes[index];
        let again = match (home.ended(seat, how, count, jitter, now), how) {
            (Next::Dial { after, .. }, _) => Some(after),
            (Next::GiveWay, Ended::With(end)) => {
                self.orders.push_back(Order::GiveWay(end.clone()));
                return None;
            }
            (Next::GiveWay | Next::Stop, _) => {
                self.orders.push_back(Order::Stop);
                return None;
            }
        };
        self.complain(index);
        self.dispatch(now);
        again
    }

    /// The time has come that [`Self::poll_timeout`] named.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.dispatch(now);
    }

    /// What to do next.
    pub fn poll_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// When [`Self::handle_timeout`] is to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let due = |home: &Home| match home.attempt {
            Attempt::Due { at } => Some(at),
            Attempt::None | Attempt::Waiting | Attempt::Dialling { .. } => None,
        };
        self.homes.iter().filter_map(due).min()
    }

    /// How many sessions stand that take new relays.
    pub fn live(&self) -> usize {
        self.homes.iter().filter(|home| home.held.is_some()).count()
    }

    /// Whether this session takes new relays.
    pub fn is_live(&self, seat: Seat) -> bool {
        self.homes.iter().any(|home| home.holds(seat))
    }

    fn dialling(&self, seat: Seat) -> Option<(usize, usize)> {
        let place = |home: &Home| match home.attempt {
            Attempt::Dialling { seat: other, place } if other == seat => Some(place),
            Attempt::Dialling { .. } | Attempt::None | Attempt::Due { .. } | Attempt::Waiting => {
                None
            }
        };
        let mut all = self.homes.iter().enumerate();
        all.find_map(|(index, home)| Some((index, place(home)?)))
    }

    /// A gateway that gave us a second session has ended the first by that: an older one, which was
    /// told not to and does not understand. The second stays, and its home finds another gateway.
    fn yield_to(&mut self, winner: usize, gateway: &GatewayId, now: Instant) {
        if gateway.as_str().is_empty() {
            return;
        }
        let twin = |(index, home): &(usize, &mut Home)| {
            *index != winner
                && home
                    .held
                    .as_ref()
                    .is_some_and(|held| held.gateway == *gateway)
        };
        let Some((index, home)) = self.homes.iter_mut().enumerate().find(twin) else {
            return;
        };
        let old = home.held.take();
        if home.attempt == Attempt::None {
            let at = now + home.redial.duplicate();
            home.attempt = Attempt::Due { at };
        }
        if let Some(old) = old {
            self.let_go(old);
        }
        self.complain(index);
    }

    fn let_go(&mut self, old: Held) {
        self.orders.push_back(Order::LetGo(old.seat));
        self.leaving.insert(old.seat, old.gateway);
    }

    /// Whether a session was superseded by a session of ours, or may have been: an older gateway does
    /// that where it is not to, and the attempt that led there may not be known to have succeeded.
    fn is_own_doing(&self, index: usize, seat: Seat, how: &Ended) -> bool {
        let Ended::With(end) = how else { return false };
        if end.reason != Reason::Superseded || !self.homes[index].holds(seat) {
            return false;
        }
        let dialling = |home: &Home| matches!(home.attempt, Attempt::Dialling { .. });
        self.homes.iter().any(dialling)
    }

    /// Says that there are too few gateways, when every place has led to one that is held.
    fn complain(&mut self, index: usize) {
        let tried = self.homes[index].redial.duplicates();
        let each = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        let too_few = (1..self.homes.len()).contains(&self.live());
        if tried >= each && too_few && !self.short {
            self.short = true;
            self.orders.push_back(Order::Short {
                held: self.live(),
                wanted: self.homes.len(),
            });
        }
    }

    /// Dials for every home whose time has come and for which there is a place.
    fn dispatch(&mut self, now: Instant) {
        for index in 0..self.homes.len() {
            if !self.homes[index].is_due(now) {
                continue;
            }
            let Some(place) = self.choose(index) else {
                self.homes[index].attempt = Attempt::Waiting;
                continue;
            };
            let seat = Seat(self.next);
            self.next += 1;
            let order = Order::Dial {
                seat,
                place: self.places.name(place).to_owned(),
                replaces: self.homes[index].predecessor(),
                held: self.gateways(),
            };
            let home = &mut self.homes[index];
            home.attempt = Attempt::Dialling { seat, place };
            home.from = place;
            self.orders.push_back(order);
        }
    }

    /// The next place for a home: one that leads to none of our gateways as far as is known, else one
    /// that may be a balancer, and none to which an attempt is on its way, for both could end at one
    /// gateway.
    fn choose(&self, index: usize) -> Option<usize> {
        let home = &self.homes[index];
        let others = || {
            self.homes
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != index)
        };
        let busy = |place: usize| {
            others().any(|(_, other)| matches!(other.attempt, Attempt::Dialling { place: taken, .. } if taken == place))
        };
        let held = |place: usize| {
            self.homes
                .iter()
                .filter_map(|home| home.held.as_ref())
                .any(|held| held.place == place)
        };
        self.places.next(home.from, busy, held)
    }

    /// Every gateway that has a session of ours.
    fn gateways(&self) -> Vec<GatewayId> {
        let held = self.homes.iter().filter_map(|home| home.held.as_ref());
        let mut names: Vec<_> = held
            .map(|held| held.gateway.clone())
            .chain(self.leaving.values().cloned())
            .filter(|gateway| !gateway.as_str().is_empty())
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests;
