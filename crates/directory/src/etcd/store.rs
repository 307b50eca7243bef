//! Keys: read together, and changed together on conditions.

use super::{
    client::Client,
    lease::LeaseId,
    proto::{
        etcdserverpb::{
            Compare, DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest,
            compare::{CompareResult, CompareTarget, TargetUnion},
            kv_client::KvClient,
            request_op::Request,
        },
        mvccpb,
    },
};
use crate::DirectoryError;

/// A state of the whole store: it grows with every change, and no two changes share one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(i64);

impl Revision {
    pub(super) fn new(revision: i64) -> Self {
        Self(revision)
    }

    pub(super) fn number(self) -> i64 {
        self.0
    }

    /// Returns it as a number, for a fencing token.
    pub fn get(self) -> u64 {
        self.0.unsigned_abs()
    }
}

/// A key and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// What it holds.
    pub value: Vec<u8>,
    /// The change that wrote it last.
    pub revision: Revision,
    /// The lease that it ends with.
    pub lease: Option<LeaseId>,
}

/// Keys as they were together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The keys, in order.
    pub entries: Vec<Entry>,
    /// The state of the store that they were read from.
    pub revision: Revision,
}

/// What must hold for changes to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The key is not there.
    Absent(String),
    /// The key was written last by this change.
    Unchanged(String, Revision),
    /// No key that begins so was written after this state. One that was removed since does not
    /// count.
    NoneNewer(String, Revision),
}

/// One change of one key, or of all that begin alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Writes a key.
    Put {
        /// The key.
        key: String,
        /// What it will hold.
        value: Vec<u8>,
        /// The lease that it ends with.
        lease: Option<LeaseId>,
    },
    /// Removes a key.
    Remove(String),
    /// Removes every key that begins so.
    RemoveAll(String),
}

impl Client {
    /// Reads every key that begins with `prefix`.
    ///
    /// # Errors
    ///
    /// [`DirectoryError::Unavailable`].
    pub async fn read(&self, prefix: &str) -> Result<Snapshot, DirectoryError> {
        let asked = RangeRequest {
            key: prefix.into(),
            range_end: end_of(prefix),
            ..RangeRequest::default()
        };
        let answer = self
            .call(|channel, login| {
                let request = login.request(asked.clone());
                async move { KvClient::new(channel).range(request).await }
            })
            .await?;
        Ok(Snapshot {
            entries: answer.kvs.into_iter().map(Entry::from).collect(),
            revision: Revision(answer.header.unwrap_or_default().revision),
        })
    }

    /// Makes all changes at once if all conditions hold, and returns the state that they led to;
    /// `None`, with nothing changed, if one does not.
    ///
    /// Every key that is written gets that state as its revision.
    ///
    /// # Errors
    ///
    /// [`DirectoryError::Unavailable`]: the changes were made or were not.
    pub async fn change(
        &self,
        conditions: &[Condition],
        changes: &[Change],
    ) -> Result<Option<Revision>, DirectoryError> {
        let asked = TxnRequest {
            compare: conditions.iter().map(Compare::from).collect(),
            success: changes.iter().map(RequestOp::from).collect(),
            failure: Vec::new(),
        };
        let answer = self
            .call(|channel, login| {
                let request = login.request(asked.clone());
                async move { KvClient::new(channel).txn(request).await }
            })
            .await?;
        let revision = Revision(answer.header.unwrap_or_default().revision);
        Ok(answer.succeeded.then_some(revision))
    }
}

/// The first key after all that begin with `prefix`. Keys are text, in which no byte is the highest.
pub(super) fn end_of(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    match end.last_mut() {
        Some(last) => *last += 1,
        // All keys, as etcd writes it.
        None => end.push(0),
    }
    end
}

impl From<mvccpb::KeyValue> for Entry {
    fn from(found: mvccpb::KeyValue) -> Self {
        Self {
            key: String::from_utf8_lossy(&found.key).into_owned(),
            value: found.value,
            revision: Revision(found.mod_revision),
            lease: LeaseId::from_wire(found.lease),
        }
    }
}

impl From<&Condition> for Compare {
    fn from(condition: &Condition) -> Self {
        let (key, range_end, result, revision) = match condition {
            Condition::Absent(key) => (key, Vec::new(), CompareResult::Equal, 0),
            Condition::Unchanged(key, revision) => {
                (key, Vec::new(), CompareResult::Equal, revision.0)
            }
            Condition::NoneNewer(prefix, revision) => {
                (prefix, end_of(prefix), CompareResult::Less, revision.0 + 1)
            }
        };
        Self {
            result: result.into(),
            target: CompareTarget::Mod.into(),
            key: key.as_str().into(),
            target_union: Some(TargetUnion::ModRevision(revision)),
            range_end,
        }
    }
}

impl From<&Change> for RequestOp {
    fn from(change: &Change) -> Self {
        let request = match change {
            Change::Put { key, value, lease } => Request::RequestPut(PutRequest {
                key: key.as_str().into(),
                value: value.clone(),
                lease: lease.map_or(0, LeaseId::wire),
            }),
            Change::Remove(key) => Request::RequestDeleteRange(DeleteRangeRequest {
                key: key.as_str().into(),
                range_end: Vec::new(),
            }),
            Change::RemoveAll(prefix) => Request::RequestDeleteRange(DeleteRangeRequest {
                key: prefix.as_str().into(),
                range_end: end_of(prefix),
            }),
        };
        Self {
            request: Some(request),
        }
    }
}
