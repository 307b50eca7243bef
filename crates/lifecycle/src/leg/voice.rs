//! What is said towards one neighbour: in order, and its end once.

use std::collections::VecDeque;

use super::{Orientation, Role, Write};
use crate::cause::End;

/// The commands of one leg, whatever is carried on it.
#[derive(Debug)]
pub(crate) struct Voice {
    role: Role,
    /// The neighbour is another gateway.
    peer: bool,
    /// END_STREAM, or trailers, are queued: nothing of ours can follow but a reset.
    said_end: bool,
    ended: bool,
    writes: VecDeque<Write>,
}

impl Voice {
    pub(crate) const fn new(role: Role) -> Self {
        Self {
            role,
            peer: false,
            said_end: false,
            ended: false,
            writes: VecDeque::new(),
        }
    }

    /// The same, with another gateway as the neighbour.
    pub(crate) const fn between_gateways(mut self) -> Self {
        self.peer = true;
        self
    }

    /// The neighbour is not a supervisor that was asked to make a call, but another gateway that answers
    /// one of ours. Nothing was said yet.
    pub(crate) fn leads_to_owner(&mut self) {
        if !self.ended {
            *self = Self::new(Role::Opener(Orientation::Forward)).between_gateways();
        }
    }

    pub(crate) const fn role(&self) -> Role {
        self.role
    }

    /// Whether the neighbour is another gateway.
    pub(crate) const fn is_between_gateways(&self) -> bool {
        self.peer
    }

    pub(crate) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether END_STREAM, or trailers, were said.
    pub(crate) const fn has_said_end(&self) -> bool {
        self.said_end
    }

    pub(crate) fn has_writes(&self) -> bool {
        !self.writes.is_empty()
    }

    pub(crate) fn poll_write(&mut self) -> Option<Write> {
        self.writes.pop_front()
    }

    pub(crate) fn say(&mut self, write: Write) {
        self.writes.push_back(write);
    }

    pub(crate) fn say_end(&mut self, end: Write) {
        if !std::mem::replace(&mut self.said_end, true) {
            self.say(end);
        }
    }

    /// Ends the leg with its good status, behind what is to be written.
    pub(crate) fn complete(&mut self) {
        if self.end_once() {
            self.say_end(match self.role {
                Role::Socket => Write::Close,
                Role::Opener(_) => Write::EndStream,
                Role::Acceptor(_) => Write::Ok,
            });
        }
    }

    /// Tells the neighbour that the stream is cut, ahead of everything that was to be written.
    /// Trailers can be written once; whoever has none left, or never had, resets.
    pub(crate) fn abort(&mut self, end: &End) {
        if self.end_once() {
            self.writes.clear();
            let end = Box::new(end.clone());
            let has_trailers = matches!(self.role, Role::Acceptor(_)) && !self.said_end;
            self.say(if has_trailers {
                Write::Status(end)
            } else {
                Write::Reset(end)
            });
        }
    }

    /// The neighbour has cut the stream: nothing can be said to it any more, and a socket is closed
    /// in the same way.
    pub(crate) fn cut(&mut self, end: &End) {
        if self.end_once() {
            self.writes.clear();
            if self.role == Role::Socket {
                self.say(Write::Reset(Box::new(end.clone())));
            }
        }
    }

    fn end_once(&mut self) -> bool {
        !std::mem::replace(&mut self.ended, true)
    }
}
