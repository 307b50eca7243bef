//! HTTP/2 written by hand, for what a well-mannered library refuses to send.

use std::{io, net::SocketAddr};

use bytes::{BufMut, Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const ACK: u8 = 0x1;

/// The type of a frame, RFC 9113 §6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "RFC 9113 explains them")]
pub enum FrameKind {
    Data,
    Headers,
    Priority,
    RstStream,
    Settings,
    PushPromise,
    Ping,
    GoAway,
    WindowUpdate,
    Continuation,
    /// Any other type, which a peer must ignore.
    Other(u8),
}

impl FrameKind {
    const NAMED: [Self; 10] = [
        Self::Data,
        Self::Headers,
        Self::Priority,
        Self::RstStream,
        Self::Settings,
        Self::PushPromise,
        Self::Ping,
        Self::GoAway,
        Self::WindowUpdate,
        Self::Continuation,
    ];

    fn from_number(number: u8) -> Self {
        Self::NAMED
            .get(usize::from(number))
            .copied()
            .unwrap_or(Self::Other(number))
    }

    fn number(self) -> u8 {
        match self {
            Self::Data => 0,
            Self::Headers => 1,
            Self::Priority => 2,
            Self::RstStream => 3,
            Self::Settings => 4,
            Self::PushPromise => 5,
            Self::Ping => 6,
            Self::GoAway => 7,
            Self::WindowUpdate => 8,
            Self::Continuation => 9,
            Self::Other(number) => number,
        }
    }
}

/// One frame, right or wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its type.
    pub kind: FrameKind,
    /// Its flags.
    pub flags: u8,
    /// Its stream; 0 is the connection.
    pub stream: u32,
    /// What it carries.
    pub payload: Bytes,
}

impl Frame {
    /// Makes any frame.
    pub fn new(kind: FrameKind, flags: u8, stream: u32, payload: impl Into<Bytes>) -> Self {
        Self {
            kind,
            flags,
            stream,
            payload: payload.into(),
        }
    }

    /// Makes SETTINGS with these identifiers and values.
    pub fn settings(settings: &[(u16, u32)]) -> Self {
        let mut payload = BytesMut::new();
        for &(identifier, value) in settings {
            payload.put_u16(identifier);
            payload.put_u32(value);
        }
        Self::new(FrameKind::Settings, 0, 0, payload)
    }

    /// Makes the headers of a gRPC request.
    pub fn grpc_request(stream: u32, path: &str) -> Self {
        let fields = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "raw.test"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
        ];
        Self::headers(stream, &fields, false)
    }

    /// Makes HEADERS with these fields, none of them compressed.
    pub fn headers(stream: u32, fields: &[(&str, &str)], end_stream: bool) -> Self {
        let mut block = BytesMut::new();
        for (name, value) in fields {
            block.put_u8(0); // literal, not indexed, new name
            put_string(&mut block, name);
            put_string(&mut block, value);
        }
        Self::new(
            FrameKind::Headers,
            END_HEADERS | end_flag(end_stream),
            stream,
            block,
        )
    }

    /// Makes DATA.
    pub fn data(stream: u32, payload: impl Into<Bytes>, end_stream: bool) -> Self {
        Self::new(FrameKind::Data, end_flag(end_stream), stream, payload)
    }

    /// Makes RST_STREAM.
    pub fn reset(stream: u32, code: u32) -> Self {
        Self::new(FrameKind::RstStream, 0, stream, code.to_be_bytes().to_vec())
    }

    /// Makes WINDOW_UPDATE.
    pub fn window_update(stream: u32, increment: u32) -> Self {
        Self::new(
            FrameKind::WindowUpdate,
            0,
            stream,
            increment.to_be_bytes().to_vec(),
        )
    }

    /// Makes PING.
    pub fn ping(payload: [u8; 8]) -> Self {
        Self::new(FrameKind::Ping, 0, 0, payload.to_vec())
    }

    /// Makes GOAWAY.
    pub fn go_away(last_stream: u32, code: u32) -> Self {
        let payload = [last_stream.to_be_bytes(), code.to_be_bytes()].concat();
        Self::new(FrameKind::GoAway, 0, 0, payload)
    }

    /// Tells whether it ends its stream's direction.
    pub fn ends_stream(&self) -> bool {
        let may_end = matches!(self.kind, FrameKind::Data | FrameKind::Headers);
        may_end && self.flags & END_STREAM != 0
    }

    /// Reads the error code of RST_STREAM or GOAWAY.
    pub fn error_code(&self) -> Option<u32> {
        let at = match self.kind {
            FrameKind::RstStream => 0,
            FrameKind::GoAway => 4,
            _ => return None,
        };
        let code = self.payload.get(at..at + 4)?;
        code.try_into().ok().map(u32::from_be_bytes)
    }

    /// The answer HTTP/2 demands at once, if any.
    fn acknowledgement(&self) -> Option<Self> {
        let asks = self.flags & ACK == 0;
        match self.kind {
            FrameKind::Settings if asks => Some(Self::new(self.kind, ACK, 0, Bytes::new())),
            FrameKind::Ping if asks => Some(Self::new(self.kind, ACK, 0, self.payload.clone())),
            _ => None,
        }
    }

    /// Writes it down, so that several can be sent at once.
    pub fn encode(&self) -> Bytes {
        let length = u32::try_from(self.payload.len()).expect("a test's frame is small");
        let mut bytes = BytesMut::with_capacity(9 + self.payload.len());
        bytes.put_uint(length.into(), 3);
        bytes.put_u8(self.kind.number());
        bytes.put_u8(self.flags);
        bytes.put_u32(self.stream);
        bytes.put_slice(&self.payload);
        bytes.freeze()
    }
}

