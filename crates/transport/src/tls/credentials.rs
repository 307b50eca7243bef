//! The files that somebody who dials was given: what goes together, and what would be ignored.

use std::path::Path;
use std::sync::Arc;

use super::{ClientTls, TlsError, half};
use crate::Endpoint;

/// The files of a client, as they were set.
#[derive(Clone, Copy, Debug, Default)]
pub struct Credentials<'a> {
    /// The authorities of servers' certificates; unset: those of the system.
    pub ca: Option<&'a Path>,
    /// The certificate to show.
    pub cert: Option<&'a Path>,
    /// Its key.
    pub key: Option<&'a Path>,
}

impl Credentials<'_> {
    /// Reads the files to dial `servers` with, if any of them is dialled with TLS.
    ///
    /// # Errors
    ///
    /// When a file cannot be used, lacks its other half, or would be ignored by one of the servers.
    pub fn load(self, servers: &[Endpoint]) -> Result<Option<Arc<ClientTls>>, TlsError> {
        self.check_pair()?;
        if let Some(plain) = servers.iter().find(|server| !server.is_tls()) {
            self.check_unused(plain)?;
        }
        if !servers.iter().any(Endpoint::is_tls) {
            return Ok(None);
        }
        let tls = ClientTls::load(self.ca, self.cert, self.key)?;
        Ok(Some(Arc::new(tls)))
    }

    fn check_pair(self) -> Result<(), TlsError> {
        match (self.cert, self.key) {
            (Some(_), None) => Err(half("cert", "key")),
            (None, Some(_)) => Err(half("key", "cert")),
            (Some(_), Some(_)) | (None, None) => Ok(()),
        }
    }

    fn check_unused(self, plain: &Endpoint) -> Result<(), TlsError> {
        let files = [("ca", self.ca), ("cert", self.cert), ("key", self.key)];
        match files.into_iter().find(|(_, file)| file.is_some()) {
            None => Ok(()),
            Some((setting, _)) => Err(TlsError::Ignored {
                setting,
                url: plain.url(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> Option<&Path> {
        Some(Path::new(name))
    }

    #[track_caller]
    fn refused(credentials: Credentials<'_>, urls: &[&str], words: &str) {
        let servers: Vec<_> = urls
            .iter()
            .map(|url| Endpoint::parse(url).unwrap())
            .collect();
        let error = credentials.load(&servers).unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}");
    }

    #[test]
    fn a_certificate_and_its_key_belong_together_whatever_the_server() {
        for url in ["http://a:1", "https://a:1"] {
            let (cert, key) = (file("me.crt"), file("me.key"));
            let only_cert = Credentials {
                cert,
                ..Credentials::default()
            };
            let only_key = Credentials {
                key,
                ..Credentials::default()
            };
            refused(only_cert, &[url], "`cert` is set without `key`: ");
            refused(only_key, &[url], "`key` is set without `cert`: ");
        }
    }

    #[test]
    fn files_that_one_of_the_servers_would_ignore_are_refused() {
        let ca = Credentials {
            ca: file("ca.crt"),
            ..Credentials::default()
        };
        let identity = Credentials {
            cert: file("me.crt"),
            key: file("me.key"),
            ..Credentials::default()
        };
        let mixed = ["https://b:2", "http://a:1"];
        for urls in [&mixed[..], &mixed[1..]] {
            refused(ca, urls, "`ca` is set, and the gateway http://a:1 is");
            refused(identity, urls, "`cert` is set, and the gateway http://a:1");
        }
    }

    #[test]
    fn no_files_are_needed_without_tls() {
        let plain = [Endpoint::parse("http://a:1").unwrap()];
        assert!(Credentials::default().load(&plain).unwrap().is_none());
    }
}
