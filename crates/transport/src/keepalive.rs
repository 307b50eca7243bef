//! PING: how a connection finds out that its peer is gone without a word.
//!
//! ```text
//!  Quiet ──interval──▶ Waiting ──pong──▶ Quiet
//!                         │ timeout, but bytes arrived ─▶ Waiting (another timeout)
//!                         │ timeout in silence ─▶ expired
//! ```
//!
//! Any byte counts as life: on a slow link an answer can stand behind seconds of data.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::time::{Instant, Sleep, sleep};

use crate::Ping;
use crate::life::Life;

/// Sends PINGs on one connection and watches for life.
pub(crate) struct KeepAlive {
    active: Option<Active>,
}

struct Active {
    ping: Ping,
    pings: h2::PingPong,
    life: Arc<Life>,
    timer: Pin<Box<Sleep>>,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    /// Nothing is asked.
    Quiet,
    /// A PING is out; so many reads had happened when the timer was set.
    Waiting { reads: usize },
}

impl KeepAlive {
    pub(crate) fn new(ping: Option<Ping>, pings: Option<h2::PingPong>, life: &Arc<Life>) -> Self {
        let active = ping.zip(pings).map(|(ping, pings)| Active {
            ping,
            pings,
            life: Arc::clone(life),
            timer: Box::pin(sleep(ping.interval)),
            state: State::Quiet,
        });
        Self { active }
    }

    /// Starts the timer again on the runtime that calls.
    pub(crate) fn rehome(&mut self) {
        if let Some(active) = &mut self.active {
            active.timer = Box::pin(sleep(active.ping.interval));
        }
    }

    /// Becomes ready when the peer is taken for dead.
    pub(crate) fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.active {
            Some(active) => active.poll_expired(cx),
            None => Poll::Pending,
        }
    }
}

impl Active {
    fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.state {
                State::Quiet => {
                    ready!(self.timer.as_mut().poll(cx));
                    if self.pings.send_ping(h2::Ping::opaque()).is_err() {
                        // The connection is closing; its own end is on its way.
                        return Poll::Pending;
                    }
                    self.wait();
                }
                State::Waiting { reads } => match self.pings.poll_pong(cx) {
                    Poll::Ready(Ok(_)) => {
                        self.state = State::Quiet;
                        self.timer
                            .as_mut()
                            .reset(Instant::now() + self.ping.interval);
                    }
                    Poll::Ready(Err(_)) => return Poll::Pending,
                    Poll::Pending => {
                        ready!(self.timer.as_mut().poll(cx));
                        if self.life.reads() == reads {
                            return Poll::Ready(());
                        }
                        self.wait();
                    }
                },
            }
        }
    }

    fn wait(&mut self) {
        self.state = State::Waiting {
            reads: self.life.reads(),
        };
        self.timer
            .as_mut()
            .reset(Instant::now() + self.ping.timeout);
    }
}
