//! The relays of one session, by name.

use std::collections::HashMap;

use tidegate_lifecycle::End;
use tidegate_lifecycle::id::ChannelId;

use super::wish::Opener;

/// The relays that a session was asked for and whose streams have not ended.
#[derive(Debug, Default)]
pub(super) struct Channels(HashMap<ChannelId, Opener>);

impl Channels {
    pub(super) fn insert(&mut self, channel: ChannelId, opener: Opener) {
        self.0.insert(channel, opener);
    }

    /// The stream has ended. Says whether it was one of this session's.
    pub(super) fn remove(&mut self, channel: &ChannelId) -> bool {
        self.0.remove(channel).is_some()
    }

    /// The supervisor ended a relay, which is then not this session's any more: whoever wants it may
    /// ask another. Says whether it was.
    pub(super) fn told(&mut self, channel: &ChannelId, end: End) -> bool {
        let opener = self.0.remove(channel);
        opener.map(|opener| opener.told(end)).is_some()
    }

    pub(super) fn contains(&self, channel: &ChannelId) -> bool {
        self.0.contains_key(channel)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The session is over: tells every stream, as the supervisor's word or as this gateway's own.
    pub(super) fn end_all(&mut self, end: &End, own: bool) {
        for (channel, opener) in self.0.drain() {
            let end = end.clone().on(channel);
            if own {
                opener.close(end)
            } else {
                opener.told(end)
            }
        }
    }
}
