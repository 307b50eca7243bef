//! Everything that is written to stdout and stderr, but the payload of `connect`.

mod console;
mod style;
mod table;
mod text;

pub(crate) use self::console::{Console, Format, remark};
pub(crate) use self::style::{Colour, Style};
pub(crate) use self::table::{Cell, Table};
pub(crate) use self::text::{age, bytes, plain, rfc3339};
