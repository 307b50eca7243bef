//! One leg of a relay: how FIN and the end of a stream are read and written on one hop.
//!
//! [`State`] knows what is legal; a leg also knows the form. A gRPC server can end its own side only
//! with trailers, and those end the call, so FIN is a frame wherever both ends agreed on one:
//!
//! | agreed on this hop | FIN of the RPC's opener | FIN of its acceptor |
//! |---|---|---|
//! | [`HalfClose::Unsupported`] | END_STREAM | the end of the RPC with OK |
//! | [`HalfClose::Response`] | END_STREAM | a frame; trailers when both directions are done |
//! | [`HalfClose::Explicit`] | a frame, then END_STREAM | a frame, then trailers |
//!
//! In the last row a direction that ends without its frame was aborted. There, on a leg whose opener
//! is the upstream side (a supervisor's relay), END_STREAM is that side's final status: it says that
//! everything was delivered, and comes only then.

mod voice;

use crate::capability::HalfClose;
use crate::cause::{Cause, End};
use crate::state::{Event, State, Take, Violation};

pub(crate) use self::voice::Voice;

/// What the leg is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A socket or a pair of pipes: FIN is `shutdown(WR)`, the end is a close or a reset.
    Socket,
    /// An RPC that this side opened.
    Opener(Orientation),
    /// An RPC that the neighbour opened.
    Acceptor(Orientation),
}

impl Role {
    /// Whether a bare loss of the leg is worth waiting for a word on the control stream.
    pub(crate) const fn may_be_explained(self) -> bool {
        match self {
            Self::Opener(orientation) | Self::Acceptor(orientation) => {
                matches!(orientation, Orientation::Backward)
            }
            Self::Socket => false,
        }
    }
}

/// Which way an RPC points on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orientation {
    /// The downstream side opened it: requests flow towards the target.
    Forward,
    /// The upstream side opened it, as a supervisor does: requests flow towards the client.
    Backward,
}

/// What to write on a leg, in this order, behind the bytes queued before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// A half-close frame.
    FinFrame,
    /// END_STREAM, or `shutdown(WR)` of a socket.
    EndStream,
    /// Trailers with OK.
    Ok,
    /// Trailers with a status; a stream that cannot write them in time is reset.
    Status(Box<End>),
    /// RST_STREAM, or a reset of the socket.
    Reset(Box<End>),
    /// Everything was delivered: close the socket in peace.
    Close,
    /// An empty data frame, so that no one on the way takes silence for death.
    Keepalive,
}

/// What the neighbour's direction brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A frame, or a read, of this many payload bytes.
    Data(usize),
    /// A half-close frame.
    FinFrame,
    /// The direction ended: END_STREAM in a request, trailers with OK in a response, a read of 0.
    End,
    /// An init, on a stream that has had its own.
    Init,
    /// A frame without a known payload.
    Unknown,
}

/// What an arrival means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Hand these bytes on.
    Deliver,
    /// Nothing: an empty frame, or something that crossed the end of the stream.
    Nothing,
    /// The neighbour's bytes are complete.
    Fin,
    /// The neighbour's final status is known, and good.
    Status,
    /// The neighbour's bytes are complete and its final status is good.
    FinAndStatus,
    /// The direction ended without the FIN it should have had.
    Truncated,
}

/// One leg. Its commands come out of [`Leg::poll_write`].
///
/// It ends once, with [`Leg::complete`], [`Leg::abort`] or [`Leg::cut`]; what it is asked afterwards
/// says nothing any more.
#[derive(Debug)]
pub struct Leg {
    voice: Voice,
    half_close: Option<HalfClose>,
    state: State,
    fin: OurFin,
    heard_end: bool,
    concluded: bool,
}

/// How far our own FIN is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OurFin {
    /// There is more to send.
    NotYet,
    /// To be said as soon as the leg is open and its form is known.
    Owed,
    /// Cannot be said without ending the RPC, and the neighbour still sends.
    Withheld,
    /// Queued.
    Said,
}

impl Leg {
    /// A socket that is connected.
    pub const fn socket() -> Self {
        Self::new(Role::Socket, Some(HalfClose::Response), State::Open)
    }

    /// An RPC of ours whose first frame is queued. `half_close` is unset until the response headers
    /// say what was agreed, and set where the session has agreed on it before.
    pub const fn opener(orientation: Orientation, half_close: Option<HalfClose>) -> Self {
        Self::new(Role::Opener(orientation), half_close, State::Open)
    }

    /// The neighbour's RPC whose first frame was valid.
    pub const fn acceptor(orientation: Orientation, half_close: HalfClose) -> Self {
        Self::new(Role::Acceptor(orientation), Some(half_close), State::Open)
    }

