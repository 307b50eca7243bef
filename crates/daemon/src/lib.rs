//! What every daemon of Tidegate needs around its own work, and does in the same way.
//!
//! | module | what it is |
//! |---|---|
//! | [`value`] | durations and sizes as people write them |
//! | [`mod@settings`] | a table of keys: flags, environment, file and defaults, in this order |
//! | [`admin`] | `/healthz`, `/readyz` and `/metrics` over HTTP |
//! | [`address`] | what to do about an address that cannot be listened on |
//! | [`process`] | the metrics of the process itself |
//! | [`logs`] | tracing to stderr |
//! | [`descriptors`] | the limit of open files, raised |
//! | [`signals`] | the first signal asks to stop, the second insists; another asks to read files again |
//! | [`systemd`] | readiness, for service managers that wait for it |
//!
//! It knows nothing of sessions and streams.

pub mod address;
pub mod admin;
pub mod descriptors;
pub mod logs;
pub mod process;
pub mod settings;
pub mod signals;
pub mod systemd;

pub use admin::{AdminServer, Health};
pub use settings::ConfigError;
pub use signals::{Hangups, Signals};
pub use tidegate_lifecycle::value::{self, Dur, Size};
