//! Shows what was measured. The only place of the bench that prints.

mod json;
mod text;

use std::fmt::Display;
use std::io::{self, Write};

use crate::options::{Options, Output, Plan};
use crate::results::Results;

/// Prints the report on standard output.
pub(crate) fn print(options: &Options, plan: &Plan, results: &Results) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match options.output {
        Output::Text => stdout.write_all(text::render(plan, results).as_bytes()),
        Output::Json => writeln!(stdout, "{:#}", json::render(plan, results)),
    }
}

/// Says on standard error what is going on. Nobody reading it is no reason to stop.
pub(crate) fn progress(what: impl Display) {
    let _ = writeln!(io::stderr(), "bench: {what}");
}
