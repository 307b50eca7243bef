//! How many commands there may be.

use tidegate_gateway::Config;
use tidegate_testkit::raw_h2::Client;
use tidegate_testkit::wait;
use tonic::Code;

use super::{Talk, command, exits, request, running, supervisor};
use crate::admin::metrics;
use crate::common::{Running, config, finishes, is, path};

#[tokio::test]
async fn past_the_limit_of_commands_none_is_started_until_one_has_ended() {
    let cases = [
        (
            "max_execs",
            Config {
                max_execs: 1,
                ..config()
            },
        ),
        (
            "max_execs_per_sandbox",
            Config {
                max_execs_per_sandbox: 1,
                ..config()
            },
        ),
    ];
    for (limit, config) in cases {
        let gateway = Running::start(config).await;
        let mut supervisor = supervisor(&gateway).await;
        let client = Client::connect(gateway.addr).await.unwrap();
        let (caller, process) = running(&client, &mut supervisor, command(&["cat"])).await;
        let second = Talk::open(&client, request(command(&["cat"]))).await;
        let outcome = second.outcome().await;
        is(&outcome, Code::ResourceExhausted, "LIMIT_EXECS");
        assert!(outcome.message.contains(limit), "{outcome:?}");
        // Other streams are none of its business.
        let (forward, relay) = path(&client, &mut supervisor, "known").await;
        finishes(forward, relay).await;
        assert_eq!(execs(&gateway).await, 1.0);
        exits(caller, process, 0).await;
        let free = wait::until_async(wait::GENEROUS, async || execs(&gateway).await == 0.0);
        free.await.unwrap();
        let (caller, process) = running(&client, &mut supervisor, command(&["cat"])).await;
        exits(caller, process, 0).await;
        gateway.stop().await;
    }
}

async fn execs(gateway: &Running) -> f64 {
    metrics(gateway).await.gauges["tidegate_execs"]
}
