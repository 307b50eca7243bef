//! What a leg must be able to do, whatever it carries, for a joint to end it.

use crate::cause::End;
use crate::leg::{Leg, Orientation, Role, Write};

/// One leg of a joint.
pub(crate) trait Party {
    /// What it is made of.
    fn role(&self) -> Role;
    /// Whether the neighbour is another gateway.
    fn is_between_gateways(&self) -> bool;
    /// Whether the neighbour has not yet answered the call, or made the one it was asked for.
    fn is_opening(&self) -> bool;
    /// Whether silence towards the neighbour may be filled.
    fn takes_keepalive(&self) -> bool;
    /// Whether the neighbour's direction ended, so that the other one alone may be given up as idle.
    fn is_half_closed(&self) -> bool;
    /// Whether the neighbour has said its last word, and may go.
    fn has_concluded(&self) -> bool;
    fn has_writes(&self) -> bool;
    fn poll_write(&mut self) -> Option<Write>;
    fn keep_alive(&mut self);
    fn complete(&mut self);
    fn abort(&mut self, end: &End);
    fn cut(&mut self, end: &End);

    /// The path is open, which a client learns from headers. An empty message follows them at once
    /// where it knows what one is: a balancer may keep bare headers to itself, and a client that
    /// waits for them before it speaks would wait for ever. Between gateways there is no balancer,
    /// and the gateway that asked greets its own client.
    fn greet(&mut self) {
        let is_clients = self.role() == Role::Acceptor(Orientation::Forward);
        if is_clients && !self.is_between_gateways() && self.takes_keepalive() {
            self.keep_alive();
        }
    }
}

impl Party for Leg {
    fn role(&self) -> Role {
        self.role()
    }

    fn is_between_gateways(&self) -> bool {
        self.is_between_gateways()
    }

    fn is_opening(&self) -> bool {
        self.is_opening()
    }

    fn takes_keepalive(&self) -> bool {
        self.takes_keepalive()
    }

    fn is_half_closed(&self) -> bool {
        self.has_heard_fin()
    }

    fn has_concluded(&self) -> bool {
        self.has_concluded()
    }

    fn has_writes(&self) -> bool {
        self.has_writes()
    }

    fn poll_write(&mut self) -> Option<Write> {
        self.poll_write()
    }

    fn keep_alive(&mut self) {
        self.keep_alive();
    }

    fn complete(&mut self) {
        self.complete();
    }

    fn abort(&mut self, end: &End) {
        self.abort(end);
    }

    fn cut(&mut self, end: &End) {
        self.cut(end);
    }
}
