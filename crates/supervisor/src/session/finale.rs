//! What the end of a session means for the next attempt.

use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_lifecycle::redial::Ended;
use tidegate_wire::status::{self, Code};

/// The gateway's final status. OK ends a session that `stood`, and says nothing of one that did not.
pub(super) fn told(status: Result<(), End>, stood: bool) -> Ended {
    match status {
        Ok(()) if stood => Ended::Removed,
        Ok(()) => Ended::With(violation("ended the call without an answer to hello")),
        Err(end) => Ended::With(translated(end)),
    }
}

/// The gateway broke the protocol.
pub(super) fn violation(what: &str) -> End {
    let message = format!("the gateway {what}");
    End::new(Origin::Gateway, Reason::ProtocolViolation, message)
}

/// Gives a refusal of a gateway that knows none of our reasons the reason it would have had.
fn translated(mut end: End) -> End {
    if let Reason::Foreign(_) = end.reason {
        end.reason = match status::code(end.reason) {
            Code::Unauthenticated => Reason::CredentialInvalid,
            Code::PermissionDenied => Reason::NotPermitted,
            Code::FailedPrecondition => Reason::CapabilityRequired,
            _ => end.reason,
        };
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_lifecycle::cause::ForeignCode;

    fn foreign(code: u8) -> Reason {
        let reason = Reason::Foreign(ForeignCode::new(code));
        match told(Err(End::new(Origin::Gateway, reason, "")), true) {
            Ended::With(end) => end.reason,
            Ended::Removed => panic!("a failure is no removal"),
        }
    }

    #[test]
    fn ok_is_removal_only_where_a_session_stood() {
        assert_eq!(told(Ok(()), true), Ended::Removed);
        assert!(matches!(told(Ok(()), false), Ended::With(_)));
    }

    #[test]
    fn a_refusal_in_codes_alone_is_a_refusal() {
        assert_eq!(foreign(16), Reason::CredentialInvalid);
        assert_eq!(foreign(7), Reason::NotPermitted);
        assert_eq!(foreign(9), Reason::CapabilityRequired);
        assert_eq!(foreign(14), Reason::Foreign(ForeignCode::new(14)));
    }
}
