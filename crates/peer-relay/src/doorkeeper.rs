//! Who may ask this gateway for a stream, as another gateway.

use std::fmt;
use std::str::FromStr;

use http::HeaderMap;
use tidegate_lifecycle::id::GatewayId;
use tidegate_lifecycle::{End, Origin, Reason};
use tidegate_transport::{ConnectionInfo, certificate_names};
use tidegate_wire::frame::PeerInit;
use tidegate_wire::metadata;

/// What precedes a gateway's id in the URI that its certificate carries.
const SPIFFE: &str = "spiffe://tidegate/gateway/";

/// Whom a gateway believes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Whoever shows a certificate that names the gateway it claims to be: by the URI
    /// `spiffe://tidegate/gateway/<id>`, or by one of these names.
    Certificates(Vec<PeerName>),
    /// Everyone. For a gateway that serves its own machine only.
    Everyone,
}

/// A name in a certificate, and the gateway that it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerName {
    /// A URI or a DNS name, as the certificate has it.
    pub name: String,
    /// The gateway.
    pub gateway: GatewayId,
}

/// The text is no such pair.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not NAME=GATEWAY, a name in a certificate and the gateway it stands for")]
pub struct PeerNameError(String);

impl FromStr for PeerName {
    type Err = PeerNameError;

    fn from_str(text: &str) -> Result<Self, PeerNameError> {
        match text.rsplit_once('=') {
            Some((name, gateway)) if !name.is_empty() && !gateway.is_empty() => Ok(Self {
                name: name.to_owned(),
                gateway: GatewayId::new(gateway),
            }),
            Some(_) | None => Err(PeerNameError(text.to_owned())),
        }
    }
}

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.gateway)
    }
}

/// Decides about calls of PeerRelay.
#[derive(Clone, Debug)]
pub struct Doorkeeper {
    trust: Trust,
}

impl Doorkeeper {
    /// Believes as `trust` says.
    pub const fn new(trust: Trust) -> Self {
        Self { trust }
    }

    /// Checks that the gateway which asks is the one that its first message names.
    ///
    /// # Errors
    ///
    /// NOT_PERMITTED says what contradicts the claim.
    pub fn admit(
        &self,
        init: &PeerInit,
        headers: &HeaderMap,
        connection: &ConnectionInfo,
    ) -> Result<(), End> {
        let claimed = &init.requester;
        if metadata::peer_replica(headers).as_ref() != Some(claimed) {
            let header = metadata::PEER_REPLICA;
            return Err(refused(format!(
                "the call's metadata `{header}` does not name the gateway {claimed}, which its first \
                 message claims to come from"
            )));
        }
        match &self.trust {
            Trust::Everyone => Ok(()),
            Trust::Certificates(mapped) => {
                certified(claimed, connection.identity.as_deref(), mapped)
            }
        }
    }
}

fn certified(claimed: &GatewayId, identity: Option<&[u8]>, mapped: &[PeerName]) -> Result<(), End> {
    let Some(identity) = identity else {
        return Err(refused(format!(
            "a gateway that asks another one for a stream has to show a certificate, and {claimed} \
             shows none"
        )));
    };
    let names = certificate_names(identity);
    let stands_for = |name: &String| {
        let own = name.strip_prefix(SPIFFE) == Some(claimed.as_str());
        own || mapped
            .iter()
            .any(|pair| pair.name == *name && pair.gateway == *claimed)
    };
    if names.iter().any(stands_for) {
        return Ok(());
    }
    tracing::warn!(%claimed, ?names, "a caller claims to be a gateway that its certificate does not name");
    Err(refused(format!(
        "the certificate does not name the gateway {claimed}: it needs the URI {SPIFFE}{claimed}, or a \
         name that `peer_names` maps to it"
    )))
}

fn refused(message: String) -> End {
    End::new(Origin::Gateway, Reason::NotPermitted, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_name_is_a_pair() {
        let pair: PeerName = "gw0.example=gw0".parse().unwrap();
        assert_eq!(
            (pair.name.as_str(), pair.gateway.as_str()),
            ("gw0.example", "gw0")
        );
        assert_eq!(pair.to_string(), "gw0.example=gw0");
        for bad in ["", "gw0", "=gw0", "gw0="] {
            assert!(bad.parse::<PeerName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_gateway_without_a_certificate_is_not_believed() {
        let end = certified(&GatewayId::new("gw1"), None, &[]).unwrap_err();
        assert_eq!(end.reason, Reason::NotPermitted);
        let end = certified(&GatewayId::new("gw1"), Some(b"junk"), &[]).unwrap_err();
        assert_eq!(end.reason, Reason::NotPermitted);
    }
}
