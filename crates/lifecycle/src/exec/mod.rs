//! Commands: what may be asked, what is answered, and in which order both are said.
//!
//! | module | what it answers |
//! |---|---|
//! | [`command`] | what a caller asks to be run, and what of that is refused |
//! | [`kind`] | what one message is, without what it carries |
//! | [`result`] | how an execution ended, and what became of its output |

pub mod command;
pub mod kind;
pub mod result;

pub use self::command::{Command, CommandLimits, InvalidCommand, TerminalSize};
pub use self::kind::Kind;
pub use self::result::{Exit, ExitReason, KillScope, Output, Summary};
