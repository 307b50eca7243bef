//! HTTP/2 peers that do as they are told: any frame in any order, any reset code, no credit.
//!
//! [`Client`] and [`Server`] speak through the `h2` crate, whose manners they keep (it numbers
//! streams, honours windows, answers SETTINGS). Where a test needs worse, [`Frames`] writes frames
//! by hand. What travels inside is made with [`grpc`] and [`messages`](crate::messages).

mod client;
mod frames;
pub mod grpc;
mod server;
mod stream;

pub use self::{
    client::{Call, Client, Response},
    frames::{Frame, FrameKind, Frames},
    server::{Connection, Incoming, Server},
    stream::{Inbox, Outbox, Received, StreamLost},
};

#[cfg(test)]
mod tests;
