//! A private authority and the certificates of one run.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};

use crate::worker::tls::SERVER_NAME;

type Authority = CertifiedIssuer<'static, KeyPair>;

/// Writes `ca.pem`, and `NAME.pem` and `NAME.key` of a gateway, a client and a supervisor that may
/// speak for `sandboxes`.
pub(super) fn write(folder: &Path, sandboxes: &[String]) -> Result<()> {
    let authority = authority()?;
    fs::write(folder.join("ca.pem"), authority.pem()).context("writing the authority")?;
    let sandboxes: Vec<_> = sandboxes
        .iter()
        .map(|name| format!("sandbox/{name}"))
        .collect();
    issue(folder, &authority, "gateway", &["gateway/bench".to_owned()])?;
    issue(folder, &authority, "client", &["user/bench".to_owned()])?;
    issue(folder, &authority, "supervisor", &sandboxes)
}

fn authority() -> Result<Authority> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    Ok(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?)
}

fn issue(folder: &Path, authority: &Authority, name: &str, identities: &[String]) -> Result<()> {
    let key = KeyPair::generate()?;
    let hosts = [SERVER_NAME.to_owned(), "127.0.0.1".to_owned()];
    let mut params = CertificateParams::new(hosts)?;
    for identity in identities {
        let uri = Ia5String::try_from(format!("spiffe://tidegate/{identity}"))?;
        params.subject_alt_names.push(SanType::URI(uri));
    }
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let certificate = params.signed_by(&key, authority)?;
    fs::write(folder.join(format!("{name}.pem")), certificate.pem())?;
    fs::write(folder.join(format!("{name}.key")), key.serialize_pem())?;
    Ok(())
}
