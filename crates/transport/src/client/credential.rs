//! What a server has against the certificate it was shown.

use rustls::{AlertDescription, Error as TlsFailure};

use super::dial::ConnectError;

/// Why a server does not take our certificate. To try again soon would change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialFault {
    /// Its time is over.
    Expired,
    /// Its authority took it back.
    Revoked,
    /// It is none, is nobody's the server knows, or was not shown at all.
    Invalid,
}

impl ConnectError {
    /// Tells what the server has against our certificate, if that is what stood in the way.
    pub const fn credential_fault(&self) -> Option<CredentialFault> {
        match self {
            Self::Tls {
                source: TlsFailure::AlertReceived(alert),
                ..
            } => fault(*alert),
            Self::Tls { .. }
            | Self::Resolve { .. }
            | Self::Connect { .. }
            | Self::Proxy { .. }
            | Self::Credentials(_)
            | Self::TlsBroken { .. }
            | Self::Http2 { .. }
            | Self::Timeout { .. } => None,
        }
    }
}

/// The alerts of RFC 8446 §6.2 that are about the peer's certificate.
const fn fault(alert: AlertDescription) -> Option<CredentialFault> {
    match alert {
        AlertDescription::CertificateExpired => Some(CredentialFault::Expired),
        AlertDescription::CertificateRevoked => Some(CredentialFault::Revoked),
        AlertDescription::NoCertificate
        | AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied
        | AlertDescription::CertificateRequired => Some(CredentialFault::Invalid),
        _ => None,
    }
}
