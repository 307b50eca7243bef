//! Supervisors' sessions: each is one task that owns its control stream, its machine and the table
//! of its relays. Others ask it for relays and tell it of their end; nobody locks it.

mod channels;
mod conclude;
mod handle;
mod hello;
mod leash;
mod obey;
mod registry;
mod run;
mod serve;
mod wish;

pub(crate) use handle::{Ending, Session};
pub(crate) use leash::Leash;
pub(crate) use obey::obey;
pub(crate) use registry::Sessions;
pub(crate) use serve::serve;
pub(crate) use wish::Wish;

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use tidegate_lifecycle::Capabilities;
    use tidegate_lifecycle::id::{Generation, InstanceId, SandboxName, SessionId};

    use super::Session;
    use super::handle::{Facts, Wishes};

    /// A session of sandbox `known` without a task, named after its instance.
    pub(crate) fn session(instance: &str, generation: u64) -> (Arc<Session>, Wishes) {
        let (session, wishes) = Session::new(Facts {
            id: SessionId::new(instance),
            sandbox: SandboxName::parse("known").unwrap(),
            instance: InstanceId::new(instance),
            generation: Generation::new(generation),
            agreed: Capabilities::SESSION,
        });
        (Arc::new(session), wishes)
    }
}
