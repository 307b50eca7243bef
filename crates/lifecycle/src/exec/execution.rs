//! An execution on one hop pair: what a message of one side means for the other, and when it is over.
//!
//! The same machine runs in the client, in a gateway and in the supervisor, and is fed and drained
//! as a [`Relay`](crate::relay::Relay) is. It holds no messages: the shell moves them.
//!
//! Three things it makes sure of. The caller hears of one exit, or of none and why. What the caller
//! says after the exit, or leaves unsaid, delays nothing. An exit that was seen is not forgotten
//! when it cannot be delivered: its code is in the error.

use std::time::Instant;

use super::hop::Hop;
use super::state::{State, Step};
use super::{Kind, Violation};
use crate::capability::HalfClose;
use crate::cause::{Cause, End, Origin, Reason};
use crate::id::HopName;
use crate::joint::{Ending, Joint, Party, Rank, Side, Teller};
use crate::leg::{Orientation, Role, Write};
use crate::limits::StreamLimits;

/// The interrupt signal, which a terminal sends for its character.
const INT: i32 = 2;
/// The quit signal, likewise.
const QUIT: i32 = 3;

/// What to do with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// Hand it on.
    Deliver,
    /// Hand this byte of stdin on in its place: the terminal makes the signal of it.
    Type(u8),
    /// Tell the other side that the command runs, in the headers of the response.
    Announce,
    /// Drop it, and give its credit back.
    Discard,
}

/// An execution on one hop pair.
#[derive(Debug)]
pub struct Execution {
    joint: Joint<Hop>,
    state: State,
    tty: bool,
    /// The code that the command was seen to exit with.
    code: Option<i32>,
    refusal: Option<Box<End>>,
    /// How this hop ends the stream at that moment, if no exit has come by then.
    closing: Option<(Box<End>, Instant)>,
}

impl Execution {
    /// Joins the hop towards the caller and the one towards the process, on the hop called `hop`,
    /// which as an origin is `origin`.
    pub fn new(
        caller: Hop,
        process: Hop,
        limits: StreamLimits,
        origin: Origin,
        hop: HopName,
        now: Instant,
    ) -> Self {
        Self {
            joint: Joint::new([caller, process], limits, origin, hop, now),
            state: State::AwaitStart,
            tty: false,
            code: None,
            refusal: None,
            closing: None,
        }
    }

    /// Sets the deadline of the whole operation, as its caller asked.
    pub fn set_deadline(&mut self, deadline: Instant) {
        self.joint.set_deadline(deadline);
    }

    /// The path leads through another gateway: upstream is a call of ours to it, which it has answered.
    pub fn leads_to_owner(&mut self) {
        self.joint.leg_mut(Side::Upstream).leads_to_owner();
    }

    /// The hop on `side` is open: this is how the end of stdin is written there, and whether signals
    /// and results are understood all the way. Says whether the other side is told so: that the
    /// command runs, or, to another gateway, that the path is open.
    pub fn opened(&mut self, side: Side, half_close: HalfClose, results: bool) -> bool {
        let hop = self.joint.leg_mut(side);
        hop.opened(half_close, results);
        let is_a_call = hop.role() == Role::Opener(Orientation::Forward) && !hop.is_a_relay();
        let runs = side == Side::Upstream && is_a_call;
        if runs {
            self.state = self.state.running();
            self.joint.greet();
        }
        let caller = self.joint.leg(Side::Downstream);
        runs || (side == Side::Upstream && caller.awaits_the_path())
    }

    /// A failed start as the caller's hop is told of it by a message. Between gateways that is the
    /// only word about it, so this hop puts its name on it.
    #[must_use]
    pub fn refusal(&self, end: Box<End>) -> Box<End> {
        if self.joint.leg(Side::Downstream).is_between_gateways() {
            Box::new(self.joint.passed_on(&end))
        } else {
            end
        }
    }

    /// A message came from `side`. Says what to do with it.
    pub fn recv(&mut self, side: Side, kind: Kind, now: Instant) -> Take {
        if !self.joint.is_listening() {
            return Take::Discard;
        }
        match self.state.hear(side, kind) {
            Ok(Step::Pass(next)) => self.pass(side, kind, next, now),
            Ok(Step::Ignore) => Take::Discard,
            Err(violation) => self.refuse(side, violation),
        }
    }

    /// The process's side says that the command could not be started, and why.
    pub fn refused(&mut self, end: End, now: Instant) -> Take {
        let take = self.recv(Side::Upstream, Kind::Started(false), now);
        if self.state == State::Refused && self.refusal.is_none() {
            self.refusal = Some(Box::new(end));
        }
        take
    }