    /// An RPC that the neighbour has been asked to open.
    pub const fn awaited() -> Self {
        Self::new(
            Role::Acceptor(Orientation::Backward),
            None,
            State::AwaitInit,
        )
    }

    const fn new(role: Role, half_close: Option<HalfClose>, state: State) -> Self {
        Self {
            voice: Voice::new(role),
            half_close,
            state,
            fin: OurFin::NotYet,
            heard_end: false,
            concluded: false,
        }
    }

    /// The same leg, whose neighbour is another gateway.
    #[must_use]
    pub fn between_gateways(mut self) -> Self {
        self.voice = self.voice.between_gateways();
        self
    }

    /// Whether the neighbour is another gateway.
    pub const fn is_between_gateways(&self) -> bool {
        self.voice.is_between_gateways()
    }

    /// What the leg is made of.
    pub const fn role(&self) -> Role {
        self.voice.role()
    }

    /// What the stream may do next on this hop.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Whether the neighbour has not yet answered the RPC, or opened the one it was asked for.
    pub const fn is_opening(&self) -> bool {
        self.half_close.is_none()
    }

    /// Whether the neighbour's FIN was heard, on a leg that was not reset.
    pub const fn has_heard_fin(&self) -> bool {
        matches!(
            self.state,
            State::HalfClosedRemote | State::Closed(Cause::Finished)
        )
    }

    /// Whether our FIN was said, or withheld because the hop has no form for it.
    pub const fn has_said_fin(&self) -> bool {
        matches!(self.fin, OurFin::Said | OurFin::Withheld)
    }

    /// Whether our FIN waits for a neighbour that cannot hear it while it sends, and still may.
    pub fn withholds_fin(&self) -> bool {
        self.fin == OurFin::Withheld && self.state.can_recv()
    }

    /// Whether something is to be written that [`Leg::poll_write`] has not handed out yet.
    pub fn has_writes(&self) -> bool {
        self.voice.has_writes()
    }

    /// Whether this leg, as the upstream one, has said that all is well there.
    pub const fn has_good_status(&self) -> bool {
        match self.role() {
            Role::Socket => true,
            Role::Opener(_) | Role::Acceptor(_) => self.heard_end,
        }
    }

    /// Whether the neighbour has said its last word, a good one, and knew that ours was said: its
    /// part is over, so that a loss of it afterwards loses nothing.
    pub const fn has_concluded(&self) -> bool {
        self.concluded
    }

    /// Whether a bare loss of this leg is worth waiting for a word on the control stream.
    pub const fn may_be_explained(&self) -> bool {
        self.role().may_be_explained()
    }

    /// Whether silence towards the neighbour may be filled with empty frames.
    pub const fn takes_keepalive(&self) -> bool {
        matches!(self.half_close, Some(HalfClose::Explicit))
            && matches!(self.state, State::Open | State::HalfClosedRemote)
    }

    /// What was awaited turns out to be a call of ours to the gateway that owns the session.
    pub(crate) fn leads_to_owner(&mut self) {
        if self.is_opening() {
            self.voice.leads_to_owner();
        }
    }

    /// The form of FIN is known: the response headers came, or the awaited RPC was opened.
    pub fn opened(&mut self, half_close: HalfClose) {
        if self.voice.has_ended() || self.role() == Role::Socket {
            return;
        }
        if let Ok(open) = self.state.recv_init() {
            self.state = open;
        }
        self.half_close = Some(half_close);
        if self.fin == OurFin::Owed {
            self.finish();
        }
    }

    /// Something arrived.
    ///
    /// # Errors
    ///
    /// When it is not legal in this state, or FIN came in a form that was not negotiated.
    pub fn recv(&mut self, arrival: Arrival) -> Result<Heard, Violation> {
        match arrival {
            Arrival::Data(len) => match self.state.recv_data()? {
                Take::Deliver if len > 0 => Ok(Heard::Deliver),
                Take::Deliver | Take::Discard => Ok(Heard::Nothing),
            },
            Arrival::FinFrame => self.recv_fin_frame(),
            Arrival::End => Ok(self.recv_end()),
            Arrival::Init => self.state.recv_init().map(|_| Heard::Nothing),
            Arrival::Unknown => self.state.recv_unknown().map(|_| Heard::Nothing),
        }
    }

    /// Our side has no more bytes: says FIN in the form of this hop, behind what is queued.
    pub fn finish(&mut self) {
        if self.voice.has_ended() || self.has_said_fin() {
            return;
        }
        match self.half_close {
            Some(half_close) if self.state != State::AwaitInit => self.say_fin(half_close),
            Some(_) | None => self.fin = OurFin::Owed,
        }
    }

    /// The whole relay is finished: ends the leg with its good status.
    pub fn complete(&mut self) {
        self.state = self.state.abort(Cause::Finished);
        self.voice.complete();
    }

