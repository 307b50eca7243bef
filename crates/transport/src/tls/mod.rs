//! TLS with rustls: certificates from files that may change while we run.
//!
//! Only `h2` is offered in ALPN. Sessions are never resumed: a resumed one would pass a client
//! certificate that is no longer accepted.

mod client;
mod credentials;
mod files;
mod names;
mod server;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;

pub use client::ClientTls;
pub use credentials::Credentials;
pub use names::certificate_names;
pub use server::ServerTls;

/// The only protocol we speak.
const ALPN: &[u8] = b"h2";

/// A file, and the setting that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFile {
    /// The setting.
    pub setting: &'static str,
    /// The file.
    pub path: PathBuf,
}

impl fmt::Display for TlsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (`{}`)", self.path.display(), self.setting)
    }
}

/// Why certificates or keys cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or is not PEM.
    #[error("cannot read {file}: {source}")]
    Read {
        /// The file.
        file: TlsFile,
        /// What is wrong with it.
        source: rustls::pki_types::pem::Error,
    },
    /// A file has no certificate in it.
    #[error("there is no certificate in {0}")]
    NoCertificate(TlsFile),
    /// A file has no private key in it.
    #[error("there is no private key in {0}")]
    NoKey(TlsFile),
    /// The system has no usable certificate authority.
    #[error("the system offers no certificate authorities; name one with --ca")]
    NoSystemRoots,
    /// A key is another certificate's.
    #[error("the key in {key} is not that of the certificate in {cert}")]
    Mismatch {
        /// The certificate.
        cert: TlsFile,
        /// The key.
        key: TlsFile,
    },
    /// Certificate or key are of no kind that rustls can use.
    #[error("the certificate in {cert} or the key in {key} cannot be used: {source}")]
    Identity {
        /// The certificate.
        cert: TlsFile,
        /// The key.
        key: TlsFile,
        /// What rustls says.
        source: Box<rustls::Error>,
    },
    /// A certificate authority is of no kind that rustls can use.
    #[error("the authority in {file} cannot be used: {source}")]
    Authority {
        /// The file.
        file: TlsFile,
        /// What rustls says.
        source: rustls::Error,
    },
    /// A certificate authority cannot be used to check client certificates.
    #[error("the authority in {file} cannot be used to check certificates: {source}")]
    Verifier {
        /// The file.
        file: TlsFile,
        /// What rustls says.
        source: rustls::server::VerifierBuilderError,
    },
    /// The versions of TLS do not go with the ciphers that are built in.
    #[error("TLS cannot be set up: {0}")]
    Setup(#[source] rustls::Error),
    /// A certificate without its key, or the other way round.
    #[error("`{set}` is set without `{missing}`: they belong together, set both or none")]
    HalfIdentity {
        /// Which setting is there.
        set: &'static str,
        /// Which it needs.
        missing: &'static str,
    },
    /// A file for a server that is reached without TLS. Whoever names a certificate means TLS.
    #[error(
        "`{setting}` is set, and the gateway {url} is dialled without TLS, which would ignore it: \
         write https://, or leave `ca`, `cert` and `key` out"
    )]
    Ignored {
        /// The setting.
        setting: &'static str,
        /// The server's URL.
        url: String,
    },
    /// A host that no certificate can name.
    #[error("`{0}` is neither a DNS name nor an IP address")]
    ServerName(String),
}

fn file(setting: &'static str, path: &Path) -> TlsFile {
    TlsFile {
        setting,
        path: path.to_owned(),
    }
}

fn half(set: &'static str, missing: &'static str) -> TlsError {
    TlsError::HalfIdentity { set, missing }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
