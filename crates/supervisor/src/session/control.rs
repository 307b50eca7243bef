//! The control stream: a connection of its own, so that nothing waits behind bulk.

use http::response::Parts;
use tidegate_bridge::{
    ControlReceiver, ControlSender, Said, control_receiver, control_sender, how_lost,
};
use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_lifecycle::loss::Link;
use tidegate_lifecycle::redial::Ended;
use tidegate_lifecycle::session::{FromSupervisor, Hello};
use tidegate_lifecycle::{Capabilities, Capability};
use tidegate_transport::{ConnectError, Connection, CredentialFault, Endpoint, Lost};
use tidegate_wire::message::MessageReader;
use tidegate_wire::session::encode_supervisor;
use tidegate_wire::{metadata, status};

use super::{finale, remedy};
use crate::context::Context;

/// An open control stream.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) sender: ControlSender,
    pub(super) receiver: ControlReceiver,
    connection: Connection,
}

impl Control {
    /// Connects to a gateway and says hello; the answer is still to come.
    ///
    /// # Errors
    ///
    /// The end of an attempt that led to no session.
    ///
    /// # Cancel safety
    ///
    /// What was begun is closed.
    pub(super) async fn open(
        context: &Context,
        endpoint: &Endpoint,
        hello: Hello,
    ) -> Result<Self, Ended> {
        let headers = context.metadata().await.map_err(Ended::With)?;
        let connection = endpoint.connect().await;
        let shown = context.config.cert.is_some();
        let connection = connection.map_err(|error| unconnected(&error, shown))?;
        let opened = connection.open(metadata::CONNECT_SUPERVISOR, headers);
        let (send, head) = opened.map_err(unreachable)?;
        let mut sender = control_sender(send, &context.buffered);
        sender.push(encode_supervisor(&FromSupervisor::Hello(hello)));
        // A stream that is lost before hello is written has no head either, which says why.
        let (_, head) = tokio::join!(sender.flush(), head);
        let (parts, recv) = head.map_err(|loss| Ended::With(lost(loss, Capabilities::NONE)))?;
        if let Some(end) = refusal(&parts) {
            return Err(end);
        }
        Ok(Self {
            sender,
            receiver: control_receiver(recv, MessageReader::new(), Origin::Gateway),
            connection,
        })
    }

    /// Where this gateway, and no other behind the same name, takes the session's data.
    pub(super) fn data_endpoint(&self, endpoint: &Endpoint) -> Endpoint {
        match self.connection.peer() {
            Some(peer) => endpoint.clone().with_address(peer),
            None => endpoint.clone(),
        }
    }

    /// Sends what is queued, ends our direction and waits for the gateway's last word.
    pub(super) async fn finish(mut self) {
        if self.sender.flush().await.is_ok() && self.sender.into_half().finish().is_ok() {
            while let Said::Message(_) = self.receiver.next().await {}
        }
    }
}

/// The end of a session whose control stream was lost.
pub(super) fn lost(lost: Lost, agreed: Capabilities) -> End {
    let liveness = agreed.has(Capability::SessionLiveness);
    let reason = how_lost(lost).reason(Link::Gateway, liveness);
    let message = format!("the session was lost: {lost}");
    End::new(Origin::Gateway, reason, message)
}

/// A connection attempt that failed. A certificate that the gateway does not take is not a matter of
/// trying again.
fn unconnected(error: &ConnectError, shown: bool) -> Ended {
    let reason = match error.credential_fault() {
        Some(CredentialFault::Expired) => Reason::CredentialExpired,
        Some(CredentialFault::Revoked) => Reason::CredentialRevoked,
        Some(CredentialFault::Invalid) => Reason::CredentialInvalid,
        None => Reason::TransportLost,
    };
    let mut end = End::new(Origin::Gateway, reason, error.to_string());
    end.remedy = remedy::remedy(error, shown);
    Ended::With(end)
}

/// A connection that takes no stream.
fn unreachable(error: impl std::error::Error) -> Ended {
    Ended::With(End::new(
        Origin::Gateway,
        Reason::TransportLost,
        error.to_string(),
    ))
}

/// An answer that opens nothing: an HTTP error, or a status in the place of headers.
fn refusal(parts: &Parts) -> Option<Ended> {
    if parts.status != http::StatusCode::OK {
        let end = status::from_http(parts.status, Origin::Gateway);
        return Some(finale::told(Err(end), false));
    }
    let is_all = parts.headers.contains_key("grpc-status");
    is_all.then(|| finale::told(status::parse(&parts.headers, Origin::Gateway), false))
}
