//! Logs: tracing events on stderr, and only for who asks for them.

use tracing_subscriber::EnvFilter;

/// Sends events to stderr from here on. `RUST_LOG` decides which; where it says nothing, `verbosity`
/// does: none at 0, DEBUG at 1, that of libraries too above.
pub(crate) fn init(verbosity: u8) {
    let level = match verbosity {
        0 => "off",
        1 => "info,tidegate=debug",
        _ => "debug",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // Nobody may read stderr any more. To complain there would panic, in whatever has an event.
        .log_internal_errors(false)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .finish();
    // Only a second call could fail.
    let _ = tracing::subscriber::set_global_default(subscriber);
}
