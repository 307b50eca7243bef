//! What an operator can set: a table of keys, each a flag, an environment variable, a line of the file
//! and a default.
//!
//! A flag wins over the environment, that over the file, that over the default, and where a value came
//! from is remembered. [`settings!`](crate::settings!) writes a table down; a new key is one line
//! of it.
//!
//! | module | what it is |
//! |---|---|
//! | `table` | a table of keys, and the struct that it becomes |
//! | `value`, `forms`, `choice` | the forms that values have, read from text and written back |
//! | [`rule`] | what a value must obey beyond its form |
//! | `layers` | what was set, and where |
//! | `program` | the command line of a table, and its printing |
//! | `error` | what can be wrong, and the remedy |

mod choice;
mod error;
mod forms;
mod layers;
mod program;
pub mod rule;
mod table;
mod value;

pub use error::{ConfigError, Given, Remedy};
pub use forms::{Address, Threads, TimeScale};
pub use layers::{Layers, Source};
pub use program::{Program, Said};
pub use table::{Arity, Key};
pub use value::{Value, quoted};

#[cfg(test)]
mod tests;
