//! Leases: keys that end when nobody renews them, by etcd's clock.

use std::time::Duration;

use futures_util::stream;

use super::{
    client::Client,
    proto::etcdserverpb::{
        LeaseGrantRequest, LeaseKeepAliveRequest, LeaseRevokeRequest, lease_client::LeaseClient,
    },
};
use crate::DirectoryError;

/// The name that etcd gave a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseId(i64);

impl LeaseId {
    /// 0 is what a key without a lease has.
    pub(super) fn from_wire(id: i64) -> Option<Self> {
        (id != 0).then_some(Self(id))
    }

    pub(super) fn wire(self) -> i64 {
        self.0
    }
}

impl Client {
    /// Begins a lease that lasts for `ttl`, in whole seconds and at least one, if it is not renewed.
    ///
    /// # Errors
    ///
    /// [`DirectoryError::Unavailable`].
    pub async fn begin_lease(&self, ttl: Duration) -> Result<LeaseId, DirectoryError> {
        let seconds = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX).max(1);
        let asked = LeaseGrantRequest {
            ttl: seconds,
            id: 0,
        };
        let answer = self
            .call(|channel, login| {
                let request = login.request(asked);
                async move { LeaseClient::new(channel).lease_grant(request).await }
            })
            .await?;
        LeaseId::from_wire(answer.id).ok_or_else(|| {
            DirectoryError::Unavailable("etcd granted a lease without a name".into())
        })
    }

    /// Renews a lease, and says whether it was still there: `false` when it has lapsed, and its keys
    /// with it.
    ///
    /// # Errors
    ///
    /// [`DirectoryError::Unavailable`].
    pub async fn renew_lease(&self, lease: LeaseId) -> Result<bool, DirectoryError> {
        // The call is a stream of renewals; one that carries a single one ends with its answer, so
        // that nothing needs to be kept over a lost connection.
        let mut answers = self
            .call(|channel, login| {
                let asked = stream::iter([LeaseKeepAliveRequest { id: lease.0 }]);
                let request = login.request(asked);
                async move { LeaseClient::new(channel).lease_keep_alive(request).await }
            })
            .await?;
        let answer = tokio::time::timeout(super::client::CALL_LIMIT, answers.message());
        match answer.await {
            Ok(Ok(Some(answer))) => Ok(answer.ttl > 0),
            Ok(Ok(None)) => Err(DirectoryError::Unavailable(
                "etcd ended a renewal without an answer".into(),
            )),
            Ok(Err(status)) => Err(super::client::unavailable(&status)),
            Err(_) => Err(DirectoryError::Unavailable(
                "etcd did not answer a renewal in time".into(),
            )),
        }
    }

    /// Ends a lease, and its keys with it.
    ///
    /// # Errors
    ///
    /// [`DirectoryError::Unavailable`], also if the lease has lapsed.
    pub async fn end_lease(&self, lease: LeaseId) -> Result<(), DirectoryError> {
        self.call(|channel, login| {
            let request = login.request(LeaseRevokeRequest { id: lease.0 });
            async move { LeaseClient::new(channel).lease_revoke(request).await }
        })
        .await?;
        Ok(())
    }
}