fn end_flag(end_stream: bool) -> u8 {
    if end_stream { END_STREAM } else { 0 }
}

/// Writes an HPACK string, not Huffman-coded; RFC 7541 §5.
fn put_string(block: &mut BytesMut, text: &str) {
    const PREFIX_MAX: usize = 127;
    if text.len() < PREFIX_MAX {
        block.put_u8(u8::try_from(text.len()).expect("it is below 127"));
    } else {
        block.put_u8(127);
        let mut rest = text.len() - PREFIX_MAX;
        while rest >= 128 {
            block.put_u8(u8::try_from(rest % 128 + 128).expect("it is below 256"));
            rest /= 128;
        }
        block.put_u8(u8::try_from(rest).expect("it is below 128"));
    }
    block.put_slice(text.as_bytes());
}

/// A connection that carries frames as they are. Credit is never given but by hand.
#[derive(Debug)]
pub struct Frames(TcpStream);

impl Frames {
    /// Connects as a client: preface and empty SETTINGS are sent.
    ///
    /// # Errors
    ///
    /// Whatever the kernel says.
    pub async fn connect(address: SocketAddr) -> io::Result<Self> {
        let mut frames = Self(TcpStream::connect(address).await?);
        frames.0.set_nodelay(true)?;
        frames.send_bytes(PREFACE).await?;
        frames.send(&Frame::settings(&[])).await?;
        Ok(frames)
    }

    /// Takes an accepted connection as a server: the preface is read, empty SETTINGS are sent.
    ///
    /// # Errors
    ///
    /// `InvalidData` if there is no preface; else whatever the kernel says.
    pub async fn accept(stream: TcpStream) -> io::Result<Self> {
        let mut frames = Self(stream);
        let mut preface = [0; PREFACE.len()];
        frames.0.read_exact(&mut preface).await?;
        if preface != PREFACE {
            return Err(io::ErrorKind::InvalidData.into());
        }
        frames.send(&Frame::settings(&[])).await?;
        Ok(frames)
    }

    /// Sends a frame.
    ///
    /// # Errors
    ///
    /// Whatever the kernel says.
    pub async fn send(&mut self, frame: &Frame) -> io::Result<()> {
        self.send_bytes(&frame.encode()).await
    }

    /// Sends any bytes.
    ///
    /// # Errors
    ///
    /// Whatever the kernel says.
    pub async fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes).await
    }

    /// Reads the next frame.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` when the connection has ended; else whatever the kernel says.
    pub async fn read(&mut self) -> io::Result<Frame> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).await?;
        let [l0, l1, l2, kind, flags, stream @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, l0, l1, l2]) as usize];
        self.0.read_exact(&mut payload).await?;
        let stream = u32::from_be_bytes(stream) & 0x7fff_ffff;
        Ok(Frame::new(
            FrameKind::from_number(kind),
            flags,
            stream,
            payload,
        ))
    }

    /// Reads until a frame that `wanted` accepts, and answers SETTINGS and PING meanwhile.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub async fn read_until(&mut self, wanted: impl Fn(&Frame) -> bool) -> io::Result<Frame> {
        loop {
            let frame = self.read().await?;
            if let Some(acknowledgement) = frame.acknowledgement() {
                self.send(&acknowledgement).await?;
            }
            if wanted(&frame) {
                return Ok(frame);
            }
        }
    }

    /// Closes with a RST.
    pub fn reset(self) {
        crate::socket::reset_on_close(&self.0);
    }
}
