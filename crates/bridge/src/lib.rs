//! The pump: moves bytes between two ends and lets a [`Relay`](tidegate_lifecycle::relay::Relay)
//! decide everything else.
//!
//! ```text
//!   End ◀── bytes, FIN, endings ──▶ Tunnel ◀── bytes, FIN, endings ──▶ End
//!                                     │
//!                                   Relay          (pure: what means what)
//! ```
//!
//! An [`End`] is one side's shell: [`FrameEnd`] speaks gRPC frames over HTTP/2, [`SocketEnd`] is a
//! TCP or Unix socket, [`PipeEnd`] a pair of byte streams such as stdin and stdout, [`AwaitedEnd`]
//! a frame stream that is still being opened. [`Tunnel`] joins any two of them in one task.
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
