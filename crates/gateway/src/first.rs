//! The first message of a byte stream, and the answer to a call that does not have a good one.

use bytes::Bytes;
use tidegate_lifecycle::limits::STATUS_GRACE;
use tidegate_lifecycle::{Capabilities, End, Origin, Reason};
use tidegate_transport::{Received, RecvHalf, Respond};
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

/// Reads the init of a byte stream from `recv` and parses it with `parse`. The reader that comes
/// with it holds what arrived behind it.
///
/// # Errors
///
/// INIT_TIMEOUT, PROTOCOL_VIOLATION for anything but an init, INVALID_REQUEST for one that misses
/// something, GATEWAY_DRAINING.
pub(crate) async fn read<T>(
    state: &State,
    who: Origin,
    recv: &mut RecvHalf,
    parse: impl FnOnce(&Bytes) -> Result<T, DecodeError>,
) -> Result<(T, FrameReader), NoFirst> {
    let mut reader = FrameReader::new(FrameLimit::of(Capabilities::NONE));
    let frame = tokio::select! {
        biased;
        frame = timeout(state.times.init, frame(recv, &mut reader, who)) => frame,
        () = state.draining.cancelled() => return Err(NoFirst::Refuse(state.drained())),
    };
    let init = match frame {
        Ok(Ok(Frame::Init(init))) => init,
        Ok(Ok(Frame::Data(_) | Frame::HalfClose | Frame::Empty | Frame::Unknown)) => {
            return Err(NoFirst::Refuse(violation(
                who,
                "the first frame must be init",
            )));
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

async fn frame(
    recv: &mut RecvHalf,
    reader: &mut FrameReader,
    who: Origin,
) -> Result<Frame, NoFirst> {
    let mut held = 0;
    loop {
        match reader.next() {
            Ok(Some(frame)) => {
                recv.release(held - reader.buffered());
                return Ok(frame);
            }
            Ok(None) => {}
            Err(error) => return Err(NoFirst::Refuse(broken(who, error))),
        }
        match recv.recv().await {
            Received::Data(data) => {
                held += data.len();
                reader.push(data);
            }
            Received::End | Received::Trailers(_) => {
                let message = "the stream ended before its first frame, which must be init";
                return Err(NoFirst::Refuse(violation(who, message)));
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
