//! The four released Python clients: both dialects, in plaintext and with client certificates.

use std::net::SocketAddr;
use std::process::Command;

use tidegate_e2e::forward::Access;
use tidegate_e2e::tools::{client, run};
use tidegate_e2e::{Options, Topology, World};
use tidegate_testkit::content::Content;
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::{Step, Target};
use tidegate_testkit::wait::GENEROUS;

use crate::{GONE, arguments, beside, world};

/// Runs the check `name` of `released.py` with one release.
pub(crate) async fn check(release: &str, access: &Access, name: &str, target: SocketAddr) {
    let mut python = Command::new(client(&format!("openshell-{release}")).join("bin/python3"));
    python.arg(beside("released.py")).arg(name);
    python.args(arguments(access, target));
    assert_eq!(run(python).await, "ok\n", "{release}: {name}");
}

async fn every_check(release: &str, topology: Topology) {
    let world = world(topology).await;
    let check = async |name, target| check(release, &world.access(), name, target).await;

    let echo = Target::echo().unwrap();
    check("ask", echo.address()).await;
    check("tickets", echo.address()).await;
    assert_eq!(echo.accepted(), 0, "a refused stream reaches nobody");
    check("echo", echo.address()).await;
    assert_eq!(
        echo.next().await.until_closed().await.read_end,
        Some(Ended::Eof)
    );

    check("half_close", Target::answer_after_end().unwrap().address()).await;
    let target = Target::finish_first(Content::new(1 << 20, 1)).unwrap();
    check("target_first", target.address()).await;
    let nobody = Target::silent().unwrap().address();
    check("refused", nobody).await;
    let resetting = [
        Step::SendContent(Content::new(1000, 1)),
        Step::Read(6),
        Step::Reset,
    ];
    check("reset", Target::start(resetting).unwrap().address()).await;

    for name in ["cancel", "deadline"] {
        check(name, echo.address()).await;
        echo.next().await.until_reset(GENEROUS).await;
    }
    world.settle().await;
}

async fn commands(release: &str, topology: Topology) {
    let options = Options::new().gateway("restart_grace", "0s").commands();
    let world = World::start(topology, options).await;
    let nobody = ([127, 0, 0, 1], 9).into();
    for name in ["commands", "cancelled_command"] {
        check(release, &world.access(), name, nobody).await;
    }
    let supervisor = world.supervisor();
    supervisor.until_metric("tidegate_execs", 0.0, GONE).await;
    world.settle().await;
}

macro_rules! releases {
    ($($name:ident: $release:literal),+) => {$(
        mod $name {
            use super::*;

            #[tokio::test]
            async fn plaintext() {
                every_check($release, Topology::PLAINTEXT).await;
            }

            #[tokio::test]
            async fn tls() {
                every_check($release, Topology::TLS).await;
            }

            #[tokio::test]
            async fn commands_plaintext() {
                commands($release, Topology::PLAINTEXT).await;
            }

            #[tokio::test]
            async fn commands_tls() {
                commands($release, Topology::TLS).await;
            }
        }
    )+};
}

releases!(release_0_0_113: "0.0.113", release_0_0_116: "0.0.116", release_0_1_0: "0.1.0", release_0_1_5: "0.1.5");
