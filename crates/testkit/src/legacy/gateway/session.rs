//! A supervisor's session at a released gateway.

use std::{sync::Arc, time::Duration};

use futures_util::Stream;
use tokio::{
    sync::{mpsc, watch},
    time::{MissedTickBehavior, interval},
};
use tonic::{Request, Response, Status, Streaming};

use super::{relay::Relay, service::Shared};
use crate::{
    legacy::{Dialect, rpc},
    messages::{
        Empty, FromGateway, FromSupervisor, GatewayMessage, HALF_CLOSE, Hello, RelayOpen,
        RelayOpenResult, SessionAccepted, SupervisorMessage, TcpTarget,
    },
    outcome::Outcome,
    wait::{self, GENEROUS},
};

type ToSupervisor = mpsc::Sender<Result<GatewayMessage, Status>>;

/// An open session; dropping it ends it with OK.
#[derive(Debug)]
pub struct Session {
    shared: Arc<Shared>,
    hello: Hello,
    id: String,
    to_supervisor: ToSupervisor,
    heard: watch::Receiver<Heard>,
}

/// What the supervisor has said.
#[derive(Debug, Default)]
struct Heard {
    messages: Vec<FromSupervisor>,
    ended: Option<Outcome>,
}

/// Answers hello and hands the session to the test.
pub(super) async fn accept(
    shared: Arc<Shared>,
    request: Request<Streaming<SupervisorMessage>>,
) -> Result<Response<impl Stream<Item = Result<GatewayMessage, Status>>>, Status> {
    let mut messages = request.into_inner();
    let first = messages
        .message()
        .await?
        .and_then(|message| message.payload);
    let Some(FromSupervisor::Hello(hello)) = first else {
        return Err(Status::invalid_argument("the first message must be hello"));
    };
    let (to_supervisor, queue) = mpsc::channel(rpc::QUEUE);
    let id = shared.new_id("session");
    let accepted = FromGateway::SessionAccepted(accepted(&shared, &hello, &id));
    to_supervisor
        .try_send(Ok(accepted.into()))
        .expect("an empty queue has room");
    let (said, heard) = watch::channel(Heard::default());
    shared.tasks.spawn(listen(messages, said));
    if shared.options.sends_heartbeats {
        let beats = beat(shared.options.heartbeat, to_supervisor.downgrade());
        shared.tasks.spawn(beats);
    }
    let session = Session {
        shared: Arc::clone(&shared),
        hello,
        id,
        to_supervisor,
        heard,
    };
    let handed = shared.sessions.try_send(session);
    handed.map_err(|_| Status::resource_exhausted("the test takes no more sessions"))?;
    Ok(Response::new(rpc::queued(queue)))
}

fn accepted(shared: &Shared, hello: &Hello, id: &str) -> SessionAccepted {
    let interval = shared.options.heartbeat;
    let accepted = SessionAccepted {
        session_id: id.to_owned(),
        ..SessionAccepted::default()
    };
    let seconds = u32::try_from(interval.as_secs()).unwrap_or(u32::MAX);
    match shared.options.dialect {
        Dialect::Old => SessionAccepted {
            heartbeat_interval_secs: seconds,
            ..accepted
        },
        Dialect::New => SessionAccepted {
            heartbeat_interval: interval.try_into().ok(),
            ..accepted
        },
        Dialect::Proposed => {
            let mut common = hello.proposed_capabilities.clone();
            common.retain(|capability| capability == HALF_CLOSE);
            SessionAccepted {
                heartbeat_interval: interval.try_into().ok(),
                proposed_capabilities: common.into_iter().map(String::into_bytes).collect(),
                ..accepted
            }
        }
    }
}

async fn listen(mut messages: Streaming<SupervisorMessage>, said: watch::Sender<Heard>) {
    let outcome = loop {
        match messages.message().await {
            Ok(Some(message)) => said.send_modify(|heard| heard.messages.extend(message.payload)),
            Ok(None) => break Outcome::from(&Status::ok("")),
            Err(status) => break Outcome::from(&status),
        }
    };
    said.send_modify(|heard| heard.ended = Some(outcome));
}

/// Sends heartbeats for as long as the session lives.
async fn beat(every: Duration, to_supervisor: mpsc::WeakSender<Result<GatewayMessage, Status>>) {
    let mut heartbeats = interval(every);
    heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        heartbeats.tick().await;
        let Some(to_supervisor) = to_supervisor.upgrade() else {
            return;
        };
        let heartbeat = FromGateway::Heartbeat(Empty {}).into();
        if to_supervisor.send(Ok(heartbeat)).await.is_err() {
            return;
        }
    }
}

impl Session {
    /// Returns what the supervisor said first.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Returns the session's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns all that the supervisor has said since.
    pub fn messages(&self) -> Vec<FromSupervisor> {
        self.heard.borrow().messages.clone()
    }

    /// Opens a relay to a TCP target and waits until the supervisor has claimed it.
    ///
    /// # Errors
    ///
    /// The supervisor's refusal.
    ///
    /// # Panics
    ///
    /// If there is no answer or no claim within 30 s.
    pub async fn open(&self, host: &str, port: u16) -> Result<Relay, RelayOpenResult> {
        let channel_id = self.shared.new_id("channel");
        let claimed = self.shared.expect_relay(&channel_id);
        self.say(FromGateway::RelayOpen(RelayOpen {
            channel_id: channel_id.clone(),
            tcp: Some(TcpTarget {
                host: host.to_owned(),
                port: port.into(),
            }),
            ..RelayOpen::default()
        }))
        .await;
        let result = self.result(&channel_id).await;
        if !result.success {
            self.shared.claim(&channel_id);
            return Err(result);
        }
        let relay = wait::within(GENEROUS, "the relay's stream", claimed).await;
        Ok(relay.expect("a claim is only dropped with its channel"))
    }

    /// Sends any message; without a supervisor it is lost.
    pub async fn say(&self, message: FromGateway) {
        let _ = self.to_supervisor.send(Ok(message.into())).await;
    }

    /// Ends the session with this status.
    pub async fn end(self, status: Status) {
        let _ = self.to_supervisor.send(Err(status)).await; // the supervisor may have gone before
    }

    /// Waits until the supervisor's side of the session has ended.
    ///
    /// # Panics
    ///
    /// After 30 s.
    pub async fn ended(&self) -> Outcome {
        self.hear("the supervisor to end its session", |heard| {
            heard.ended.clone()
        })
        .await
    }

    /// Waits for the first message, past ones included, in which `find` finds something.
    ///
    /// # Panics
    ///
    /// After 30 s.
    pub async fn message<T>(&self, what: &str, find: impl Fn(&FromSupervisor) -> Option<T>) -> T {
        self.hear(what, |heard| heard.messages.iter().find_map(&find))
            .await
    }

    async fn result(&self, channel: &str) -> RelayOpenResult {
        self.message("the answer to RelayOpen", |message| match message {
            FromSupervisor::RelayOpenResult(result) if result.channel_id == channel => {
                Some(result.clone())
            }
            _ => None,
        })
        .await
    }

    async fn hear<T>(&self, what: &str, find: impl Fn(&Heard) -> Option<T>) -> T {
        let mut heard = self.heard.clone();
        let found = heard.wait_for(|heard| find(heard).is_some());
        let found = wait::within(GENEROUS, what, found).await;
        let found = found.unwrap_or_else(|_| panic!("the session ended before {what}"));
        find(&found).expect("it was there a moment ago")
    }
}
