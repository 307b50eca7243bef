//! Which gateway is meant, and what proves who we are.
//!
//! Flags win over the environment, that over the contexts in `config.toml`, those over defaults. A
//! context is a gateway *and* the credentials for it: where the gateway was named with a higher rank
//! than the context, the context is left out, so that no token ever goes to another gateway than it
//! was meant for.

mod file;
mod folder;
mod pick;

pub(crate) use self::file::{Context, Contexts};
#[cfg(all(unix, feature = "daemons"))]
pub(crate) use self::pick::overriding_variable;
pub(crate) use self::pick::{client, client_of, config, gateway_url, named_gateways};

/// Where `tidegate dev` listens, and where a gateway is looked for when nobody says anything.
pub(crate) const DEFAULT_LISTEN: &str = "127.0.0.1:7070";
