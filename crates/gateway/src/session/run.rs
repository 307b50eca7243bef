//! The life of a session: one loop that hears, decides by the machine, and writes.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tidegate_bridge::{ControlReceiver, ControlSender, Said};
use tidegate_lifecycle::id::ChannelId;
use tidegate_lifecycle::session::{
    Farewell, FromGateway, GatewayAction, GatewaySession, GatewayState, Idle, RelayClose,
};
use tidegate_lifecycle::{Capability, End, Origin, Reason};
use tidegate_transport::Lost;
use tidegate_wire::DecodeError;
use tidegate_wire::session::{decode_supervisor, encode_gateway};
use tokio::time::sleep_until;

use super::channels::Channels;
use super::conclude::{self, Last};
use super::handle::{Ending, Note, Wishes};
use super::{Session, Wish};
use crate::first;
use crate::state::State;

type Step = ControlFlow<Last>;

/// A session's task.
pub(super) struct Control {
    state: Arc<State>,
    session: Arc<Session>,
    machine: GatewaySession,
    receiver: ControlReceiver,
    sender: ControlSender,
    wishes: Wishes,
    channels: Channels,
    /// Something is queued that was not written yet.
    unwritten: bool,
}

impl Control {
    pub(super) fn new(
        state: Arc<State>,
        session: Arc<Session>,
        machine: GatewaySession,
        receiver: ControlReceiver,
        sender: ControlSender,
        wishes: Wishes,
    ) -> Self {
        let channels = Channels::default();
        Self {
            state,
            session,
            machine,
            receiver,
            sender,
            wishes,
            channels,
            unwritten: true,
        }
    }

    /// Runs until the session ends, and says how.
    pub(super) async fn run(&mut self) -> Last {
        loop {
            let next = tokio::time::Instant::from_std(self.machine.poll_timeout());
            let step = tokio::select! {
                biased;
                () = self.session.bell.notified() => self.answer_bell(),
                said = self.receiver.next() => self.hear(said).await,
                () = sleep_until(next) => self.pass_time().await,
                Some(wish) = self.wishes.recv() => self.ask_for(*wish),
                written = self.sender.flush(), if self.unwritten => self.note_written(written),
            };
            self.session.set_relays(self.channels.len());
            if let ControlFlow::Break(last) = step {
                return last;
            }
        }
    }

    /// Tells every relay that the session is over. Wishes that it has not come to are dropped: their
    /// supervisor never heard of them, so that the next one may.
    pub(super) fn end_relays(&mut self, end: &End, own: bool) {
        self.wishes.close();
        while self.wishes.try_recv().is_ok() {}
        self.channels.end_all(end, own);
    }

    /// The stream, to end it with.
    pub(super) fn into_parts(self) -> (ControlSender, ControlReceiver) {
        (self.sender, self.receiver)
    }

    fn answer_bell(&mut self) -> Step {
        for note in self.session.take_notes() {
            match note {
                Note::LetGo(channel, farewell) => {
                    let was_ours = self.channels.remove(&channel);
                    if let Some(end) = farewell.filter(|_| was_ours) {
                        self.say_close(channel, end)?;
                    }
                }
                Note::AskToEnd(channel, end) if self.channels.contains(&channel) => {
                    self.say_close(channel, end)?;
                }
                Note::AskToEnd(..) => {}
                Note::Leave(deadline, alternatives) => self.leave(deadline, &alternatives)?,
                Note::Dismiss => self.machine.dismiss(),
            }
        }
        if let Some(ending) = self.session.ending() {
            return Step::Break(Last::decided(&self.state, &self.session, ending));
        }
        self.finish_drain()
    }

    fn leave(&mut self, deadline: Duration, alternatives: &[String]) -> Step {
        match self.machine.leave() {
            Farewell::Ask => {
                tracing::debug!(?deadline, "the supervisor is asked to move");
                self.push(&FromGateway::SessionDrain {
                    deadline,
                    alternatives: alternatives.to_vec(),
                })
            }
            Farewell::WhenIdle | Farewell::Nothing => Step::Continue(()),
        }
    }

    async fn hear(&mut self, said: Said) -> Step {
        match said {
            Said::Message(message) => self.read(message).await,
            // A caller has no trailers: whatever came with the end, it is one.
            Said::End | Said::Status(_) => Step::Break(Last::goodbye(self.machine.recv_end())),
            Said::Malformed(error) => self.fault(first::broken(Origin::Supervisor, error)),
            Said::Lost(lost) => Step::Break(Last::lost(&self.session, lost)),
        }
    }

