//! What one end of a connection sees, in a few words.

use std::io::{self, ErrorKind};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How the reading direction of a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saw {
    /// A clean end of file.
    End,
    /// A reset.
    Reset,
}

impl Saw {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::End => "EOF",
            Self::Reset => "reset",
        }
    }
}

/// Reads until the connection ends, and says how many bytes came and how it ended.
pub(super) async fn read_out(stream: &mut TcpStream) -> io::Result<(Vec<u8>, Saw)> {
    let mut data = Vec::new();
    match stream.read_to_end(&mut data).await {
        Ok(_) => Ok((data, Saw::End)),
        Err(error) if is_reset(&error) => Ok((data, Saw::Reset)),
        Err(error) => Err(error),
    }
}

/// Writes until the other side does not take any more, and says how that ended.
pub(super) async fn write_on(stream: &mut TcpStream) -> io::Result<Saw> {
    let piece = [7; 16 * 1024];
    loop {
        match stream.write_all(&piece).await {
            Ok(()) => {}
            Err(error) if is_reset(&error) => return Ok(Saw::Reset),
            Err(error) => return Err(error),
        }
    }
}

/// Makes the stream end with a reset.
pub(super) fn reset(stream: TcpStream) -> io::Result<()> {
    stream.set_zero_linger()
}

/// Whether the other side is gone without an end.
pub(super) fn is_reset(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
    )
}

/// Bytes of which no two megabytes are alike.
pub(super) fn pattern(len: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let step = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    std::iter::repeat_with(step).take(len).collect()
}
