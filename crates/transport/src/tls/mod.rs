//! TLS with rustls: certificates from files that may change while we run.
//!
//! Only `h2` is offered in ALPN. Sessions are never resumed: a resumed one would pass a client
//! certificate that is no longer accepted.

mod client;
mod files;
mod server;

use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;

pub use client::ClientTls;
pub use server::ServerTls;

/// The only protocol we speak.
const ALPN: &[u8] = b"h2";

/// Why certificates or keys cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or is not PEM.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: rustls::pki_types::pem::Error,
    },
    /// A file has no certificate in it.
    #[error("there is no certificate in {0}")]
    NoCertificate(PathBuf),
    /// The system has no usable certificate authority.
    #[error("the system offers no certificate authorities; name one with --ca")]
    NoSystemRoots,
    /// Certificates and key do not fit, or rustls cannot use them.
    #[error("unusable certificate or key: {0}")]
    Unusable(#[from] rustls::Error),
    /// A certificate authority cannot be used to check client certificates.
    #[error("unusable client authority: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    /// A certificate without its key, or the other way round.
    #[error("a client certificate needs its key, and a key its certificate")]
    HalfIdentity,
    /// A host that no certificate can name.
    #[error("`{0}` is neither a DNS name nor an IP address")]
    ServerName(String),
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
