//! Relays that a supervisor was asked for and has not claimed yet.
//!
//! A claim is bound to the session that was asked, not to a connection. Supervisors that know no
//! session in their claims are recognised by the relay's name alone, which cannot be guessed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_lifecycle::id::{ChannelId, SessionId};
use tidegate_lifecycle::{Capabilities, Capability, End, Origin, Reason};
use tidegate_transport::{RecvHalf, Respond};
use tidegate_wire::frame::{FrameReader, RelayInit};
use tokio::sync::oneshot;

/// A supervisor's call for a relay, whose first message was read and fits.
pub(crate) struct Claim {
    pub(crate) respond: Respond,
    pub(crate) recv: RecvHalf,
    /// Holds what came behind the first message.
    pub(crate) reader: FrameReader,
    /// What the hop speaks.
    pub(crate) agreed: Capabilities,
}

/// Whom a relay was asked of.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) session: SessionId,
    /// What its session agreed on.
    pub(crate) agreed: Capabilities,
}

impl Asked {
    /// Whether the supervisor names its session in its claims.
    fn names_its_session(&self) -> bool {
        self.agreed.has(Capability::StreamHalfClose)
    }

    fn admits(&self, init: &RelayInit) -> bool {
        match &init.session {
            Some(session) => *session == self.session,
            None => !self.names_its_session(),
        }
    }
}

#[derive(Debug)]
struct Expected {
    asked: Asked,
    claim: oneshot::Sender<Claim>,
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claim")
            .field("agreed", &self.agreed)
            .finish_non_exhaustive()
    }
}

/// The relays that are waited for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims(Arc<Mutex<HashMap<ChannelId, Expected>>>);

impl Claims {
    /// Waits for a claim of `channel`. Dropping the result gives it up: a claim that comes later is
    /// refused.
    pub(crate) fn expect(&self, channel: ChannelId, asked: Asked) -> Expectation {
        let (sender, claim) = oneshot::channel();
        self.lock().insert(
            channel.clone(),
            Expected {
                asked,
                claim: sender,
            },
        );
        Expectation {
            channel,
            claim,
            claims: self.clone(),
        }
    }

    /// Finds who waits for the relay that `init` claims, and what the hop agrees on. From here on
    /// nobody else can claim it.
    ///
    /// # Errors
    ///
    /// CHANNEL_UNKNOWN when it is nobody's, used, given up, or another session's.
    pub(crate) fn take(
        &self,
        init: &RelayInit,
    ) -> Result<(oneshot::Sender<Claim>, Capabilities), End> {
        let mut expected = self.lock();
        let fits = expected
            .get(&init.channel)
            .is_some_and(|it| it.asked.admits(init));
        let taken = if fits {
            expected.remove(&init.channel)
        } else {
            None
        };
        let Expected { asked, claim } = taken.ok_or_else(|| unknown(&init.channel))?;
        Ok((claim, asked.agreed.intersect(init.capabilities)))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ChannelId, Expected>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a claim is refused that nobody waits for.
pub(crate) fn unknown(channel: &ChannelId) -> End {
    let message = "no relay of that name waits here: it is unknown, used, given up, or was asked of \
                   another session";
    End::new(Origin::Gateway, Reason::ChannelUnknown, message).on(channel.clone())
}

/// A relay that is waited for.
#[derive(Debug)]
pub(crate) struct Expectation {
    channel: ChannelId,
    claim: oneshot::Receiver<Claim>,
    claims: Claims,
}

impl Expectation {
    /// Resolves with the claim. It is none only if the claiming call died halfway.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub(crate) async fn claimed(&mut self) -> Option<Claim> {
        (&mut self.claim).await.ok()
    }
}

impl Drop for Expectation {
    fn drop(&mut self) {
        self.claims.lock().remove(&self.channel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(agreed: Capabilities) -> Asked {
        Asked {
            session: SessionId::new("s1"),
            agreed,
        }
    }

    fn claim(channel: &str, session: Option<&str>) -> RelayInit {
        RelayInit {
            channel: ChannelId::new(channel),
            session: session.map(SessionId::new),
            capabilities: Capabilities::STREAM,
        }
    }

    #[test]
    fn a_relay_is_claimed_once_and_by_the_session_that_was_asked() {
        let claims = Claims::default();
        let waiting = claims.expect(ChannelId::new("c"), asked(Capabilities::SESSION));
        for bad in [
            claim("x", Some("s1")),
            claim("c", Some("s2")),
            claim("c", None),
        ] {
            assert_eq!(
                claims.take(&bad).unwrap_err().reason,
                Reason::ChannelUnknown
            );
        }
        let (_, agreed) = claims.take(&claim("c", Some("s1"))).unwrap();
        assert_eq!(agreed, Capabilities::STREAM);
        assert!(claims.take(&claim("c", Some("s1"))).is_err(), "used");
        drop(waiting);
        assert!(claims.lock().is_empty());
    }

    #[test]
    fn a_relay_that_was_given_up_is_unknown() {
        let claims = Claims::default();
        drop(claims.expect(ChannelId::new("c"), asked(Capabilities::SESSION)));
        assert!(claims.take(&claim("c", Some("s1"))).is_err());
    }

    #[test]
    fn a_legacy_supervisor_claims_by_the_name_of_the_relay_alone() {
        let claims = Claims::default();
        let _waiting = claims.expect(ChannelId::new("c"), asked(Capabilities::NONE));
        let (_, agreed) = claims.take(&claim("c", None)).unwrap();
        assert_eq!(agreed, Capabilities::NONE);
    }
}
