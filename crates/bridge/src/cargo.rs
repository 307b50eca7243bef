//! What a tunnel carries, and what has to be known of it to wait, to be read and to be written.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tidegate_lifecycle::Capabilities;
use tidegate_transport::Buffered;
use tidegate_wire::frame::FrameLimit;
use tidegate_wire::message::FrameError;

use crate::end::Read;
use crate::frame::RpcKind;

/// What a tunnel carries: bytes, or the messages of a command.
pub trait Cargo: Sized + Send + fmt::Debug + 'static {
    /// Where it waits.
    type Store: Store<Item = Self>;
    /// Takes it out of an HTTP/2 stream.
    type Reader: Reader<Item = Self>;
    /// Puts it into one.
    type Writer: Writer<Item = Self>;

    /// What both ends of such a stream offer each other.
    const OFFERED: Capabilities;
    /// Whether messages without payload may wait here: then the window that they have used up is
    /// given back when nothing waits, and bounds them.
    const WAITS_WITHOUT_PAYLOAD: bool;

    /// How many payload bytes it has.
    fn weight(&self) -> usize;
    /// Whether it is the last thing of its direction, and worth waiting for until it has left.
    fn is_last(&self) -> bool;
    /// An empty store whose bytes count in `total`.
    fn store(total: &Arc<Buffered>) -> Self::Store;
    /// A reader of what arrives on `kind`.
    fn reader(kind: RpcKind, limit: FrameLimit) -> Self::Reader;
    /// A writer on `kind` whose bytes count in `total`.
    fn writer(kind: RpcKind, total: &Arc<Buffered>) -> Self::Writer;
}

/// Where cargo waits, in order.
pub trait Store: fmt::Debug + Send {
    /// What waits.
    type Item;
    /// Adds something behind all others.
    fn push(&mut self, item: Self::Item);
    /// Takes what waits longest.
    fn pop(&mut self) -> Option<Self::Item>;
    /// How many payload bytes wait.
    fn weight(&self) -> usize;
    /// Whether nothing waits.
    fn is_empty(&self) -> bool;
}

/// Takes cargo out of the bytes of a stream.
pub trait Reader: fmt::Debug + Send {
    /// What it reads.
    type Item;
    /// Takes the next bytes.
    fn push(&mut self, bytes: Bytes);
    /// What comes next; none until more bytes are pushed.
    ///
    /// # Errors
    ///
    /// When the bytes are no frame.
    fn next(&mut self) -> Result<Option<Read<Self::Item>>, FrameError>;
    /// Holds what follows to another limit.
    fn set_limit(&mut self, limit: FrameLimit);
    /// How many bytes have not come out yet.
    fn buffered(&self) -> usize;
    /// How much is here of a message that cannot be passed on before it is whole.
    fn gathered(&self) -> usize;
    /// Whether the stream may end here.
    fn is_at_boundary(&self) -> bool;
    /// How many frames were above 64 KiB since the last call.
    fn take_oversize(&mut self) -> u64;
    /// Begins anew, after an error.
    fn forget(&mut self);
}

/// Puts cargo into the bytes of a stream.
pub trait Writer: fmt::Debug + Send {
    /// What it writes.
    type Item;
    /// Adds something behind all others.
    fn push(&mut self, item: Self::Item);
    /// How many payload bytes wait.
    fn weight(&self) -> usize;
    /// Whether nothing waits.
    fn is_empty(&self) -> bool;
    /// Drops everything.
    fn clear(&mut self);
    /// How many bytes of the stream all of it takes, at most.
    fn wire_len(&self) -> usize;
    /// Takes bytes of the stream from the front, about `granted` of them and one at least. Says
    /// how many payload bytes are taken with them.
    fn cut(&mut self, granted: usize) -> (std::collections::VecDeque<Bytes>, usize);
    /// The whole message that says FIN.
    fn fin(&self) -> Bytes;
    /// A whole message that says nothing.
    fn keepalive(&self) -> Bytes;
}
