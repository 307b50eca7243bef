//! The admin address: probes, and metrics that add up.

use h2::Reason;
use tidegate_testkit::messages::ForwardFrame;
use tidegate_testkit::probe::{Metrics, ScrapeError, get, scrape};
use tidegate_testkit::raw_h2::Client;
use tidegate_testkit::wait;

use crate::common::{Forward, Running, Supervisor, config, finishes, init, path, works};

pub(crate) async fn page(gateway: &Running, path: &str) -> Result<String, ScrapeError> {
    let url = format!("http://{}/{path}", gateway.admin);
    tokio::task::spawn_blocking(move || get(&url))
        .await
        .unwrap()
}

pub(crate) async fn metrics(gateway: &Running) -> Metrics {
    let url = format!("http://{}/metrics", gateway.admin);
    tokio::task::spawn_blocking(move || scrape(&url))
        .await
        .unwrap()
        .unwrap()
}

#[tokio::test]
async fn dep_03_a_gateway_is_ready_without_any_session() {
    let gateway = Running::start(config()).await;
    assert_eq!(page(&gateway, "healthz").await.unwrap(), "ok\n");
    assert_eq!(page(&gateway, "readyz").await.unwrap(), "ok\n");
    assert!(matches!(
        page(&gateway, "nothing").await,
        Err(ScrapeError::Status(404))
    ));
    gateway.stop().await;
}

#[tokio::test]
async fn dep_07_gauges_return_to_their_start_and_endings_add_up_to_openings() {
    let gateway = Running::start(config()).await;
    let before = metrics(&gateway).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;

    let (mut forward, mut relay) = path(&client, &mut supervisor, "known").await;
    works(&mut forward, &mut relay).await;
    let during = metrics(&gateway).await;
    assert_eq!(
        during.gauges["tidegate_streams{kind=\"forward\",state=\"open\"}"],
        1.0
    );
    assert_eq!(during.gauges["tidegate_sessions{state=\"live\"}"], 1.0);
    assert_eq!(
        during.others["tidegate_stream_bytes_total{direction=\"upstream\"}"],
        4.0
    );
    assert_eq!(
        during.others["tidegate_stream_open_seconds_count{route=\"local\"}"],
        1.0
    );
    finishes(forward, relay).await;

    let unknown = Forward::open(&client, init("nobody")).await.outcome().await;
    assert_eq!(unknown.reason, "SANDBOX_NOT_FOUND");
    let mut bad = Forward::silent(&client).await;
    bad.send(ForwardFrame::data("x")).await;
    bad.outcome().await;
    let (mut cancelled, _relay) = path(&client, &mut supervisor, "known").await;
    cancelled.outbox.reset(Reason::CANCEL);
    supervisor.next().await;
    drop((client, supervisor));

    let settled = wait::until_async(wait::GENEROUS, async || {
        let now = metrics(&gateway).await;
        let gauges = [
            "tidegate_streams",
            "tidegate_sessions",
            "tidegate_pending_relays",
            "tidegate_buffered_bytes",
        ];
        gauges
            .into_iter()
            .all(|gauge| now.sum(gauge) == before.sum(gauge))
            && now.sum("tidegate_process_tasks") == before.sum("tidegate_process_tasks")
    });
    settled.await.expect("every gauge is back where it was");
    let after = metrics(&gateway).await;
    assert_eq!(after.sum("tidegate_streams_opened_total"), 4.0);
    assert_eq!(after.sum("tidegate_streams_ended_total"), 4.0);
    for (reason, origin) in [
        ("FINISHED", ""),
        ("SANDBOX_NOT_FOUND", "gateway"),
        ("PROTOCOL_VIOLATION", "client"),
        ("CLIENT_CANCELLED", "client"),
    ] {
        let sample = format!(
            "tidegate_streams_ended_total{{kind=\"forward\",reason=\"{reason}\",origin=\"{origin}\"}}"
        );
        assert_eq!(
            after.others.get(&sample),
            Some(&1.0),
            "{sample} in {after:#?}"
        );
    }
    gateway.stop().await;
}

#[tokio::test]
async fn oversized_frames_of_released_peers_are_counted() {
    let gateway = Running::start(config()).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let mut legacy = init("known");
    legacy.capabilities.clear();
    let mut forward = Forward::open(&client, legacy).await;
    let mut relay = supervisor.serve().await;
    relay.headers().await;
    forward.send(ForwardFrame::data(vec![0; 65_537])).await;
    forward.send(ForwardFrame::data(vec![0; 65_536])).await;
    let mut received = 0;
    while received < 131_073 {
        match relay.next().await {
            tidegate_testkit::messages::RelayPayload::Data(data) => received += data.len(),
            other => panic!("only data was sent, got {other:?}"),
        }
    }
    // While the stream goes on.
    let counted = wait::until_async(wait::GENEROUS, async || {
        metrics(&gateway).await.others["tidegate_legacy_oversize_frames_total"] == 1.0
    });
    counted.await.expect("one frame was above the limit");
    forward.outbox.reset(Reason::CANCEL);
    supervisor.next().await;
    gateway.stop().await;
}
