//! How other gateways are reached, and whom of them this one believes.

use std::sync::Arc;

use tidegate_daemon::settings::{Remedy, Value, quoted};
use tidegate_directory::{Incarnation, Replica};
use tidegate_peer_relay::{Doorkeeper, PeerName, PeerSettings, Peers, Trust};
use tidegate_transport::{ClientTls, TlsError};
use uuid::Uuid;

use super::{Config, Protection};

/// A name in another gateway's certificate, and that gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedName(pub PeerName);

impl Value for MappedName {
    const KIND: &'static str = "NAME=GATEWAY";

    fn read(text: &str) -> Result<Self, Remedy> {
        text.parse()
            .map(Self)
            .map_err(|error: tidegate_peer_relay::PeerNameError| Remedy::new(error.to_string()))
    }

    fn show(&self) -> String {
        quoted(&self.0.to_string())
    }
}

/// Both ends of the hop to other gateways.
#[derive(Debug)]
pub(crate) struct Peering {
    pub(crate) peers: Peers,
    pub(crate) doorkeeper: Doorkeeper,
}

impl Config {
    /// This gateway, as others will know the run of it that begins.
    pub fn replica(&self) -> Replica {
        Replica {
            gateway: self.gateway_id.0.clone(),
            incarnation: Incarnation::new(Uuid::new_v4().to_string()),
            peer_url: self.peer_url.clone(),
            public_url: None,
        }
    }

    /// Prepares to ask other gateways, and to be asked by them, as this one is protected itself: it
    /// shows the certificate that it serves with.
    ///
    /// # Errors
    ///
    /// When a file cannot be used.
    pub(crate) fn peering(&self, protection: &Protection) -> Result<Peering, TlsError> {
        let times = self.times();
        let peer_ca = self.peer_ca.as_deref();
        let (tls, trust) = match protection {
            Protection::Authenticated {
                cert,
                key,
                client_ca,
            } => {
                let ca = peer_ca.unwrap_or(client_ca);
                let tls = ClientTls::load(Some(ca), Some(cert), Some(key))?;
                let mapped = self.peer_names.iter().map(|name| name.0.clone());
                (Some(tls), Trust::Certificates(mapped.collect()))
            }
            Protection::Unauthenticated { .. } | Protection::Plaintext => {
                let tls = peer_ca.map(|ca| ClientTls::load(Some(ca), None, None));
                (tls.transpose()?, Trust::Everyone)
            }
        };
        let settings = PeerSettings {
            tls: tls.map(Arc::new),
            plaintext: self.insecure_dev,
            stream_window: u32::try_from(self.stream_window.0).unwrap_or(u32::MAX),
            // Two connections to each gateway at least, however few threads there are.
            width: 2_usize.div_ceil(self.threads.0.max(1)),
            connect: times.peer_connect,
            ping: times.peer_ping,
            answer: times.peer_answer,
            idle: times.peer_idle,
            ..PeerSettings::default()
        };
        Ok(Peering {
            peers: Peers::new(settings),
            doorkeeper: Doorkeeper::new(trust),
        })
    }
}