    async fn read(&mut self, message: Bytes) -> Step {
        let message = match decode_supervisor(message) {
            Ok(message) => message,
            Err(error @ DecodeError::Malformed) => {
                return self.fault(first::invalid(Origin::Supervisor, &error));
            }
            Err(error @ (DecodeError::Missing { .. } | DecodeError::Bad { .. })) => {
                self.ignore(&error.to_string());
                return Step::Continue(());
            }
        };
        match self.machine.recv(message, Instant::now()) {
            Ok(action) => self.act(action).await,
            Err(end) => self.fault(end),
        }
    }

    async fn act(&mut self, action: GatewayAction) -> Step {
        match action {
            GatewayAction::Opened {
                channel,
                result: Ok(()),
            } => {
                if !self.channels.contains(&channel) {
                    self.ignore("an answer about a relay of nobody");
                }
            }
            GatewayAction::Opened {
                channel,
                result: Err(end),
            }
            | GatewayAction::Abort { channel, end } => {
                if !self.channels.told(&channel, end) {
                    self.ignore("the end of a relay of nobody");
                }
            }
            GatewayAction::Note { channel, text } => {
                tracing::debug!(%channel, text, "the supervisor closed a relay in its own words");
            }
            GatewayAction::Drain { deadline } => {
                tracing::info!(?deadline, "the supervisor lets go of the session");
                self.state.sessions.retire(&self.session);
                conclude::release(&self.state, &self.session).await;
                return self.finish_drain();
            }
            GatewayAction::CountUnknown => self.ignore("a message without a known payload"),
            GatewayAction::Heartbeat => return self.push(&FromGateway::Heartbeat),
            // The machine asks for one registration, which was before this loop.
            GatewayAction::Register(_) | GatewayAction::Nothing => {}
        }
        Step::Continue(())
    }

    async fn pass_time(&mut self) -> Step {
        match self.machine.handle_timeout(Instant::now()) {
            Ok(action) => self.act(action).await,
            Err(end) if end.reason == Reason::SupervisorStopped => Step::Break(Last::goodbye(end)),
            Err(end) => self.fault(end),
        }
    }

    fn ask_for(&mut self, wish: Wish) -> Step {
        if wish.is_moot() {
            return Step::Continue(());
        }
        let Wish { open, opener } = wish;
        if self.machine.state() != GatewayState::Live {
            let message = "the supervisor has let go of the session, which takes no new relays";
            opener.told(self.state.end(Reason::StaleSession, message));
            return Step::Continue(());
        }
        self.channels.insert(open.channel.clone(), opener);
        self.push(&FromGateway::RelayOpen(open))
    }

    fn note_written(&mut self, written: Result<(), Lost>) -> Step {
        self.unwritten = false;
        // A loss is heard by the receiving half, with its reason; here it only ends the writing.
        if let Err(lost) = written {
            tracing::debug!(%lost, "the control stream takes nothing any more");
        }
        Step::Continue(())
    }

    fn say_close(&mut self, channel: ChannelId, end: End) -> Step {
        if self.session.agreed.has(Capability::RelayAbort) {
            let close = RelayClose::Abort { channel, end };
            return self.push(&FromGateway::RelayClose(close));
        }
        Step::Continue(())
    }

    /// A session that is let go, by whichever end, is done when it has no relay left.
    fn finish_drain(&mut self) -> Step {
        if !self.channels.is_empty() {
            return Step::Continue(());
        }
        match self.machine.idle() {
            Idle::Stays => Step::Continue(()),
            Idle::Released => Step::Break(Last::goodbye(self.machine.recv_end())),
            Idle::Left => {
                let ending = Ending::Draining;
                Step::Break(Last::decided(&self.state, &self.session, &ending))
            }
        }
    }

    fn push(&mut self, message: &FromGateway) -> Step {
        self.unwritten = true;
        if self.sender.push(encode_gateway(message)) {
            return Step::Continue(());
        }
        let message = "the supervisor does not read its control stream";
        self.fault(End::new(
            Origin::Supervisor,
            Reason::HeartbeatTimeout,
            message,
        ))
    }

    fn fault(&self, end: End) -> Step {
        Step::Break(Last::fault(&self.state, end))
    }

    fn ignore(&self, what: &str) {
        self.state.metrics.ignored();
        tracing::debug!("ignored: {what}");
    }
}
