//! Other people's clients behind other people's proxies: two readings of HTTP/2 beside ours.

use tidegate_e2e::Options;
use tidegate_e2e::balancer::{Balanced, Kind};
use tidegate_testkit::content::Content;
use tidegate_testkit::target::Target;

use crate::{node, python};

/// gRPC's C core and grpc-js get status and reason of a refusal, and half-close as without a proxy.
async fn clients_are_told_what_happened(kind: Kind) {
    let options = Options::new().gateway("restart_grace", "0s").commands();
    let balanced = Balanced::start(kind, options).await;
    let access = &balanced.access;
    let nobody = Target::silent().unwrap().address();
    let answering = Target::answer_after_end().unwrap();
    for release in ["0.0.113", "0.1.5"] {
        python::check(release, access, "refused_upload", nobody).await;
        python::check(release, access, "half_close", answering.address()).await;
    }
    let echo = Target::echo().unwrap();
    node::check(access, "refusedUpload", nobody).await;
    let first = Target::finish_first(Content::new(1 << 20, 1)).unwrap();
    node::check(access, "targetFirst", first.address()).await;
    node::check(access, "cancel", echo.address()).await;
    // Each waits for headers before it says anything.
    for name in ["echo", "missingFin"] {
        node::check(access, name, echo.address()).await;
    }
    // A command's end comes while its stdin is open, or on its way.
    for name in ["conversation", "openStdin", "unreadStdin", "cancel"] {
        node::command(access, name).await;
    }
    for release in ["0.0.113", "0.1.5"] {
        python::check(release, access, "commands", nobody).await;
    }
    balanced.settle().await;
}

#[tokio::test]
async fn nginx() {
    clients_are_told_what_happened(Kind::Nginx).await;
}

#[tokio::test]
async fn haproxy_http() {
    clients_are_told_what_happened(Kind::HaproxyHttp).await;
}
