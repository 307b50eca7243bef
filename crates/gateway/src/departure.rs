//! The gateway leaves: who is told what, and when. What is decided is decided by
//! [`tidegate_lifecycle::drain`].

use std::sync::Arc;
use std::time::Instant;

use rand::seq::SliceRandom as _;
use tidegate_lifecycle::drain::{Drain, Step};
use tidegate_transport::Listener;
use tidegate_wire::unary::HealthSwitch;
use tokio::time::sleep_until;

use crate::gateway::Doors;
use crate::session::Session;
use crate::state::State;

/// A gateway that was told to leave.
pub(crate) struct Departure<'a> {
    state: &'a State,
    doors: &'a Doors,
    health: &'a HealthSwitch,
    listener: &'a mut Option<Listener>,
    drain: Drain,
    /// The sessions that are still to be told, the next one last.
    queue: Vec<Arc<Session>>,
    next: Instant,
    alternatives: Arc<[String]>,
}

/// What it wakes up for.
enum Event {
    Turn,
    Timer,
    Less,
}

impl<'a> Departure<'a> {
    pub(crate) fn new(
        state: &'a State,
        doors: &'a Doors,
        health: &'a HealthSwitch,
        listener: &'a mut Option<Listener>,
    ) -> Self {
        let times = &state.times;
        let scale = state.config.time_scale.0;
        Self {
            state,
            doors,
            health,
            listener,
            drain: Drain::new(times.drain_announce, times.drain_deadline, scale),
            queue: Vec::new(),
            next: Instant::now(),
            alternatives: Arc::default(),
        }
    }

    /// Runs until what is left has to be ended, or nothing is.
    pub(crate) async fn run(mut self) {
        let mut step = self.drain.begin(Instant::now());
        loop {
            while let Some(now) = step {
                match now {
                    Step::Announce => self.announce().await,
                    Step::Close => self.close(),
                    Step::Dismiss => self.dismiss(),
                    Step::Abort => return,
                }
                step = self.drain.look(self.state.left(), Instant::now());
            }
            if matches!(self.next_event().await, Event::Turn) {
                self.tell_next();
            }
            step = self.drain.look(self.state.left(), Instant::now());
        }
    }

    async fn next_event(&self) -> Event {
        let (state, now) = (self.state, Instant::now());
        let timer = self.drain.poll_timeout();
        tokio::select! {
            () = self.doors.accept(self.listener.as_ref()) => Event::Timer,
            () = sleep_until(self.next.into()), if !self.queue.is_empty() => Event::Turn,
            () = sleep_until(timer.unwrap_or(now).into()), if timer.is_some() => Event::Timer,
            () = state.streams.emptied() => Event::Less,
            () = state.sessions.emptied() => Event::Less,
        }
    }

    /// Whoever watches hears that this gateway is not ready, and supervisors are asked to move.
    async fn announce(&mut self) {
        self.state.draining.cancel();
        self.health.set_serving(false).await;
        let left = self.state.left();
        tracing::info!(
            streams = left.streams,
            sessions = left.sessions,
            announce = ?self.state.times.drain_announce,
            deadline = ?self.state.times.drain_deadline,
            "leaving: not ready any more, supervisors are asked to move"
        );
        self.line_up(|session| session.moves());
    }

    /// No new connections. Sessions whose supervisors understand nothing else end when they are empty.
    fn close(&mut self) {
        *self.listener = None;
        self.doors.say_goaway();
        let left = self.state.left();
        tracing::info!(
            streams = left.streams,
            sessions = left.sessions,
            "not listening any more, open streams may finish"
        );
        self.line_up(|session| !session.moves());
    }

    /// Who was asked to move has done so, cannot, or does not understand: a supervisor of an earlier
    /// release knows goodbye and nothing else of the capability.
    fn dismiss(&self) {
        for (session, _) in self.state.sessions.all() {
            session.dismiss();
        }
    }

    /// Puts those that `belong` into the queue, in no order: each of them is another's burden.
    fn line_up(&mut self, belong: impl Fn(&Session) -> bool) {
        let all = self.state.sessions.all().into_iter();
        let chosen = all.filter_map(|(session, _)| belong(&session).then_some(session));
        self.queue.extend(chosen);
        self.queue.shuffle(&mut rand::rng());
        self.next = Instant::now();
    }

    fn tell_next(&mut self) {
        let now = Instant::now();
        if let Some(session) = self.queue.pop() {
            let deadline = self.drain.remaining(now);
            session.leave(deadline, Arc::clone(&self.alternatives));
        }
        let count = self.state.left().sessions;
        self.next = now + self.drain.pause(count, rand::random());
    }
}
