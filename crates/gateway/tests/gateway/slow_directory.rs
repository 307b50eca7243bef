//! What does not wait for the directory.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use h2::Reason;
use tidegate_directory::{
    Claim, Claimed, Directory, DirectoryError, Event, Home, Knowledge, Memory, MemorySeat,
    MemorySettings, SandboxEntry, Watch,
};
use tidegate_lifecycle::id::{SandboxName, SessionId};
use tidegate_testkit::raw_h2::Client;
use tidegate_testkit::wait;
use tokio_util::sync::CancellationToken;
use tonic::Code;

use crate::common::{Running, Supervisor, config, is, path};

/// A directory that takes nothing back before it is allowed to.
struct Slow {
    memory: MemorySeat,
    allowed: CancellationToken,
}

#[async_trait]
impl Directory for Slow {
    async fn claim(&self, claim: Claim) -> Result<Claimed, DirectoryError> {
        self.memory.claim(claim).await
    }

    async fn release(
        &self,
        sandbox: &SandboxName,
        session: &SessionId,
    ) -> Result<bool, DirectoryError> {
        self.allowed.cancelled().await;
        self.memory.release(sandbox, session).await
    }

    async fn homes(&self, sandbox: &SandboxName) -> Result<Vec<Home>, DirectoryError> {
        self.memory.homes(sandbox).await
    }

    async fn known(&self, sandbox: &SandboxName) -> Result<Knowledge, DirectoryError> {
        self.memory.known(sandbox).await
    }

    async fn declare(&self, sandbox: &SandboxName) -> Result<(), DirectoryError> {
        self.memory.declare(sandbox).await
    }

    async fn forget(&self, sandbox: &SandboxName) -> Result<Option<SandboxEntry>, DirectoryError> {
        self.memory.forget(sandbox).await
    }

    async fn entry(&self, sandbox: &SandboxName) -> Result<Option<SandboxEntry>, DirectoryError> {
        self.memory.entry(sandbox).await
    }

    async fn list(&self) -> Result<Vec<SandboxEntry>, DirectoryError> {
        self.memory.list().await
    }

    async fn watch(&self, sandbox: &SandboxName) -> Result<Watch, DirectoryError> {
        self.memory.watch(sandbox).await
    }

    async fn next_event(&self) -> Event {
        self.memory.next_event().await
    }

    async fn leave(&self) -> Result<(), DirectoryError> {
        self.memory.leave().await
    }
}

#[tokio::test]
async fn relays_hear_of_a_lost_session_before_the_directory_has_let_it_go() {
    let allowed = CancellationToken::new();
    let config = config();
    let directory = Slow {
        memory: Memory::new(MemorySettings::default()).seat(config.replica()),
        allowed: allowed.clone(),
    };
    let gateway = Running::start_with(config, Arc::new(directory)).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let (forward, _relay) = path(&client, &mut supervisor, "known").await;
    supervisor.outbox.reset(Reason::CANCEL);
    let outcome = wait::within(Duration::from_secs(5), "the end", forward.outcome()).await;
    is(&outcome, Code::Unavailable, "SUPERVISOR_LOST");
    allowed.cancel();
    gateway.stop().await;
}
