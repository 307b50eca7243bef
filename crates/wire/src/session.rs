//! What the two ends of a control stream say, between protobuf and `lifecycle`.
//!
//! Encoding yields whole messages with their prefix; decoding takes what
//! [`MessageReader`](crate::message::MessageReader) yields, without it.

mod gateway;
mod relay;
mod supervisor;

pub use self::gateway::{decode_gateway, encode_gateway};
pub use self::supervisor::{decode_supervisor, encode_supervisor};

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