    /// The direction of `side` ended: END_STREAM of a request, OK of a response.
    pub fn recv_end(&mut self, side: Side, now: Instant) {
        if !self.joint.is_listening() || !self.joint.leg_mut(side).hear_end() {
            return;
        }
        match side {
            Side::Upstream => self.process_ends(),
            Side::Downstream => self.caller_ends(now),
        }
    }

    /// The neighbour on `side` broke a rule that only the shell can see.
    pub fn violate(&mut self, side: Side, reason: Reason, message: impl Into<String>) {
        self.joint.violate(side, reason, message);
    }

    /// The neighbour on `side` ended the stream, or was lost.
    pub fn end(&mut self, side: Side, rank: Rank, end: End) {
        self.joint.end(side, rank, end);
    }

    /// This hop ends the stream by its own decision.
    pub fn close(&mut self, end: End) {
        self.joint.close(end);
    }

    /// The command has been asked to end: this hop ends the stream at `until`, unless its exit has
    /// come by then.
    pub fn close_by(&mut self, end: End, until: Instant) {
        self.closing.get_or_insert_with(|| (Box::new(end), until));
    }

    /// Everything queued towards `side` was taken by it, also when there was nothing.
    pub fn flushed(&mut self, side: Side) {
        self.joint.flushed(side);
    }

    /// `side` took some payload bytes.
    pub fn progressed(&mut self, side: Side, now: Instant) {
        self.joint.progressed(side, now);
    }

    /// Payload bytes wait for `side`, which takes none. Nobody waits for a process that has ended.
    pub fn blocked(&mut self, side: Side, now: Instant) {
        if side == Side::Downstream || !self.state.is_over() {
            self.joint.blocked(side, now);
        }
    }

    /// Ends the step: decides between endings, notices deadlines and the end of it all.
    pub fn settle(&mut self, now: Instant) {
        if self.joint.outcome().is_some() {
            return;
        }
        self.joint.tick(now);
        if let Some((end, _)) = self.closing.take_if(|(_, until)| *until <= now)
            && !self.state.is_over()
        {
            self.joint.close(*end);
        }
        if let Some(ending) = self.joint.decide(now) {
            self.conclude(*ending);
        } else if self.joint.is_listening() {
            self.advance();
        }
    }

    /// The next thing to write towards `side`, behind the messages queued before.
    pub fn poll_write(&mut self, side: Side) -> Option<Write> {
        self.joint.poll_write(side)
    }

