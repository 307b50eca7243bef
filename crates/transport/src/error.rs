//! The one place where errors of `h2` become ours, by kind and never by text.

use std::io;

use h2::Reason;

/// Why a stream ended although nobody said its end. Whatever it is, it is not a FIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// RST_STREAM, from the peer or from us. `NO_ERROR` and `CANCEL` are resets like any other.
    #[error("the stream was reset: {0}")]
    Reset(Reason),
    /// The connection was ended with GOAWAY, and this stream with it.
    #[error("the connection was ended: {0}")]
    GoAway(Reason),
    /// The connection broke: reset, end of file without a close, a failed write.
    #[error("the connection broke: {0}")]
    Broken(io::ErrorKind),
    /// Nothing arrived within the PING timeout.
    #[error("the peer does not answer")]
    PingTimeout,
}

impl From<&h2::Error> for Lost {
    fn from(error: &h2::Error) -> Self {
        if let Some(error) = error.get_io() {
            return Self::Broken(error.kind());
        }
        match error.reason() {
            Some(reason) if error.is_go_away() => Self::GoAway(reason),
            Some(reason) => Self::Reset(reason),
            // The library refused what we asked for: stream identifiers used up, or a stream
            // that is closed already. There is nothing to send on any more.
            None => Self::Broken(io::ErrorKind::NotConnected),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_reason_is_a_reset() {
        let error = h2::Error::from(Reason::NO_ERROR);
        assert_eq!(Lost::from(&error), Lost::Reset(Reason::NO_ERROR));
    }
}
