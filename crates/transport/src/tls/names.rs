//! The names in a certificate that was checked.

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

/// Lists the URIs and the DNS names that a certificate (DER) was issued to; none if it is none.
///
/// Whether the certificate can be trusted is not asked: the handshake did.
pub fn certificate_names(certificate: &[u8]) -> Vec<String> {
    let der = CertificateDer::from(certificate);
    let Ok(parsed) = EndEntityCert::try_from(&der) else {
        return Vec::new();
    };
    let names = parsed.valid_uri_names().chain(parsed.valid_dns_names());
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, SanType};

    use super::*;

    #[test]
    fn uris_and_hosts_are_names() {
        let mut params = CertificateParams::new(["gw0.example".to_owned()]).unwrap();
        let uri = "spiffe://tidegate/gateway/gw0";
        params
            .subject_alt_names
            .push(SanType::URI(uri.try_into().unwrap()));
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        assert_eq!(certificate_names(certificate.der()), [uri, "gw0.example"]);
    }

    #[test]
    fn what_is_no_certificate_names_nobody() {
        assert!(certificate_names(b"no certificate").is_empty());
    }
}