    /// When [`Execution::settle`] must be called again although nothing moves.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let live = self.joint.outcome().is_none() && !self.state.is_over();
        let closing = self.closing.as_ref().filter(|_| live);
        let closing = closing.map(|(_, until)| *until);
        [self.joint.poll_timeout(), closing]
            .into_iter()
            .flatten()
            .min()
    }

    /// How the stream ended, once it has. An exit with any code is a good end.
    pub fn outcome(&self) -> Option<Result<(), &End>> {
        self.joint.outcome()
    }

    /// Whose neighbour ended it, and so needs no word about it on a control stream.
    pub const fn ended_by(&self) -> Option<Side> {
        self.joint.ended_by()
    }

    /// The cause for states and metrics, once the stream has ended.
    pub fn cause(&self) -> Option<Cause> {
        self.joint.cause()
    }

    /// What may be said next.
    pub const fn state(&self) -> State {
        self.state
    }

    fn pass(&mut self, side: Side, kind: Kind, next: State, now: Instant) -> Take {
        let take = match kind {
            Kind::Start { tty } => {
                self.tty = tty;
                Take::Deliver
            }
            Kind::StdinFin => {
                self.finish_stdin(now);
                return Take::Discard;
            }
            Kind::Resize => self.resize(),
            Kind::Signal(number) => self.signal(number),
            Kind::Started(true) if !self.tells_by_message() => {
                self.joint.greet();
                Take::Announce
            }
            Kind::Started(false) if !self.tells_by_message() => Take::Discard,
            Kind::Exit(code) => {
                self.code = Some(code);
                self.ends_with_exit();
                Take::Deliver
            }
            Kind::Started(_) | Kind::Stdin(_) | Kind::Output(..) => Take::Deliver,
            Kind::Empty | Kind::Unknown => Take::Discard,
        };
        self.state = next;
        if matches!(take, Take::Deliver | Take::Type(_)) {
            self.joint.hand_on(side, now);
        }
        take
    }

    fn refuse(&mut self, side: Side, violation: Violation) -> Take {
        let message = format!("protocol violation: {violation}");
        self.violate(side, Reason::ProtocolViolation, message);
        Take::Discard
    }

    fn resize(&mut self) -> Take {
        let caller_knows_better =
            self.joint.leg(Side::Downstream).has_results() == Some(true) && !self.tty;
        if caller_knows_better {
            let message = "resize: the command runs without a terminal";
            self.violate(Side::Downstream, Reason::InvalidRequest, message);
        }
        if self.tty && self.joint.leg(Side::Upstream).is_writable() {
            Take::Deliver
        } else {
            Take::Discard
        }
    }

    /// Passes a signal on where everybody understands it. Until the hop beyond is known it is sent
    /// as it is: who does not know it ignores it.
    fn signal(&mut self, number: i32) -> Take {
        let unknown = |side| self.joint.leg(side).has_results() == Some(false);
        if !Side::BOTH.into_iter().any(unknown) {
            return Take::Deliver;
        }
        match number {
            INT if self.can_type() => Take::Type(0x03),
            QUIT if self.can_type() => Take::Type(0x1c),
            _ => {
                let message = format!(
                    "signal {number} cannot be sent: a hop on the path does not offer \
                     exec-result-v1, and only INT and QUIT of a terminal go without it"
                );
                let origin = self.joint.origin();
                let end = End::new(origin, Reason::CapabilityRequired, message);
                self.joint.close(end);
                Take::Discard
            }
        }
    }

    fn can_type(&self) -> bool {
        self.tty && self.state.takes_stdin()
    }

    fn finish_stdin(&mut self, now: Instant) {
        self.state = self.state.without_stdin();
        self.joint.hand_on(Side::Downstream, now);
        self.joint.leg_mut(Side::Upstream).finish();
    }

    /// The exit is the last word of a relay and of a program; a call has its status yet to come.
    fn ends_with_exit(&mut self) {
        let process = self.joint.leg_mut(Side::Upstream);
        if process.role() != Role::Opener(Orientation::Forward) {
            process.conclude();
        }
        // Whether it took all of stdin is nobody's concern now.
        self.joint.let_go(Side::Upstream);
    }

    fn process_ends(&mut self) {
        if self.state.is_over() {
            self.joint.leg_mut(Side::Upstream).conclude();
        } else {
            let missing = "the command's exit was known";
            self.joint.truncate(Side::Upstream, missing);
        }
    }

    fn caller_ends(&mut self, now: Instant) {
        let caller = self.joint.leg_mut(Side::Downstream);
        if self.state.is_over() {
            caller.conclude();
            return;
        }
        let answers = matches!(caller.role(), Role::Opener(_));
        let explicit = caller.has_explicit_fin() != Some(false);
        match (self.state.takes_stdin(), explicit) {
            _ if answers || self.state == State::AwaitStart => {
                let missing = "the command's exit was delivered";
                self.joint.truncate(Side::Downstream, missing);
            }
            (true, true) => {
                let missing = "the end of stdin: input may be missing";
                self.joint.truncate(Side::Downstream, missing);
            }
            (true, false) => self.finish_stdin(now),
            (false, _) => {}
        }
    }

    /// Whether the caller's hop has messages for the outcome of a start.
    fn tells_by_message(&self) -> bool {
        match self.joint.leg(Side::Downstream).role() {
            Role::Socket => true,
            Role::Opener(_) | Role::Acceptor(_) => self.joint.leg(Side::Downstream).is_a_relay(),
        }
    }

    fn advance(&mut self) {
        if self.state == State::Refused {
            self.settle_refusal();
        }
        if self.state == State::Draining && self.is_delivered() {
            self.state = State::Exited;
        }
        if self.state == State::Exited && self.joint.leg(Side::Upstream).has_concluded() {
            self.joint.finish();
            self.state = State::Closed(Cause::Finished);
        }
    }

    /// A neighbour that ended its call with OK has the exit, whatever was heard of that.
    fn is_delivered(&self) -> bool {
        let caller = self.joint.leg(Side::Downstream);
        let has_answered = caller.has_heard_end() && matches!(caller.role(), Role::Opener(_));
        self.joint.is_flushed(Side::Downstream) || has_answered
    }

    /// Passes the failed start on, as a message where there is one for it, and both hops end well;
    /// elsewhere it is the status.
    fn settle_refusal(&mut self) {
        let by_message = self.tells_by_message();
        if by_message && !self.is_delivered() {
            return;
        }
        let Some(end) = self.refusal.take() else {
            return;
        };
        if by_message {
            self.joint.leg_mut(Side::Downstream).complete();
        }
        self.joint.leg_mut(Side::Upstream).complete();
        self.conclude(Ending {
            rank: Rank::Typed,
            teller: Teller::Neighbour(Side::Upstream),
            end: *end,
        });
    }

    fn conclude(&mut self, mut ending: Ending) {
        ending.end.exit_code = ending.end.exit_code.or(self.code);
        self.state = State::Closed(ending.end.cause());
        self.joint.conclude(ending);
    }
}
