//! Streams that work: both dialects of peers, both ways of half-close.

use tidegate_testkit::content::Content;
use tidegate_testkit::legacy::{self, Dialect, SupervisorOptions};
use tidegate_testkit::raw_h2::Client;
use tidegate_testkit::target::Target;

use crate::common::{Running, Supervisor, config, finishes, path, works};

#[tokio::test]
async fn a_stream_of_ours_goes_both_ways_and_finishes() {
    let gateway = Running::start(config()).await;
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let (mut forward, mut relay) = path(&client, &mut supervisor, "known").await;
    works(&mut forward, &mut relay).await;
    let headers = forward.headers().await;
    let header = |name: &str| headers.get(name).unwrap().to_str().unwrap().to_owned();
    assert!(header("tidegate-capabilities").contains("stream-explicit-fin-v1"));
    assert!(header("tidegate-path-capabilities").contains("stream-explicit-fin-v1"));
    assert_eq!(
        header("tidegate-session-id"),
        supervisor.accepted.session_id
    );
    assert_eq!(header("tidegate-stream-id").len(), 12);
    finishes(forward, relay).await;
    gateway.stop().await;
}

#[tokio::test]
async fn released_peers_of_every_dialect_carry_bytes() {
    let gateway = Running::start(config()).await;
    let target = Target::echo().unwrap();
    for (at, dialect) in [Dialect::Old, Dialect::New, Dialect::Proposed]
        .into_iter()
        .enumerate()
    {
        let sandbox = format!("legacy-{at}");
        let mut options = SupervisorOptions::new(gateway.addr, &sandbox);
        options.dialect = dialect;
        let supervisor = legacy::Supervisor::start(options).unwrap();
        supervisor.accepted().await;
        let client = legacy::Client::connect(gateway.addr, dialect)
            .await
            .unwrap();
        let mut forward = client
            .forward(&sandbox, "127.0.0.1", target.address().port())
            .await
            .unwrap();
        let content = Content::new(300_000, at as u64);
        assert!(forward.send_content(content).await, "{dialect:?}");
        assert_eq!(forward.read(300_000).await.len(), 300_000, "{dialect:?}");
        forward.finish();
        let rest = forward.read_to_end().await;
        assert!(rest.outcome.is_ok(), "{dialect:?}: {:?}", rest.outcome);
    }
    gateway.stop().await;
}
