//! A private certificate authority for one test, and certificates good and bad, as PEM files.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, date_time_ymd,
};
use tempfile::TempDir;

/// Why a certificate could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CertError {
    /// rcgen refused.
    #[error("the certificate cannot be made")]
    Generate(#[from] rcgen::Error),
    /// A file could not be written.
    #[error("the certificate cannot be written")]
    Write(#[from] io::Error),
}

/// A certificate and its private key on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertFiles {
    /// The certificate, PEM.
    pub cert: PathBuf,
    /// The private key, PEM.
    pub key: PathBuf,
}

/// Who a certificate is for.
#[derive(Clone, Copy, Debug)]
enum Subject<'a> {
    /// A server on this machine.
    Loopback,
    /// A client with this URI as its name.
    Uri(&'a str),
    /// Both at once, as a gateway is to others.
    Both(&'a str),
}

/// Whether a certificate's time is now.
#[derive(Clone, Copy, Debug)]
enum Validity {
    Current,
    Expired,
}

/// A certificate authority whose files live in a temporary directory until it is dropped.
#[derive(Debug)]
pub struct Authority {
    directory: TempDir,
    issuer: Issuer<'static, KeyPair>,
    made: std::sync::atomic::AtomicUsize,
}

impl Authority {
    /// Makes an authority; two of them are foreign to each other.
    ///
    /// # Errors
    ///
    /// [`CertError`] if that fails.
    pub fn new() -> Result<Self, CertError> {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "tidegate test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let cert = params.self_signed(&key)?;
        let directory = tempfile::tempdir()?;
        fs::write(directory.path().join("ca.pem"), cert.pem())?;
        let issuer = Issuer::new(params, key);
        Ok(Self {
            directory,
            issuer,
            made: 0.into(),
        })
    }

    /// Returns the path of the authority's own certificate.
    pub fn ca(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// Returns the directory that holds all files.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Makes a server certificate for 127.0.0.1, ::1 and localhost.
    ///
    /// # Errors
    ///
    /// [`CertError`] if that fails.
    pub fn server(&self) -> Result<CertFiles, CertError> {
        self.issue(Subject::Loopback, Validity::Current)
    }

    /// Makes a server certificate whose time is over.
    ///
    /// # Errors
    ///
    /// [`CertError`] if that fails.
    pub fn expired_server(&self) -> Result<CertFiles, CertError> {
        self.issue(Subject::Loopback, Validity::Expired)
    }

    /// Makes a supervisor's certificate, named `spiffe://tidegate/sandbox/<sandbox>`.
    ///
    /// # Errors
    ///
    /// [`CertError`] if that fails.
    pub fn sandbox(&self, sandbox: &str) -> Result<CertFiles, CertError> {
        self.client(&format!("spiffe://tidegate/sandbox/{sandbox}"))
    }

    /// Makes a client certificate with any URI as its name.
    ///
    /// # Errors
    ///
    /// [`CertError`] if that fails.
    pub fn client(&self, uri: &str) -> Result<CertFiles, CertError> {
        self.issue(Subject::Uri(uri), Validity::Current)
    }

    /// Makes a client certificate whose time is over.
    ///
    /// # Errors
    ///
    /// [`CertError`] if that fails.
    pub fn expired_client(&self, uri: &str) -> Result<CertFiles, CertError> {
        self.issue(Subject::Uri(uri), Validity::Expired)
    }

    /// Makes a gateway's certificate: a server's on this machine, and a client's that is named
    /// `spiffe://tidegate/gateway/<gateway>`.
    ///
    /// # Errors
    ///
    /// [`CertError`] if that fails.
    pub fn gateway(&self, gateway: &str) -> Result<CertFiles, CertError> {
        let uri = format!("spiffe://tidegate/gateway/{gateway}");
        self.issue(Subject::Both(&uri), Validity::Current)
    }

    fn issue(&self, subject: Subject<'_>, validity: Validity) -> Result<CertFiles, CertError> {
        let key = KeyPair::generate()?;
        let cert = params(subject, validity)?.signed_by(&key, &self.issuer)?;
        let number = self.made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = |name: &str| self.directory.path().join(format!("{number}-{name}.pem"));
        let files = CertFiles {
            cert: path("cert"),
            key: path("key"),
        };
        fs::write(&files.cert, cert.pem())?;
        fs::write(&files.key, key.serialize_pem())?;
        Ok(files)
    }
}

fn params(subject: Subject<'_>, validity: Validity) -> Result<CertificateParams, CertError> {
    let hosts = match subject {
        Subject::Loopback | Subject::Both(_) => vec!["127.0.0.1", "::1", "localhost"],
        Subject::Uri(_) => vec![],
    };
    let mut params =
        CertificateParams::new(hosts.into_iter().map(String::from).collect::<Vec<_>>())?;
    if let Subject::Uri(uri) | Subject::Both(uri) = subject {
        params.subject_alt_names.push(SanType::URI(uri.try_into()?));
    }
    params.extended_key_usages = match subject {
        Subject::Loopback => vec![ExtendedKeyUsagePurpose::ServerAuth],
        Subject::Uri(_) => vec![ExtendedKeyUsagePurpose::ClientAuth],
        Subject::Both(_) => vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ],
    };
    if let Validity::Expired = validity {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 2);
    }
    Ok(params)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

    use super::*;

    #[test]
    fn each_certificate_has_files_of_its_own() {
        let authority = Authority::new().unwrap();
        let made = [
            authority.server(),
            authority.sandbox("one"),
            authority.expired_server(),
        ];
        let made = made.map(Result::unwrap);
        assert_ne!(made[0], made[1]);
        for files in &made {
            assert!(
                fs::read_to_string(&files.cert)
                    .unwrap()
                    .contains("BEGIN CERTIFICATE")
            );
            assert!(
                fs::read_to_string(&files.key)
                    .unwrap()
                    .contains("PRIVATE KEY")
            );
        }
        assert!(authority.ca().is_file());
        let directory = authority.directory().to_owned();
        drop(authority);
        assert!(!directory.exists());
    }

    #[tokio::test]
    async fn only_current_certificates_of_the_same_authority_are_believed() {
        let (ours, foreign) = (Authority::new().unwrap(), Authority::new().unwrap());
        let sandbox = ours.sandbox("one").unwrap();
        assert!(handshake(&ours, ours.server().unwrap(), sandbox.clone()).await);
        assert!(!handshake(&ours, ours.expired_server().unwrap(), sandbox.clone()).await);
        assert!(!handshake(&ours, foreign.server().unwrap(), sandbox).await);
        let (expired, stranger) = (ours.expired_client("spiffe://a/b"), foreign.sandbox("one"));
        assert!(!handshake(&ours, ours.server().unwrap(), expired.unwrap()).await);
        assert!(!handshake(&ours, ours.server().unwrap(), stranger.unwrap()).await);
    }

    /// Whether both sides, who trust `authority` alone, end up with a connection that carries bytes.
    async fn handshake(authority: &Authority, server: CertFiles, client: CertFiles) -> bool {
        use rustls::{ClientConfig, RootCertStore, ServerConfig, server::WebPkiClientVerifier};
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        use tokio_rustls::{TlsAcceptor, TlsConnector};

        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(authority.ca()).unwrap())
            .unwrap();
        let verifier = WebPkiClientVerifier::builder(roots.clone().into())
            .build()
            .unwrap();
        let (chain, key) = load(&server);
        let accepting = ServerConfig::builder().with_client_cert_verifier(verifier);
        let accepting = accepting.with_single_cert(chain, key).unwrap();
        let (chain, key) = load(&client);
        let connecting = ClientConfig::builder().with_root_certificates(roots);
        let connecting = connecting.with_client_auth_cert(chain, key).unwrap();
        let (near, far) = tokio::io::duplex(64 * 1024);
        let serve = async {
            let mut stream = TlsAcceptor::from(Arc::new(accepting)).accept(far).await?;
            stream.write_all(b"x").await?;
            stream.flush().await
        };
        let connect = async {
            let name = "127.0.0.1".try_into().unwrap();
            let mut stream = TlsConnector::from(Arc::new(connecting))
                .connect(name, near)
                .await?;
            stream.read_u8().await
        };
        let (served, connected) = tokio::join!(serve, connect);
        served.is_ok() && connected.is_ok()
    }

    fn load(files: &CertFiles) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let chain = CertificateDer::from_pem_file(&files.cert).unwrap();
        (
            vec![chain],
            PrivateKeyDer::from_pem_file(&files.key).unwrap(),
        )
    }
}
