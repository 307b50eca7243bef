//! The messages of a command as cargo: passed on whole, in the words of the hop they leave on.

mod items;
mod pipe;
mod reader;
mod writer;

use std::sync::Arc;

use tidegate_lifecycle::Capabilities;
use tidegate_transport::Buffered;
use tidegate_wire::exec::{Dialect, Direction, Item, ItemReader};
use tidegate_wire::frame::FrameLimit;

pub use self::items::Items;
pub use self::pipe::{ExecPipe, PipeReceiver, PipeSender, exec_pipe};
pub use self::reader::ExecReader;
pub use self::writer::ExecWriter;

use crate::awaited::Awaited;
use crate::cargo::Cargo;
use crate::frame::{RpcEnd, RpcKind};

/// An RPC that carries the messages of a command.
pub type ExecEnd = RpcEnd<Item>;

/// An end that is being opened for the messages of a command.
pub type AwaitedExec = Awaited<Item>;

impl ExecEnd {
    /// A reader for [`ExecEnd::accepted`]: `before` was said already, and `rest` reads on.
    ///
    /// ExecSandbox has one request: its start is said before, and the end of stdin with it.
    pub fn reader(
        kind: RpcKind,
        before: impl IntoIterator<Item = Item>,
        rest: ItemReader,
    ) -> ExecReader {
        ExecReader::behind(dialect(kind), direction(kind), before, rest)
    }
}

impl Cargo for Item {
    type Store = Items;
    type Reader = ExecReader;
    type Writer = ExecWriter;

    const OFFERED: Capabilities = Capabilities::EXEC;
    const WAITS_WITHOUT_PAYLOAD: bool = true;

    fn weight(&self) -> usize {
        self.weight()
    }

    fn is_last(&self) -> bool {
        matches!(self, Self::Exit(_) | Self::Started(Err(_)))
    }

    fn store(total: &Arc<Buffered>) -> Items {
        Items::new(Arc::clone(total))
    }

    fn reader(kind: RpcKind, limit: FrameLimit) -> ExecReader {
        ExecReader::new(dialect(kind), direction(kind), limit)
    }

    fn writer(kind: RpcKind, total: &Arc<Buffered>) -> ExecWriter {
        ExecWriter::new(dialect(kind), Arc::clone(total))
    }
}

/// In which messages the items travel on an RPC.
const fn dialect(kind: RpcKind) -> Dialect {
    match kind {
        RpcKind::ExecServer | RpcKind::ExecClient => Dialect::Client,
        RpcKind::ForwardServer
        | RpcKind::ForwardClient
        | RpcKind::RelayServer { .. }
        | RpcKind::RelayClient { .. }
        | RpcKind::PeerServer
        | RpcKind::PeerClient => Dialect::Relay,
    }
}

/// What arrives here.
const fn direction(kind: RpcKind) -> Direction {
    match kind {
        RpcKind::ForwardServer
        | RpcKind::ExecServer
        | RpcKind::PeerServer
        | RpcKind::RelayClient { .. } => Direction::Input,
        RpcKind::ForwardClient
        | RpcKind::ExecClient
        | RpcKind::PeerClient
        | RpcKind::RelayServer { .. } => Direction::Event,
    }
}
