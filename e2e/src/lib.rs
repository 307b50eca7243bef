//! The shipped programs, put together as people put them together, and taken apart by tests.
//!
//! A test starts a [`World`] in a [`Topology`], does to it whatever its case is about, and ends with
//! [`World::settle`], which fails unless everything is as it was before: descriptors, sockets,
//! gauges, and no warning in any log that the test did not announce.
//!
//! ```text
//!  local program ─ Forward ─(proxy)─ gateway ─(proxy)─ supervisor ─ target
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`topology`] | which programs, with or without TLS |
//! | [`options`] | what is special about one world: configuration, proxies, expected warnings |
//! | [`world`] | the programs, and the words of a test |
//! | [`forward`] | a local port that leads to a target, through the command line or the SDK |
//! | [`raw`] | clients and supervisors that do as they are told, frame by frame |
//! | [`command`] | the command line, run to its end |
//! | [`journal`] | what programs log, and what they must not |
//! | [`measure`] | round trips and rates |
//! | [`balancer`] | nginx and HAProxy before the gateway |
//! | [`tools`] | other people's programs, started and asked |
//!
//! Cases that take long at their full size run at a smaller one, and at the full one with
//! `TIDEGATE_E2E_FULL=1`.

pub mod balancer;
pub mod command;
mod credentials;
mod daemon;
pub mod forward;
pub mod journal;
pub mod measure;
pub mod options;
pub mod raw;
mod settle;
pub mod tools;
pub mod topology;
pub mod world;

pub use crate::daemon::Daemon;
pub use crate::forward::{Closed, Forward};
pub use crate::options::Options;
pub use crate::topology::Topology;
pub use crate::world::World;

/// The sandbox of every world.
pub const SANDBOX: &str = "box";

/// Picks the size of a case: `small` as a rule, `full` with `TIDEGATE_E2E_FULL=1`.
pub fn sized<T>(small: T, full: T) -> T {
    if std::env::var_os("TIDEGATE_E2E_FULL").is_some() {
        full
    } else {
        small
    }
}

/// Makes a test in each topology of each case, a function `async fn(Topology)` beside it.
#[macro_export]
macro_rules! every_topology {
    ($($case:ident),+ $(,)?) => {
        mod plaintext {
            $(
                #[tokio::test]
                async fn $case() {
                    super::$case($crate::Topology::PLAINTEXT).await;
                }
            )+
        }

        mod tls {
            $(
                #[tokio::test]
                async fn $case() {
                    super::$case($crate::Topology::TLS).await;
                }
            )+
        }
    };
}
