//! The pump: moves [`Cargo`] between two ends and lets a [`Machine`] decide everything else.
//!
//! ```text
//!   End ◀── cargo, FIN, endings ──▶ Tunnel ◀── cargo, FIN, endings ──▶ End
//!                                     │
//!                                  Machine         (pure: what means what)
//! ```
//!
//! | cargo | machine |
//! |---|---|
//! | bytes, cut into frames anew on every hop | [`Relay`](tidegate_lifecycle::relay::Relay) |
//! | the messages of a command, kept whole | [`Execution`](tidegate_lifecycle::exec::Execution) |
//!
//! An [`End`] is one side's shell: [`FrameEnd`] speaks gRPC frames over HTTP/2, [`SocketEnd`] is a
//! TCP or Unix socket, [`PipeEnd`] a pair of byte streams such as stdin and stdout, [`AwaitedEnd`]
//! a frame stream that is still being opened. For commands [`ExecEnd`] speaks their messages over
//! HTTP/2, [`AwaitedExec`] is one that is still being opened, and [`ExecPipe`] ends in a program's
//! own hands. [`Tunnel`] joins any two of them that carry the same in one task.
//!
//! What this crate must not do: decide protocol. It reports what it sees and writes what it is told.

mod awaited;
mod buffer;
mod cargo;
mod control;
mod end;
mod exec;
mod frame;
mod handle;
mod loss;
mod machine;
mod oversize;
mod pipe;
mod queue;
mod socket;
mod tunnel;

pub use awaited::{Awaited, AwaitedEnd, Opening};
pub use cargo::{Cargo, Reader, Store, Writer};
pub use control::{ControlReceiver, ControlSender, Said, control_receiver, control_sender};
pub use end::{End, Opened, Read};
pub use exec::{
    AwaitedExec, ExecEnd, ExecPipe, ExecReader, ExecWriter, Items, PipeReceiver, PipeSender,
    exec_pipe,
};
pub use frame::{FrameEnd, RpcEnd, RpcKind};
pub use handle::{Handle, OPEN_STATES, Progress};
pub use loss::{Seat, how_lost, lost};
pub use machine::{Machine, Taken};
pub use oversize::OversizeFrames;
pub use pipe::PipeEnd;
pub use queue::Queue;
pub use socket::{Plug, SocketEnd, harden};
pub use tunnel::{Outcome, Tunnel};
