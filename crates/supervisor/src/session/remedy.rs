//! What to do about a gateway that cannot be connected to, in the supervisor's own settings.

use tidegate_transport::{ConnectError, CredentialFault, Obstacle};

/// Says what removes what stands in the way, where that is known; `shown` tells whether the gateway
/// was shown a certificate.
pub(super) const fn remedy(error: &ConnectError, shown: bool) -> Option<&'static str> {
    match (error.credential_fault(), error.obstacle()) {
        (Some(fault), _) => Some(certificate(fault, shown)),
        (None, Some(obstacle)) => Some(setting(obstacle)),
        (None, None) => None,
    }
}

const fn certificate(fault: CredentialFault, shown: bool) -> &'static str {
    match fault {
        CredentialFault::Invalid if !shown => {
            "the gateway asks for a certificate: name this supervisor's with --cert FILE and --key FILE"
        }
        CredentialFault::Invalid => {
            "the certificate that --cert names has to come from the authority in the gateway's client_ca"
        }
        CredentialFault::Expired | CredentialFault::Revoked => {
            "put a new certificate and key where --cert and --key point: they are read again at the \
             next attempt"
        }
    }
}

const fn setting(obstacle: Obstacle) -> &'static str {
    match obstacle {
        Obstacle::Authority => {
            "name the authority that signed the gateway's certificate with --ca FILE"
        }
        Obstacle::Host => "name the gateway in --gateway by a host that its certificate has",
        Obstacle::Time => {
            "check this machine's clock; whoever runs the gateway has to renew its certificate"
        }
        Obstacle::NotTls => {
            "what answers there does not speak TLS: for a gateway in plaintext write http:// in --gateway"
        }
        Obstacle::NotPlaintext => {
            "what answers there does not speak HTTP/2 in plaintext: for a gateway with TLS write \
             https:// in --gateway"
        }
        Obstacle::ProxyAway => {
            "check --proxy, or HTTPS_PROXY, HTTP_PROXY and ALL_PROXY without it; --proxy off uses none"
        }
        Obstacle::ProxyUser => {
            "the proxy asks for a user and a password: http://USER:PASSWORD@HOST:PORT in TIDEGATE_PROXY"
        }
        Obstacle::ProxyRefused => {
            "the proxy has to allow CONNECT to the gateway's port; --proxy off uses none"
        }
    }
}
