//! What stands between us and a server, where a setting of ours would remove it.

use rustls::{CertificateError, Error as TlsFailure, InvalidMessage};

use super::dial::ConnectError;
use crate::proxy::ProxyError;
use crate::{Lost, Reason};

/// Why a server could not be connected to, as far as whoever named it can do something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Its certificate comes from an authority that is not trusted here.
    Authority,
    /// Its certificate is for other hosts.
    Host,
    /// Its certificate's time is over, or has not begun.
    Time,
    /// It was asked for TLS and answered in something else.
    NotTls,
    /// It was asked for HTTP/2 in plaintext and answered in something else, as TLS would.
    NotPlaintext,
    /// The proxy cannot be reached.
    ProxyAway,
    /// The proxy wants to know who asks.
    ProxyUser,
    /// The proxy does not connect us.
    ProxyRefused,
}

impl ConnectError {
    /// Tells what stood in the way, if it is something that settings can remove.
    pub const fn obstacle(&self) -> Option<Obstacle> {
        match self {
            Self::Tls { source, .. } => tls(source),
            Self::Proxy { source, .. } => Some(proxy(source)),
            // Only plaintext can bring us something that is no frame: TLS would have noticed.
            Self::Http2 {
                source:
                    Lost::GoAway(Reason::FRAME_SIZE_ERROR) | Lost::Reset(Reason::FRAME_SIZE_ERROR),
                ..
            } => Some(Obstacle::NotPlaintext),
            Self::Http2 { .. }
            | Self::Resolve { .. }
            | Self::Connect { .. }
            | Self::Credentials(_)
            | Self::TlsBroken { .. }
            | Self::Timeout { .. } => None,
        }
    }
}

const fn tls(failure: &TlsFailure) -> Option<Obstacle> {
    match failure {
        TlsFailure::InvalidCertificate(error) => certificate(error),
        TlsFailure::InvalidMessage(InvalidMessage::InvalidContentType) => Some(Obstacle::NotTls),
        _ => None,
    }
}

const fn certificate(error: &CertificateError) -> Option<Obstacle> {
    match error {
        // A bad signature is that of an authority with the same name and another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            Some(Obstacle::Authority)
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            Some(Obstacle::Host)
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => Some(Obstacle::Time),
        _ => None,
    }
}

const fn proxy(error: &ProxyError) -> Obstacle {
    match error {
        ProxyError::Refused(407) => Obstacle::ProxyUser,
        ProxyError::Refused(_) | ProxyError::NotHttp => Obstacle::ProxyRefused,
        ProxyError::Resolve(_) | ProxyError::Connect { .. } | ProxyError::Io(_) => {
            Obstacle::ProxyAway
        }
    }
}
