//! One hop of an execution: how the end of stdin and the end of the stream are written on it.
//!
//! | hop | end of stdin | the command runs | end |
//! |---|---|---|---|
//! | in the program's own hands | a message | a message | closed in peace |
//! | a call, explicit FIN agreed | a message; the request stays open | response headers | OK |
//! | a call without it | END_STREAM | response headers | OK |
//! | a supervisor's relay | a message | a message | END_STREAM and OK |
//! | between gateways | a message | a message; headers tell of an open path | OK |

use crate::capability::{Capabilities, Capability, HalfClose};
use crate::cause::End;
use crate::joint::Party;
use crate::leg::{Orientation, Role, Voice, Write};

/// One hop of an execution.
#[derive(Debug)]
pub struct Hop {
    voice: Voice,
    /// How the end of stdin is written. Unset until the response headers said it.
    half_close: Option<HalfClose>,
    /// Whether everybody beyond understands signals and results. Unset likewise.
    results: Option<bool>,
    /// Stdin has ended, but the form in which that is said here is not known yet.
    owes_fin: bool,
    /// The neighbour's direction ended.
    heard_end: bool,
    /// The neighbour has said its last word.
    concluded: bool,
}

impl Hop {
    /// A program that holds the stream in its own hands.
    pub const fn local() -> Self {
        Self::new(Role::Socket, Some(Capabilities::EXEC))
    }

    /// A call of ours. `agreed` is unset until the response headers say it.
    pub const fn opener(orientation: Orientation, agreed: Option<Capabilities>) -> Self {
        Self::new(Role::Opener(orientation), agreed)
    }

    /// The neighbour's call.
    pub const fn acceptor(orientation: Orientation, agreed: Capabilities) -> Self {
        Self::new(Role::Acceptor(orientation), Some(agreed))
    }

    /// A call that the neighbour has been asked to make.
    pub const fn awaited() -> Self {
        Self::new(Role::Acceptor(Orientation::Backward), None)
    }

    /// The same hop, whose neighbour is another gateway.
    #[must_use]
    pub fn between_gateways(mut self) -> Self {
        self.voice = self.voice.between_gateways();
        self
    }

    const fn new(role: Role, agreed: Option<Capabilities>) -> Self {
        let (half_close, results) = match agreed {
            Some(agreed) => (
                Some(agreed.half_close()),
                Some(agreed.has(Capability::ExecResult)),
            ),
            None => (None, None),
        };
        Self {
            voice: Voice::new(role),
            half_close,
            results,
            owes_fin: false,
            heard_end: false,
            concluded: false,
        }
    }

    /// What was awaited turns out to be a call of ours to the gateway that owns the session.
    pub(super) fn leads_to_owner(&mut self) {
        if self.half_close.is_none() {
            self.voice.leads_to_owner();
        }
    }

    /// What was agreed on is known.
    pub(super) fn opened(&mut self, half_close: HalfClose, results: bool) {
        if self.voice.role() != Role::Socket {
            (self.half_close, self.results) = (Some(half_close), Some(results));
        }
        if std::mem::take(&mut self.owes_fin) {
            self.finish();
        }
    }

    /// Stdin has ended: says so in the form of this hop.
    pub(super) fn finish(&mut self) {
        match self.has_explicit_fin() {
            _ if self.voice.has_ended() => {}
            // A relay that was asked for: there is nobody yet to say it to.
            _ if self.half_close.is_none() => self.owes_fin = true,
            Some(true) => self.voice.say(Write::FinFrame),
            Some(false) => self.voice.say_end(Write::EndStream),
            None => self.owes_fin = true,
        }
    }

    /// The neighbour's direction ended. Whether that is news.
    pub(super) const fn hear_end(&mut self) -> bool {
        !std::mem::replace(&mut self.heard_end, true)
    }

    pub(super) const fn has_heard_end(&self) -> bool {
        self.heard_end
    }

    pub(super) const fn conclude(&mut self) {
        self.concluded = true;
    }

    /// Whether the end of stdin is a message here; unset while that is not known.
    pub(super) fn has_explicit_fin(&self) -> Option<bool> {
        if self.voice.role() == Role::Socket || self.is_a_relay() {
            return Some(true);
        }
        self.half_close.map(|form| form == HalfClose::Explicit)
    }

    /// Whether signals are understood, and a misplaced resize is a fault; unset while not known.
    pub(super) const fn has_results(&self) -> Option<bool> {
        self.results
    }

    /// Whether anything of ours can follow.
    pub(super) const fn is_writable(&self) -> bool {
        !self.voice.has_said_end() && !self.voice.has_ended()
    }

    /// Whether it is a supervisor's, or leads to one through another gateway: the start's outcome and
    /// the exit are messages.
    pub(super) const fn is_a_relay(&self) -> bool {
        self.voice.role().may_be_explained() || self.voice.is_between_gateways()
    }

    /// Whether the neighbour learns from headers that the path is open, and from a message that the
    /// command runs.
    pub(super) const fn awaits_the_path(&self) -> bool {
        self.voice.is_between_gateways() && matches!(self.voice.role(), Role::Acceptor(_))
    }
}

impl Party for Hop {
    fn role(&self) -> Role {
        self.voice.role()
    }

    fn is_between_gateways(&self) -> bool {
        self.voice.is_between_gateways()
    }

    fn is_opening(&self) -> bool {
        self.half_close.is_none()
    }

    fn takes_keepalive(&self) -> bool {
        let is_local = self.voice.role() == Role::Socket;
        !is_local && self.has_explicit_fin() == Some(true) && self.is_writable()
    }

    fn is_half_closed(&self) -> bool {
        // A command without stdin is no stream that somebody forgot to end.
        false
    }

    fn has_concluded(&self) -> bool {
        self.concluded
    }

    fn has_writes(&self) -> bool {
        self.voice.has_writes()
    }

    fn poll_write(&mut self) -> Option<Write> {
        self.voice.poll_write()
    }

    fn keep_alive(&mut self) {
        self.voice.say(Write::Keepalive);
    }

    fn complete(&mut self) {
        self.voice.complete();
    }

    fn abort(&mut self, end: &End) {
        self.voice.abort(end);
    }

    fn cut(&mut self, end: &End) {
        self.voice.cut(end);
    }
}
