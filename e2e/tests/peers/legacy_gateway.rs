//! Our supervisor at released gateways, which the test is the client of.

use tidegate_e2e::{Daemon, Options, SANDBOX, Topology, World};
use tidegate_testkit::content::Content;
use tidegate_testkit::legacy::{Dialect, Gateway, GatewayOptions, Relay, Session};
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::Target;
use tonic::Code;

use crate::MOMENT;

const DIALECTS: [Dialect; 3] = [Dialect::Old, Dialect::New, Dialect::Proposed];

/// A world whose supervisor has gone to another gateway.
struct Abroad {
    world: World,
    supervisor: Daemon,
    session: Session,
    _gateway: Gateway,
}

impl Abroad {
    async fn start(dialect: Dialect) -> Self {
        let gateway = Gateway::start(GatewayOptions {
            dialect,
            ..GatewayOptions::default()
        });
        let gateway = gateway.unwrap();
        let url = format!("http://{}", gateway.address());
        let options = Options::new()
            .no_supervisor()
            .supervisor("gateway", vec![url]);
        let world = World::start(Topology::PLAINTEXT, options).await;
        let supervisor = world.spawn_supervisor("abroad", SANDBOX).await;
        let session = gateway.session().await;
        Self {
            world,
            supervisor,
            session,
            _gateway: gateway,
        }
    }

    async fn open(&self, target: &Target) -> Relay {
        let opening = self.session.open("127.0.0.1", target.address().port());
        opening.await.unwrap()
    }

    /// Nothing is open, nothing was complained of but the missing heartbeats, and the supervisor stops
    /// when it is told to.
    async fn end(self) {
        self.supervisor
            .until_metric("tidegate_streams", 0.0, MOMENT)
            .await;
        let metrics = self.supervisor.metrics();
        let opened = metrics.sum("tidegate_streams_opened_total");
        assert_eq!(opened, metrics.sum("tidegate_streams_ended_total"));
        self.supervisor.process().terminate();
        assert!(self.supervisor.process().exit(MOMENT).await.success());
        let complaints = [" WARN ", "promises no heartbeats"].map(|it| self.supervisor.logged(it));
        assert_eq!(complaints, [1, 1], "{}", self.supervisor.process());
        self.world.settle().await;
    }
}

#[tokio::test]
async fn ss_20_a_client_that_ends_first_gets_its_answer() {
    for dialect in DIALECTS {
        let abroad = Abroad::start(dialect).await;
        let target = Target::answer_after_end().unwrap();
        let mut relay = abroad.open(&target).await;
        assert!(relay.send("12345").await);
        relay.finish();
        let end = relay.read_to_end().await;
        assert_eq!(
            (end.bytes, end.outcome.code, end.surprises),
            (5, Code::Ok, 0),
            "{dialect:?}"
        );
        let seen = target.next().await.until_read_end().await;
        assert_eq!((seen.bytes_read, seen.read_end), (5, Some(Ended::Eof)));
        abroad.end().await;
    }
}

#[tokio::test]
async fn a_target_that_ends_first_loses_no_byte() {
    for dialect in DIALECTS {
        let abroad = Abroad::start(dialect).await;
        let (download, upload) = (Content::new(1 << 20, 1), Content::new(1 << 20, 2));
        let target = Target::finish_first(download).unwrap();
        let mut relay = abroad.open(&target).await;
        assert_eq!(relay.read(1 << 20).await, download.to_vec(), "{dialect:?}");
        assert!(relay.send_content(upload).await);
        relay.finish();
        let end = relay.read_to_end().await;
        assert_eq!((end.bytes, end.outcome.code), (0, Code::Ok), "{dialect:?}");
        let seen = target.next().await.until_read_end().await;
        assert_eq!(
            (seen.sha256, seen.read_end),
            (upload.sha256(), Some(Ended::Eof))
        );
        abroad.end().await;
    }
}

#[tokio::test]
async fn pf_13_a_target_that_resets_is_no_end() {
    for dialect in DIALECTS {
        let abroad = Abroad::start(dialect).await;
        let target = Target::resetter(1000).unwrap();
        let mut relay = abroad.open(&target).await;
        assert_eq!(relay.read(1000).await.len(), 1000);
        target.next().await.cue();
        // A released gateway cannot tell this from an end by what its library shows it. It ends.
        relay.read_to_end().await;
        abroad.end().await;
    }
}

#[tokio::test]
async fn pf_14_a_failed_response_is_no_end() {
    for dialect in DIALECTS {
        let abroad = Abroad::start(dialect).await;
        let target = Target::sink().unwrap();
        let mut relay = abroad.open(&target).await;
        assert!(relay.send(vec![1; 100_000]).await);
        let connection = target.next().await;
        connection.until_read(100_000).await;
        relay
            .fail(tonic::Status::unavailable("the client has gone"))
            .await;
        let seen = connection.until_read_end().await;
        assert_eq!(seen.read_end, Some(Ended::Reset), "{dialect:?}");
        drop(relay);
        abroad.end().await;
    }
}

#[tokio::test]
async fn pf_11_a_refused_dial_is_answered() {
    for dialect in DIALECTS {
        let abroad = Abroad::start(dialect).await;
        let port = Target::echo().unwrap().address().port();
        let refused = abroad.session.open("127.0.0.1", port).await.unwrap_err();
        assert!(!refused.error.is_empty(), "{dialect:?}");
        abroad.end().await;
    }
}
