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

use std::collections::VecDeque;

use crate::capability::HalfClose;
use crate::cause::{Cause, End, Origin, Reason};
use crate::state::{Event, State, Take, Violation};

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
#[derive(Debug)]
pub struct Leg {
    role: Role,
    half_close: Option<HalfClose>,
    state: State,
    /// FIN is to be said as soon as the leg is open and its form is known.
    fin_owed: bool,
    /// FIN cannot be said without ending the RPC, and the neighbour still sends.
    fin_withheld: bool,
    said_end: bool,
    heard_end: bool,
    heard_fin: bool,
    writes: VecDeque<Write>,
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
            role,
            half_close,
            state,
            fin_owed: false,
            fin_withheld: false,
            said_end: false,
            heard_end: false,
            heard_fin: false,
            writes: VecDeque::new(),
        }
    }

    /// What the leg is made of.
    pub const fn role(&self) -> Role {
        self.role
    }

    /// What the stream may do next on this hop.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Whether the neighbour's FIN was heard.
    pub const fn has_heard_fin(&self) -> bool {
        self.heard_fin
    }

    /// Whether our FIN was said, or withheld because the hop has no form for it.
    pub const fn has_said_fin(&self) -> bool {
        matches!(self.state, State::HalfClosedLocal | State::Closed(_)) || self.fin_withheld
    }

    /// Whether our FIN waits for a neighbour that cannot hear it while it sends.
    pub const fn withholds_fin(&self) -> bool {
        self.fin_withheld
    }

    /// Whether this leg, as the upstream one, has said that all is well there.
    pub const fn has_good_status(&self) -> bool {
        match self.role {
            Role::Socket => true,
            Role::Opener(_) | Role::Acceptor(_) => self.heard_end,
        }
    }

    /// Whether a bare loss of this leg is worth waiting for a word on the control stream.
    pub const fn may_be_explained(&self) -> bool {
        matches!(
            self.role,
            Role::Opener(Orientation::Backward) | Role::Acceptor(Orientation::Backward)
        )
    }

    /// Whether silence towards the neighbour may be filled with empty frames.
    pub const fn takes_keepalive(&self) -> bool {
        matches!(self.half_close, Some(HalfClose::Explicit))
            && !matches!(self.role, Role::Socket)
            && matches!(self.state, State::Open | State::HalfClosedRemote)
    }

    /// The form of FIN is known: the response headers came, or the awaited RPC was opened.
    pub fn opened(&mut self, half_close: HalfClose) {
        if let Ok(open) = self.state.recv_init() {
            self.state = open;
        }
        self.half_close = Some(half_close);
        if std::mem::take(&mut self.fin_owed) {
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
            Arrival::Init if self.state.is_closed() => Ok(Heard::Nothing),
            Arrival::Init => Err(Violation {
                state: self.state,
                event: Event::RecvInit,
            }),
            Arrival::Unknown => self.state.recv_unknown().map(|_| Heard::Nothing),
        }
    }

    /// Our side has no more bytes: says FIN in the form of this hop, behind what is queued.
    pub fn finish(&mut self) {
        let (true, Some(half_close)) = (self.state != State::AwaitInit, self.half_close) else {
            self.fin_owed = true;
            return;
        };
        match (self.role, half_close) {
            (Role::Acceptor(Orientation::Forward), HalfClose::Unsupported) => {
                self.fin_withheld = !self.state.is_closed();
                return;
            }
            (Role::Acceptor(Orientation::Backward), HalfClose::Unsupported) => self.say_ok(),
            (Role::Acceptor(_), HalfClose::Response | HalfClose::Explicit) => {
                self.write(Write::FinFrame);
            }
            (Role::Socket, _) | (Role::Opener(_), HalfClose::Unsupported | HalfClose::Response) => {
                self.say_end_stream();
            }
            (Role::Opener(orientation), HalfClose::Explicit) => {
                self.write(Write::FinFrame);
                if orientation == Orientation::Forward {
                    self.say_end_stream();
                }
            }
        }
        if let Ok(next) = self.state.send_fin() {
            self.state = next;
        }
    }

    /// The whole relay is finished: ends the leg with its good status.
    pub fn complete(&mut self) {
        match self.role {
            Role::Socket => self.write(Write::Close),
            Role::Opener(_) => self.say_end_stream(),
            Role::Acceptor(_) => self.say_ok(),
        }
        self.fin_withheld = false;
        self.state = self.state.abort(Cause::Finished);
    }

    /// The stream is cut: tells the neighbour, unless the leg has ended already.
    pub fn abort(&mut self, end: &End) {
        self.state = self.state.abort(end.cause());
        self.fin_owed = false;
        self.fin_withheld = false;
        self.writes.clear();
        match self.role {
            Role::Acceptor(_) if self.said_end => {}
            Role::Acceptor(_) => {
                self.said_end = true;
                self.write(Write::Status(Box::new(end.clone())));
            }
            Role::Socket | Role::Opener(_) => self.write(Write::Reset(Box::new(end.clone()))),
        }
    }

    /// The neighbour has cut the stream: nothing can be said to it any more.
    pub fn cut(&mut self, end: &End) {
        self.state = self.state.abort(end.cause());
        self.fin_owed = false;
        self.fin_withheld = false;
        self.said_end = true;
        self.writes.clear();
        if self.role == Role::Socket {
            self.write(Write::Reset(Box::new(end.clone())));
        }
    }

    /// Fills silence towards the neighbour.
    pub fn keep_alive(&mut self) {
        if self.takes_keepalive() {
            self.write(Write::Keepalive);
        }
    }

    /// The next thing to write on this leg.
    pub fn poll_write(&mut self) -> Option<Write> {
        self.writes.pop_front()
    }

    /// Who is on the other side of this hop.
    pub const fn neighbour(&self) -> Origin {
        match self.role {
            Role::Socket => Origin::Target,
            Role::Acceptor(Orientation::Forward) => Origin::Client,
            Role::Acceptor(Orientation::Backward) => Origin::Supervisor,
            Role::Opener(_) => Origin::Gateway,
        }
    }

    /// How an end without FIN is named on this leg.
    pub(crate) fn truncation(&self) -> End {
        let who = self.neighbour();
        let message = format!(
            "the {who} ended the stream without a half-close, so its bytes may be incomplete"
        );
        End::new(who, Reason::TransportLost, message)
    }

    fn recv_fin_frame(&mut self) -> Result<Heard, Violation> {
        let negotiated = match (self.role, self.half_close) {
            (Role::Socket, _) | (_, Some(HalfClose::Unsupported) | None) => false,
            (Role::Opener(_), Some(HalfClose::Response | HalfClose::Explicit)) => true,
            (Role::Acceptor(_), Some(HalfClose::Response)) => false,
            (Role::Acceptor(_), Some(HalfClose::Explicit)) => true,
        };
        if !negotiated && !self.state.is_closed() {
            return Err(Violation {
                state: self.state,
                event: Event::RecvFin,
            });
        }
        self.state = self.state.recv_fin()?;
        Ok(if std::mem::replace(&mut self.heard_fin, true) {
            Heard::Nothing
        } else {
            Heard::Fin
        })
    }

    fn recv_end(&mut self) -> Heard {
        let first = !std::mem::replace(&mut self.heard_end, true);
        if !first || matches!(self.state, State::Closed(Cause::Reset { .. })) {
            return Heard::Nothing;
        }
        if self.heard_fin {
            return if self.ends_too_early() {
                Heard::Truncated
            } else {
                Heard::Status
            };
        }
        if self.half_close == Some(HalfClose::Explicit) && self.role != Role::Socket {
            return Heard::Truncated;
        }
        match self.state.recv_fin() {
            Ok(next) => {
                self.state = next;
                self.heard_fin = true;
                Heard::FinAndStatus
            }
            Err(_) => Heard::Truncated,
        }
    }

    /// A good status although we still send, from a peer that could have said FIN alone.
    fn ends_too_early(&self) -> bool {
        matches!(self.role, Role::Opener(_))
            && self.half_close == Some(HalfClose::Explicit)
            && !self.has_said_fin()
    }

    fn say_end_stream(&mut self) {
        if !std::mem::replace(&mut self.said_end, true) {
            self.write(Write::EndStream);
        }
    }

    fn say_ok(&mut self) {
        if !std::mem::replace(&mut self.said_end, true) {
            self.write(Write::Ok);
        }
    }

    fn write(&mut self, write: Write) {
        self.writes.push_back(write);
    }
}
