//! Logs: tracing events on stderr.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Sends events to stderr from here on. `RUST_LOG` decides which, and where it says nothing
/// `verbosity` does: INFO at 0, DEBUG at 1, TRACE above. Does nothing when called again.
pub fn init(verbosity: u8) {
    let level = match verbosity {
        0 => "info",
        1 => "info,tidegate=debug",
        _ => "debug,tidegate=trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .finish();
    // Whoever set one before knows better.
    let _ = tracing::subscriber::set_global_default(subscriber);
}
