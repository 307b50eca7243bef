//! What is said of gateways that cannot be reached.

use std::error::Error;

use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_transport::{ConnectError, CredentialFault, Obstacle, PoolError};

/// The gateways that were tried in vain, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Unreached(Vec<End>);

impl Unreached {
    pub(crate) fn add(&mut self, end: End) {
        self.0.push(end);
    }

    /// One end for all of them, which names each. Its reason is the last one's.
    pub(crate) fn into_end(mut self) -> End {
        let Some(last) = self.0.pop() else {
            let message = "no gateway is configured";
            return End::new(Origin::Client, Reason::TransportLost, message);
        };
        if self.0.is_empty() {
            return last;
        }
        let of_all = self.0.iter().all(|end| end.remedy == last.remedy);
        let mut message = format!("none of {} gateways can be used: ", self.0.len() + 1);
        for end in &self.0 {
            message.push_str(&end.message);
            message.push_str("; ");
        }
        message.push_str(&last.message);
        End {
            message,
            // What helps with one of them only would mislead.
            remedy: last.remedy.filter(|_| of_all),
            ..last
        }
    }
}

/// Why the gateway `url` took no stream; `shown` tells whether it was shown a certificate.
pub(crate) fn end(url: &str, error: &PoolError, shown: bool) -> End {
    let (origin, reason) = match error {
        PoolError::Full(_) => (Origin::Gateway, Reason::LimitStreams),
        PoolError::Connect(error) => (Origin::Client, unconnected(error)),
        _ => (Origin::Client, Reason::TransportLost),
    };
    let message = match reason {
        Reason::LimitStreams => {
            format!("cannot open another stream at the gateway {url}: {error}")
        }
        Reason::CredentialInvalid if !shown => {
            let why = chain(error);
            format!("the gateway {url} asks for a certificate and was shown none: {why}")
        }
        _ => format!("cannot reach the gateway {url}: {}", chain(error)),
    };
    let end = End::new(origin, reason, message);
    match error {
        PoolError::Connect(error) => match error.obstacle() {
            Some(obstacle) => end.with_remedy(remedy(obstacle)),
            None => end,
        },
        _ => end,
    }
}

/// What stands between us and a gateway: its opinion of our certificate, or anything else.
const fn unconnected(error: &ConnectError) -> Reason {
    match error.credential_fault() {
        Some(CredentialFault::Expired) => Reason::CredentialExpired,
        Some(CredentialFault::Revoked) => Reason::CredentialRevoked,
        Some(CredentialFault::Invalid) => Reason::CredentialInvalid,
        None => Reason::TransportLost,
    }
}

const fn remedy(obstacle: Obstacle) -> &'static str {
    match obstacle {
        Obstacle::Authority => {
            "Name the authority that signed the gateway's certificate: --ca FILE."
        }
        Obstacle::Host => {
            "Say a host in the gateway's URL that its certificate names, or have it issued for this one."
        }
        Obstacle::Time => {
            "Check this machine's clock; whoever runs the gateway has to renew its certificate."
        }
        Obstacle::NotTls => {
            "What answers there does not speak TLS: for a gateway in plaintext say http:// in place of \
             https://."
        }
        Obstacle::NotPlaintext => {
            "What answers there does not speak HTTP/2 in plaintext: for a gateway with TLS say https:// \
             in place of http://."
        }
        Obstacle::ProxyAway => {
            "Check the proxy that HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names; NO_PROXY makes exceptions."
        }
        Obstacle::ProxyUser => {
            "The proxy asks for a user and a password: http://USER:PASSWORD@HOST:PORT in HTTPS_PROXY, \
             HTTP_PROXY or ALL_PROXY."
        }
        Obstacle::ProxyRefused => {
            "The proxy has to allow CONNECT to the gateway's port; NO_PROXY makes exceptions."
        }
    }
}

/// An error with its sources, as one sentence.
fn chain(error: &dyn Error) -> String {
    let mut sentence = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let text = error.to_string();
        if !sentence.contains(&text) {
            sentence.push_str(": ");
            sentence.push_str(&text);
        }
        source = error.source();
    }
    sentence
}

#[cfg(test)]
mod tests {
    use super::*;

    fn away(message: &str) -> End {
        End::new(Origin::Client, Reason::TransportLost, message)
    }

    #[test]
    fn every_gateway_that_was_tried_is_named() {
        let mut failed = Unreached::default();
        failed.add(away("a is away").with_remedy("Do this."));
        failed.add(away("b is away"));
        let end = failed.into_end();
        assert_eq!(
            end.message,
            "none of 2 gateways can be used: a is away; b is away"
        );
        assert_eq!(end.remedy, None);
    }

    #[test]
    fn one_gateway_is_told_as_it_is_and_a_remedy_for_all_stays() {
        let mut failed = Unreached::default();
        failed.add(away("a is away"));
        assert_eq!(failed.into_end(), away("a is away"));
        let mut failed = Unreached::default();
        failed.add(away("a is away").with_remedy("Do this."));
        failed.add(away("b is away").with_remedy("Do this."));
        assert_eq!(failed.into_end().remedy, Some("Do this."));
    }

    #[test]
    fn what_settings_can_remove_comes_with_the_setting() {
        for (obstacle, words) in [
            (Obstacle::Authority, "--ca"),
            (Obstacle::Host, "certificate names"),
            (Obstacle::NotTls, "say http://"),
            (Obstacle::NotPlaintext, "say https://"),
            (Obstacle::ProxyUser, "USER:PASSWORD"),
        ] {
            assert!(remedy(obstacle).contains(words), "{obstacle:?}");
        }
    }
}
