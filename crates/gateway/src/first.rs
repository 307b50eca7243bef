//! The first message of a stream, and the answer to a call that does not have a good one.

use bytes::Bytes;
use tidegate_lifecycle::limits::STATUS_GRACE;
use tidegate_lifecycle::{Capabilities, End, Origin, Reason};
use tidegate_transport::{Received, RecvHalf, Respond};
use tidegate_wire::exec::{self, ItemReader};
use tidegate_wire::frame::{Frame, FrameError, FrameLimit, FrameReader};
use tidegate_wire::{DecodeError, status};
use tokio::time::timeout;

use crate::state::State;

/// Why a call ends before it began.
#[derive(Debug)]
pub(crate) enum NoFirst {
    /// It is answered with this.
    Refuse(End),
    /// Its caller went away: there is nobody to answer.
    Gone(End),
}

/// What a stream begins with.
pub(crate) enum First {
    /// The message that it must begin with.
    Init(Bytes),
    /// Another.
    Other,
}

/// Reads the first message of a stream, and what follows it.
pub(crate) trait Beginning {
    /// What the first message must be.
    const WHAT: &'static str;

    /// Takes the next bytes of the stream.
    fn push(&mut self, bytes: Bytes);
    /// The first message; none until more bytes are pushed.
    ///
    /// # Errors
    ///
    /// When the bytes are no message.
    fn first(&mut self) -> Result<Option<First>, FrameError>;
    /// How many of the bytes pushed are not part of a message that has come out.
    fn buffered(&self) -> usize;
}

impl Beginning for FrameReader {
    const WHAT: &'static str = "init";

    fn push(&mut self, bytes: Bytes) {
        self.push(bytes);
    }

    fn first(&mut self) -> Result<Option<First>, FrameError> {
        Ok(self.next()?.map(|frame| match frame {
            Frame::Init(init) => First::Init(init),
            Frame::Data(_) | Frame::HalfClose | Frame::Empty | Frame::Unknown => First::Other,
        }))
    }

    fn buffered(&self) -> usize {
        self.buffered()
    }
}

impl Beginning for ItemReader {
    const WHAT: &'static str = "start";

    fn push(&mut self, bytes: Bytes) {
        self.push(bytes);
    }

    fn first(&mut self) -> Result<Option<First>, FrameError> {
        Ok(self.first()?.map(|first| match first {
            exec::First::Start(start) => First::Init(start),
            exec::First::Other => First::Other,
        }))
    }

    fn buffered(&self) -> usize {
        self.buffered()
    }
}

/// A reader of a frame stream of which nothing was agreed yet.
pub(crate) fn frames() -> FrameReader {
    FrameReader::new(FrameLimit::of(Capabilities::NONE))
}

/// Reads the first message of a stream from `recv` and parses it with `parse`. The reader that comes
/// with it holds what arrived behind it.
///
/// # Errors
///
/// INIT_TIMEOUT, PROTOCOL_VIOLATION for anything but the message that must be first, INVALID_REQUEST
/// for one that misses something, GATEWAY_DRAINING.
pub(crate) async fn read<R: Beginning, T>(
    state: &State,
    who: Origin,
    recv: &mut RecvHalf,
    mut reader: R,
    parse: impl FnOnce(&Bytes) -> Result<T, DecodeError>,
) -> Result<(T, R), NoFirst> {
    let first = tokio::select! {
        biased;
        first = timeout(state.times.init, first(recv, &mut reader, who)) => first,
        () = state.closed.cancelled() => return Err(NoFirst::Refuse(state.drained())),
    };
    let init = match first {
        Ok(Ok(First::Init(init))) => init,
        Ok(Ok(First::Other)) => {
            let message = format!("the first frame must be {}", R::WHAT);
            return Err(NoFirst::Refuse(violation(who, &message)));
        }
        Ok(Err(none)) => return Err(none),
        Err(_) => return Err(NoFirst::Refuse(late(state))),
    };
    match parse(&init) {
        Ok(parsed) => Ok((parsed, reader)),
        Err(error) => Err(NoFirst::Refuse(invalid(who, &error))),
    }
}

/// Answers a call with a status and nothing else, and gives its caller a moment to stop sending.
pub(crate) async fn refuse(respond: Respond, mut recv: RecvHalf, end: &End) {
    if respond.trailers_only(status::trailers(end)).is_ok() {
        // What a caller that talks on has to say is not waited for.
        let _ = timeout(STATUS_GRACE, discard(&mut recv)).await;
    }
}

/// Why a first message that did not come in time ends the call.
pub(crate) fn late(state: &State) -> End {
    let message = format!(
        "the first message did not come within {:?}",
        state.times.init
    );
    End::new(Origin::Gateway, Reason::InitTimeout, message)
}

/// Why a message that cannot be used ends the call: `error` names the field.
pub(crate) fn invalid(who: Origin, error: &DecodeError) -> End {
    let reason = match error {
        DecodeError::Malformed => Reason::ProtocolViolation,
        DecodeError::Missing { .. } | DecodeError::Bad { .. } => Reason::InvalidRequest,
    };
    End::new(who, reason, error.to_string())
}

/// What a broken frame ends the call with.
pub(crate) fn broken(who: Origin, error: FrameError) -> End {
    let reason = match error {
        FrameError::TooLarge { .. } => Reason::FrameTooLarge,
        FrameError::Compressed | FrameError::Malformed => Reason::ProtocolViolation,
    };
    End::new(who, reason, error.to_string())
}

/// What a message out of place ends the call with.
pub(crate) fn violation(who: Origin, message: &str) -> End {
    End::new(who, Reason::ProtocolViolation, message)
}

async fn first<R: Beginning>(
    recv: &mut RecvHalf,
    reader: &mut R,
    who: Origin,
) -> Result<First, NoFirst> {
    let (mut held, mut released) = (0, 0);
    loop {
        match reader.first() {
            Ok(Some(first)) => {
                recv.release(held - reader.buffered() - released);
                return Ok(first);
            }
            // All of it belongs to a message that must be whole, and may be larger than the window.
            Ok(None) => recv.release(held - std::mem::replace(&mut released, held)),
            Err(error) => return Err(NoFirst::Refuse(broken(who, error))),
        }
        match recv.recv().await {
            Received::Data(data) => {
                held += data.len();
                reader.push(data);
            }
            Received::End | Received::Trailers(_) => {
                let what = R::WHAT;
                let message =
                    format!("the stream ended before its first frame, which must be {what}");
                return Err(NoFirst::Refuse(violation(who, &message)));
            }
            Received::Lost(lost) => {
                let message = format!("the {who} went away before its first frame: {lost}");
                return Err(NoFirst::Gone(End::new(
                    who,
                    Reason::ClientCancelled,
                    message,
                )));
            }
        }
    }
}

async fn discard(recv: &mut RecvHalf) {
    while let Received::Data(data) = recv.recv().await {
        recv.release(data.len());
    }
}
