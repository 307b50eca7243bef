//! What is said about gateways that give no session.

use std::time::Duration;

use tidegate_lifecycle::cause::{End, Reason};

use crate::session::Gateway;

/// Says each cause of an outage once where people look, and every time where they look for more.
#[derive(Debug, Default)]
pub(super) struct Complaint {
    last: Option<String>,
}

impl Complaint {
    /// A session stands: what is said next is about something new.
    pub(super) fn settle(&mut self) {
        self.last = None;
    }

    /// An attempt failed, or a session that `stood` ended; the next attempt follows `after`.
    pub(super) fn make(&mut self, gateway: &Gateway, end: &End, stood: bool, after: Duration) {
        let gateway = gateway.url.as_str();
        let cause = format!("{gateway} {end}");
        // That there is no further gateway is said by the roster, once.
        let known = self.last.as_ref() == Some(&cause) || end.reason == Reason::DuplicateSession;
        if known && !stood {
            tracing::debug!(gateway, %end, remedy = end.remedy, ?after, "no session");
        } else if stood {
            tracing::warn!(gateway, %end, remedy = end.remedy, ?after, "session ended, dialling again");
        } else {
            tracing::warn!(gateway, %end, remedy = end.remedy, ?after, "no session, trying again");
        }
        self.last = Some(cause);
    }
}
