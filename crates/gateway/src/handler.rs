//! Which call is served by which part.

use std::sync::Arc;

use tidegate_transport::{ServerStream, Shards, StreamHandler};
use tidegate_wire::metadata::{
    CONNECT_SUPERVISOR, EXEC_SANDBOX, EXEC_SANDBOX_INTERACTIVE, FORWARD_TCP, PEER_RELAY,
    RELAY_STREAM,
};

use crate::state::State;
use crate::stream::Door;
use crate::{relay, session, stream};

/// Takes the streaming calls, each into a task of its own on the thread of its connection. One that
/// panics ends that call alone.
pub(crate) struct Handler {
    state: Arc<State>,
    shards: Arc<Shards>,
}

impl Handler {
    pub(crate) const fn new(state: Arc<State>, shards: Arc<Shards>) -> Self {
        Self { state, shards }
    }

    fn spawn(
        &self,
        shard: usize,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        // Owned by the shard, which ends it, and by the tracker, which is waited for.
        self.shards
            .get(shard)
            .spawn(name, self.state.tasks.track_future(task));
    }
}

impl StreamHandler for Handler {
    fn wants(&self, path: &str) -> bool {
        const WANTED: [&str; 6] = [
            FORWARD_TCP,
            EXEC_SANDBOX,
            EXEC_SANDBOX_INTERACTIVE,
            CONNECT_SUPERVISOR,
            RELAY_STREAM,
            PEER_RELAY,
        ];
        WANTED.contains(&path)
    }

    fn handle(&self, stream: ServerStream) {
        let state = Arc::clone(&self.state);
        let shard = stream.connection.shard;
        if matches!(stream.head.uri.path(), RELAY_STREAM | CONNECT_SUPERVISOR) {
            // Streams of clients that still arrive while the gateway leaves are served over these.
            stream.connection.connection.hold(&state.closed);
        }
        match stream.head.uri.path() {
            FORWARD_TCP => self.spawn(shard, "forward", stream::forward(state, stream)),
            EXEC_SANDBOX => {
                let exec = stream::exec(state, stream, Door::Once);
                self.spawn(shard, "exec", exec);
            }
            EXEC_SANDBOX_INTERACTIVE => {
                let exec = stream::exec(state, stream, Door::Interactive);
                self.spawn(shard, "exec", exec);
            }
            PEER_RELAY => self.spawn(shard, "peer", stream::peer(state, stream)),
            RELAY_STREAM => self.spawn(shard, "relay", relay::serve(state, stream)),
            CONNECT_SUPERVISOR => self.spawn(shard, "session", session::serve(state, stream)),
            // Not asked for; dropping it resets the call.
            _ => {}
        }
    }
}
