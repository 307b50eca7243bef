//! Logs: tracing events on stderr.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{Directive, ParseError};

/// Sends events to stderr from here on. `RUST_LOG` decides which, and where it says nothing
/// `verbosity` does: INFO at 0, DEBUG at 1, and above everything there is. Does nothing when called
/// again.
pub fn init(verbosity: u8) {
    let level = match verbosity {
        0 => "info",
        1 => "info,tidegate=debug",
        _ => "debug,tidegate=trace",
    };
    let asked = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter(&asked, level))
        .with_writer(std::io::stderr)
        // Nobody may read stderr any more. To complain there would panic, in whatever has an event.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal())
        .finish();
    // Whoever set one before knows better.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Reads a filter in the form of `RUST_LOG`; one that says nothing, or cannot be read, is
/// `otherwise`.
fn filter(asked: &str, otherwise: &str) -> EnvFilter {
    match parse(asked) {
        Ok(filter) if !asked.trim().is_empty() => filter,
        Ok(_) | Err(_) => parse(otherwise).unwrap_or_default(),
    }
}

/// Adds the directives one by one. Taken as a whole, those for TRACE make the library complain on
/// stderr where TRACE was left out when this was built, as in every release.
fn parse(directives: &str) -> Result<EnvFilter, ParseError> {
    let directives = directives.split(',').map(str::trim);
    directives
        .filter(|one| !one.is_empty())
        .map(str::parse::<Directive>)
        .try_fold(EnvFilter::new("off"), |filter, one| {
            Ok(filter.add_directive(one?))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_counts_and_otherwise_the_verbosity() {
        for (asked, expected) in [
            ("", "info"),
            ("tidegate_gateway=loud", "info"),
            ("warn,h2=trace", "h2=trace,warn"),
            ("tidegate_gateway=debug", "tidegate_gateway=debug,off"),
        ] {
            let shown = filter(asked, "info").to_string();
            assert_eq!(shown, expected, "{asked}");
        }
    }
}
