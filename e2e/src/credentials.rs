//! The certificates of a world with TLS.

use tidegate_testkit::certs::{Authority, CertFiles};
use toml::Table;

use crate::SANDBOX;

/// One authority, and a certificate for each kind of program.
#[derive(Debug)]
pub(crate) struct Credentials {
    authority: Authority,
    server: CertFiles,
    supervisor: CertFiles,
    client: CertFiles,
}

impl Credentials {
    pub(crate) fn new() -> Self {
        let authority = Authority::new().expect("an authority can be made");
        let made = |files: Result<CertFiles, _>| files.expect("a certificate can be made");
        Self {
            server: made(authority.server()),
            supervisor: made(authority.sandbox(SANDBOX)),
            client: made(authority.client("spiffe://tidegate/user/tester")),
            authority,
        }
    }

    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    pub(crate) fn client(&self) -> &CertFiles {
        &self.client
    }

    pub(crate) fn configure_gateway(&self, table: &mut Table) {
        let ca = self.authority.ca();
        set_path(table, "tls_cert", &self.server.cert);
        set_path(table, "tls_key", &self.server.key);
        set_path(table, "client_ca", &ca);
    }

    pub(crate) fn configure_supervisor(&self, table: &mut Table) {
        let ca = self.authority.ca();
        set_path(table, "ca", &ca);
        set_path(table, "cert", &self.supervisor.cert);
        set_path(table, "key", &self.supervisor.key);
    }
}

/// Sets a key, unless the test has set it to something of its own.
fn set_path(table: &mut Table, key: &str, path: &std::path::Path) {
    let path = path.to_str().expect("temporary paths are text").to_owned();
    table.entry(key).or_insert(path.into());
}
