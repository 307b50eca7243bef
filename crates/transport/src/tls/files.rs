//! PEM files, and noticing that they changed.

use std::path::Path;
use std::time::SystemTime;

use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{TlsError, TlsFile};

/// A certificate chain and its key.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) cert: TlsFile,
    pub(super) key: TlsFile,
}

/// What an [`Identity`] holds.
type Loaded = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl Identity {
    pub(super) fn load(&self) -> Result<Loaded, TlsError> {
        let key = PrivateKeyDer::from_pem_file(&self.key.path).map_err(|source| match source {
            pem::Error::NoItemsFound => TlsError::NoKey(self.key.clone()),
            source => unreadable(&self.key)(source),
        })?;
        Ok((certificates(&self.cert)?, key))
    }

    /// Why rustls takes no such identity.
    pub(super) fn refused(&self, source: rustls::Error) -> TlsError {
        let (cert, key) = (self.cert.clone(), self.key.clone());
        match source {
            rustls::Error::InconsistentKeys(_) => TlsError::Mismatch { cert, key },
            source => TlsError::Identity {
                cert,
                key,
                source: Box::new(source),
            },
        }
    }
}

/// Reads the certificates of a file, at least one.
fn certificates(file: &TlsFile) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Vec<_> = CertificateDer::pem_file_iter(&file.path)
        .and_then(Iterator::collect)
        .map_err(unreadable(file))?;
    if certificates.is_empty() {
        return Err(TlsError::NoCertificate(file.clone()));
    }
    Ok(certificates)
}

/// Reads the certificate authorities of a file.
pub(super) fn roots(file: &TlsFile) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots
            .add(certificate)
            .map_err(|source| TlsError::Authority {
                file: file.clone(),
                source,
            })?;
    }
    Ok(roots)
}

fn unreadable(file: &TlsFile) -> impl FnOnce(pem::Error) -> TlsError {
    let file = file.clone();
    move |source| TlsError::Read { file, source }
}

/// What files looked like: when they were written, and how long they were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp(Vec<Option<(SystemTime, u64)>>);

impl Stamp {
    pub(super) fn of<'a>(files: impl Iterator<Item = &'a TlsFile>) -> Self {
        Self(files.map(|file| Self::of_one(&file.path)).collect())
    }

    fn of_one(path: &Path) -> Option<(SystemTime, u64)> {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    }
}
