//! Commands: what may be asked, what is answered, and in which order both are said.
//!
//! | module | what it answers |
//! |---|---|
//! | [`command`] | what a caller asks to be run, and what of that is refused |
//! | [`execution`] | what a message of one side means for the other, and when it is over |
//! | [`hop`] | how the ends of stdin and of the stream are written on one hop |
//! | [`kind`] | what one message is, without what it carries |
//! | [`result`] | how an execution ended, and what became of its output |
//! | [`state`] | what may be said next, and by whom |

pub mod command;
pub mod execution;
pub mod hop;
pub mod kind;
pub mod result;
pub mod state;

pub use self::command::{Command, CommandLimits, InvalidCommand, TerminalSize};
pub use self::execution::{Execution, Take};
pub use self::hop::Hop;
pub use self::kind::Kind;
pub use self::result::{Exit, ExitReason, KillScope, Output, Summary};
pub use self::state::{Input, State, Violation};

#[cfg(test)]
mod tests;