    /// The stream is cut: tells the neighbour, ahead of everything that was to be written. Trailers
    /// can be written once; whoever has none left, or never had, resets.
    pub fn abort(&mut self, end: &End) {
        self.state = self.state.abort(end.cause());
        self.voice.abort(end);
    }

    /// The neighbour has cut the stream: nothing can be said to it any more, and a socket is closed
    /// in the same way.
    pub fn cut(&mut self, end: &End) {
        self.state = self.state.abort(end.cause());
        self.voice.cut(end);
    }

    /// Fills silence towards the neighbour.
    pub fn keep_alive(&mut self) {
        if self.takes_keepalive() {
            self.voice.say(Write::Keepalive);
        }
    }

    /// The next thing to write on this leg.
    pub fn poll_write(&mut self) -> Option<Write> {
        self.voice.poll_write()
    }

    fn recv_fin_frame(&mut self) -> Result<Heard, Violation> {
        if self.state.is_closed() {
            return Ok(Heard::Nothing);
        }
        let negotiated = match (self.role(), self.half_close) {
            (Role::Socket, _) | (_, Some(HalfClose::Unsupported) | None) => false,
            (Role::Opener(_), Some(HalfClose::Response | HalfClose::Explicit)) => true,
            (Role::Acceptor(_), Some(HalfClose::Response)) => false,
            (Role::Acceptor(_), Some(HalfClose::Explicit)) => true,
        };
        if !negotiated {
            return Err(Violation {
                state: self.state,
                event: Event::RecvUnknownFin,
            });
        }
        self.state = self.state.recv_fin()?;
        Ok(Heard::Fin)
    }

    fn recv_end(&mut self) -> Heard {
        let again = std::mem::replace(&mut self.heard_end, true);
        if again || self.voice.has_ended() {
            return Heard::Nothing;
        }
        let knew_our_fin = self.has_said_fin();
        let heard = if self.has_heard_fin() {
            self.recv_status()
        } else {
            self.recv_bare_end()
        };
        self.concluded = knew_our_fin && heard != Heard::Truncated && self.end_is_a_status();
        heard
    }

    /// END_STREAM, or OK, behind a FIN. An acceptor with a frame for FIN had no reason to end the
    /// RPC while we still send.
    fn recv_status(&self) -> Heard {
        let cut_short = matches!(self.role(), Role::Opener(_)) && !self.has_said_fin();
        if cut_short {
            Heard::Truncated
        } else {
            Heard::Status
        }
    }

    /// END_STREAM, or OK, and no FIN before it: that is FIN wherever a frame was not promised.
    fn recv_bare_end(&mut self) -> Heard {
        if self.half_close.is_none() && self.state != State::AwaitInit {
            // The RPC is over before its headers said what they agree on: on nothing.
            self.opened(HalfClose::Unsupported);
        }
        let promised = self.half_close == Some(HalfClose::Explicit);
        match self.state.recv_fin() {
            Ok(next) if !promised => {
                self.state = next;
                Heard::FinAndStatus
            }
            Ok(_) | Err(_) => Heard::Truncated,
        }
    }

    /// Whether the end of the neighbour's direction says more than FIN does: OK does, END_STREAM
    /// only from an upstream side that promised to wait with it.
    fn end_is_a_status(&self) -> bool {
        match self.role() {
            Role::Socket | Role::Acceptor(Orientation::Forward) => false,
            Role::Opener(_) => true,
            Role::Acceptor(Orientation::Backward) => self.half_close == Some(HalfClose::Explicit),
        }
    }

    fn say_fin(&mut self, half_close: HalfClose) {
        match (self.role(), half_close) {
            (Role::Acceptor(Orientation::Forward), HalfClose::Unsupported) => {
                self.fin = OurFin::Withheld;
                return;
            }
            (Role::Acceptor(Orientation::Backward), HalfClose::Unsupported) => {
                self.voice.say_end(Write::Ok);
            }
            (Role::Acceptor(_), HalfClose::Response | HalfClose::Explicit)
            | (Role::Opener(Orientation::Backward), HalfClose::Explicit) => {
                self.voice.say(Write::FinFrame);
            }
            (Role::Opener(Orientation::Forward), HalfClose::Explicit) => {
                self.voice.say(Write::FinFrame);
                self.voice.say_end(Write::EndStream);
            }
            (Role::Opener(_), HalfClose::Unsupported | HalfClose::Response) => {
                self.voice.say_end(Write::EndStream);
            }
            (Role::Socket, _) => self.voice.say(Write::EndStream),
        }
        self.fin = OurFin::Said;
        if let Ok(next) = self.state.send_fin() {
            self.state = next;
        }
    }
}

#[cfg(test)]
mod tests;
