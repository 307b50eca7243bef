//! The log of changes, as they happen.

use futures_util::{StreamExt, stream};
use thiserror::Error;
use tonic::Streaming;

use super::{
    client::{Client, unavailable},
    proto::{
        etcdserverpb::{
            WatchCreateRequest, WatchRequest, WatchResponse, watch_client::WatchClient,
            watch_request::RequestUnion,
        },
        mvccpb::{self, event::EventType},
    },
    store::{Entry, Revision, end_of},
};
use crate::DirectoryError;

/// What happened to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tidings {
    /// It was written.
    Written(Entry),
    /// It was removed, or its lease lapsed.
    Removed {
        /// The key.
        key: String,
        /// The change that removed it.
        revision: Revision,
    },
}

/// Why a log ends.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TailError {
    /// The connection is lost: the log can be asked for again from where it ended.
    #[error(transparent)]
    Lost(#[from] DirectoryError),
    /// The history before this state is gone: all keys must be read anew.
    #[error("etcd has dropped its history before revision {}", .0.get())]
    Compacted(Revision),
}

/// The changes of all keys that begin alike, in order and without a gap. Dropping it ends it.
#[derive(Debug)]
pub struct Tail {
    answers: Streaming<WatchResponse>,
    reached: Revision,
}

impl Client {
    /// Follows the changes of every key that begins with `prefix`, from the first one after `after`.
    ///
    /// # Errors
    ///
    /// [`DirectoryError::Unavailable`].
    pub async fn follow(&self, prefix: &str, after: Revision) -> Result<Tail, DirectoryError> {
        let create = WatchRequest {
            request_union: Some(RequestUnion::CreateRequest(WatchCreateRequest {
                key: prefix.into(),
                range_end: end_of(prefix),
                start_revision: after.number() + 1,
                // A quiet log says now and then how far it is, so that it can go on from there
                // although the history before is gone.
                progress_notify: true,
                prev_kv: false,
            })),
        };
        let answers = self
            .call(|channel, login| {
                // The log lasts as long as the side that asks keeps the call open.
                let asked = stream::iter([create.clone()]).chain(stream::pending());
                let request = login.request(asked);
                async move { WatchClient::new(channel).watch(request).await }
            })
            .await?;
        Ok(Tail {
            answers,
            reached: after,
        })
    }
}

impl Tail {
    /// Waits for what happens next; empty when only time has passed.
    ///
    /// # Errors
    ///
    /// [`TailError`]; go on with a new log after [`reached`](Self::reached), or read all anew.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is lost.
    pub async fn next(&mut self) -> Result<Vec<Tidings>, TailError> {
        let answer = match self.answers.message().await {
            Ok(Some(answer)) => answer,
            Ok(None) => return Err(lost("etcd ended the log of changes")),
            Err(status) => return Err(TailError::Lost(unavailable(&status))),
        };
        if answer.compact_revision != 0 {
            let left = Revision::new(answer.compact_revision);
            return Err(TailError::Compacted(left));
        }
        if answer.canceled {
            return Err(lost(&answer.cancel_reason));
        }
        let is_only_progress = answer.events.is_empty() && !answer.created;
        let tidings: Vec<_> = answer.events.into_iter().filter_map(tidings).collect();
        let newest = if is_only_progress {
            answer.header.map(|header| Revision::new(header.revision))
        } else {
            tidings.iter().map(Tidings::revision).max()
        };
        self.reached = newest.map_or(self.reached, |newest| newest.max(self.reached));
        Ok(tidings)
    }

    /// Returns the state up to which every change has been told.
    pub fn reached(&self) -> Revision {
        self.reached
    }
}

impl Tidings {
    fn revision(&self) -> Revision {
        match self {
            Self::Written(entry) => entry.revision,
            Self::Removed { revision, .. } => *revision,
        }
    }
}

fn tidings(event: mvccpb::Event) -> Option<Tidings> {
    let happened = event.r#type();
    let entry = Entry::from(event.kv?);
    Some(match happened {
        EventType::Put => Tidings::Written(entry),
        EventType::Delete => Tidings::Removed {
            key: entry.key,
            revision: entry.revision,
        },
    })
}

fn lost(why: &str) -> TailError {
    TailError::Lost(DirectoryError::Unavailable(why.into()))
}
