//! Tokens that authorise streams to one sandbox, for clients that ask for one first.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rand::Rng as _;
use tidegate_lifecycle::id::SandboxName;
use tidegate_lifecycle::{End, Origin, Reason};

/// Tokens that may be valid at once.
const CAPACITY: usize = 100_000;

/// The tokens that were issued and are still valid.
#[derive(Debug)]
pub(crate) struct Tickets {
    ttl: Duration,
    issued: Mutex<HashMap<String, Ticket>>,
}

#[derive(Debug)]
struct Ticket {
    sandbox: SandboxName,
    until: Instant,
}

impl Tickets {
    pub(crate) fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            issued: Mutex::default(),
        }
    }

    /// Issues a token for a sandbox, and says until when it is valid.
    ///
    /// # Errors
    ///
    /// LIMIT_RATE when there are too many.
    pub(crate) fn issue(&self, sandbox: SandboxName) -> Result<(String, SystemTime), End> {
        let now = Instant::now();
        let mut issued = self.issued();
        if issued.len() >= CAPACITY {
            issued.retain(|_, ticket| ticket.until > now);
        }
        if issued.len() >= CAPACITY {
            let message = "too many tokens are valid: revoke those that nobody needs";
            return Err(End::new(Origin::Gateway, Reason::LimitRate, message));
        }
        let token = random_token();
        issued.insert(
            token.clone(),
            Ticket {
                sandbox,
                until: now + self.ttl,
            },
        );
        Ok((token, SystemTime::now() + self.ttl))
    }

    /// Takes a token back, and says whether it was one.
    pub(crate) fn revoke(&self, token: &str) -> bool {
        self.issued()
            .remove(token)
            .is_some_and(|ticket| ticket.until > Instant::now())
    }

    /// Checks the token of a stream to `sandbox`. A stream without one needs none.
    ///
    /// # Errors
    ///
    /// CREDENTIAL_INVALID when the token was not issued, was revoked, or is another sandbox's.
    pub(crate) fn check(&self, token: &str, sandbox: &SandboxName) -> Result<(), End> {
        if token.is_empty() {
            return Ok(());
        }
        let mut issued = self.issued();
        let valid = issued
            .get(token)
            .map(|ticket| (ticket.until > Instant::now(), &ticket.sandbox));
        match valid {
            Some((true, of)) if of == sandbox => Ok(()),
            Some((false, _)) => {
                issued.remove(token);
                let message = "the token has expired: ask for another with CreateSshSession";
                Err(End::new(
                    Origin::Gateway,
                    Reason::CredentialExpired,
                    message,
                ))
            }
            Some((true, _)) | None => {
                let message = format!("the token is not valid for sandbox {sandbox}");
                Err(End::new(
                    Origin::Gateway,
                    Reason::CredentialInvalid,
                    message,
                ))
            }
        }
    }

    fn issued(&self) -> MutexGuard<'_, HashMap<String, Ticket>> {
        self.issued.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn random_token() -> String {
    let bytes: [u8; 32] = rand::rng().random();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> SandboxName {
        SandboxName::parse(text).unwrap()
    }

    #[test]
    fn a_token_is_good_for_its_sandbox_until_it_is_revoked() {
        let tickets = Tickets::new(Duration::from_secs(60));
        let (token, _) = tickets.issue(name("a")).unwrap();
        let (other, _) = tickets.issue(name("a")).unwrap();
        assert_ne!(token, other);
        assert_eq!(tickets.check(&token, &name("a")), Ok(()));
        assert_eq!(tickets.check("", &name("a")), Ok(()));
        let reason = |result: Result<(), End>| result.unwrap_err().reason;
        assert_eq!(
            reason(tickets.check(&token, &name("b"))),
            Reason::CredentialInvalid
        );
        assert_eq!(
            reason(tickets.check("guess", &name("a"))),
            Reason::CredentialInvalid
        );
        assert!(tickets.revoke(&token) && !tickets.revoke(&token));
        assert_eq!(
            reason(tickets.check(&token, &name("a"))),
            Reason::CredentialInvalid
        );
    }

    #[test]
    fn a_token_expires() {
        let tickets = Tickets::new(Duration::ZERO);
        let (token, _) = tickets.issue(name("a")).unwrap();
        let end = tickets.check(&token, &name("a")).unwrap_err();
        assert_eq!(end.reason, Reason::CredentialExpired);
        assert!(!tickets.revoke(&token));
    }
}
