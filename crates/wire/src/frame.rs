//! Frames of byte streams: ForwardTcp, RelayStream and PeerRelay have the same three.
//!
//! | field | frame | |
//! |---|---|---|
//! | 1 | init | first, once |
//! | 2 | data | any number of times |
//! | 3 | half-close | FIN, where it was negotiated |

mod header;
mod init;
mod limit;
mod peer;
mod reader;
mod scan;

pub use self::header::{Header, data_header, half_close, keepalive};
pub use self::init::{ForwardInit, RelayInit};
pub use self::limit::FrameLimit;
pub use self::peer::{PeerInit, Relayed};
pub use self::reader::{Frame, FrameReader};
pub use crate::message::FrameError;
