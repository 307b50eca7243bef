//! Relays back to back in virtual time: client, gateway and supervisor, over links that keep order,
//! take time and break, between two programs that send, finish and reset as they please.
//!
//! No runtime and no sockets: a whole path takes microseconds, so what a race can do is tried
//! thousands of times. [`world`] is the shell, [`link`] and [`app`] are what it joins.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod app;
mod link;
mod world;

use std::time::Duration;

use proptest::prelude::*;
use tidegate_lifecycle::HalfClose::{self, Explicit, Response, Unsupported};
use tidegate_lifecycle::cause::{Origin, Reason};
use tidegate_lifecycle::limits::{CLOSE_REASON_GRACE, StreamLimits};

use crate::app::{App, Last, Plan};
use crate::link::Ms;
use crate::world::{CLIENT, GATEWAY, SUPERVISOR, Setting, World};

const FORMS: [HalfClose; 3] = [Unsupported, Response, Explicit];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    /// Whatever happens, nobody is lied to, and everything ends once.
    #[test]
    fn no_end_of_file_is_ever_early(setting in setting(any_plan(), loss())) {
        let world = World::new(setting).run();
        check_sockets(&world);
        check_ends(&world);
    }

    /// Where every hop promises FIN frames, success means that everything arrived, both ways.
    #[test]
    fn success_is_success_everywhere(mut setting in setting(any_plan(), loss())) {
        setting.forms = [Explicit; 2];
        let world = World::new(setting).run();
        check_ends(&world);
        if world.outcome(CLIENT) == Some(Ok(())) {
            check_all_is_delivered(&world);
            prop_assert_eq!(world.outcome(GATEWAY), Some(Ok(())));
            prop_assert_eq!(world.outcome(SUPERVISOR), Some(Ok(())));
        }
    }

    /// Two programs that finish get everything, in every mixture of forms, and no hop complains.
    #[test]
    fn whoever_finishes_in_peace_is_finished(setting in setting(peaceful_plan(), Just(None))) {
        let world = World::new(setting).run();
        check_all_is_delivered(&world);
        for hop in [CLIENT, GATEWAY, SUPERVISOR] {
            prop_assert_eq!(world.outcome(hop), Some(Ok(())), "hop {}", hop);
        }
    }

    /// A reset arrives at the other end as what it was, with every hop on its path.
    #[test]
    fn a_targets_reset_keeps_its_name(mut setting in setting(peaceful_plan(), Just(None))) {
        setting.plans[1].last.1 = Last::Reset;
        let world = World::new(setting).run();
        let end = world.outcome(CLIENT).unwrap().unwrap_err();
        prop_assert_eq!((end.origin, end.reason), (Origin::Target, Reason::TargetReset));
        prop_assert_eq!(path(&end.hops), ["supervisor", "gateway"]);
        prop_assert!(world.app(0).unwrap().saw_reset);
    }

    /// A client's RST_STREAM says no more than that it cancelled, and that travels on.
    #[test]
    fn a_clients_reset_is_a_cancellation(mut setting in setting(peaceful_plan(), Just(None))) {
        setting.plans[0].last.1 = Last::Reset;
        let world = World::new(setting).run();
        let end = world.outcome(CLIENT).unwrap().unwrap_err();
        prop_assert_eq!((end.origin, end.reason), (Origin::Client, Reason::ClientReset));
        let end = world.outcome(GATEWAY).unwrap().unwrap_err();
        prop_assert_eq!((end.origin, end.reason), (Origin::Client, Reason::ClientCancelled));
        let end = world.outcome(SUPERVISOR).unwrap().unwrap_err();
        if end.reason != Reason::ChannelUnknown {
            prop_assert_eq!((end.origin, end.reason), (Origin::Client, Reason::ClientCancelled));
            prop_assert_eq!(path(&end.hops), ["gateway"]);
        }
        prop_assert!(world.app(1).unwrap().saw_reset);
    }

    /// A link that breaks is a reset for both programs, unless all was over before.
    #[test]
    fn a_broken_link_resets_both_sockets(
        mut setting in setting(peaceful_plan(), broken()),
    ) {
        setting.forms = [Explicit; 2];
        setting.plans.iter_mut().for_each(|plan| plan.last.0 += 10_000);
        let world = World::new(setting).run();
        prop_assert!(world.app(0).unwrap().saw_reset);
        prop_assert!(world.app(1).is_none_or(|target| target.saw_reset));
        let end = world.outcome(CLIENT).unwrap().unwrap_err();
        prop_assert_eq!(end.reason, Reason::TransportLost);
    }

    /// A silent legacy client gets all its bytes and OK; its target, a reset and no end of file.
    #[test]
    fn a_silent_legacy_client_is_served(mut setting in setting(peaceful_plan(), Just(None))) {
        setting.forms[0] = Unsupported;
        setting.limits.legacy_half_close_grace = Duration::from_millis(500);
        setting.plans[0].last.0 += 100_000;
        let world = World::new(setting).run();
        let [client, target] = apps(&world);
        prop_assert_eq!((client.received, client.saw_fin), (target.sent, true));
        prop_assert!(target.saw_reset && !target.saw_fin);
        prop_assert_eq!(world.outcome(GATEWAY), Some(Ok(())));
        let end = world.outcome(SUPERVISOR).unwrap().unwrap_err();
        prop_assert_eq!((end.origin, end.reason), (Origin::Gateway, Reason::HalfCloseIdle));
    }
}

/// End of file means that the other program has finished, and that every byte of it was read.
#[track_caller]
fn check_sockets(world: &World) {
    let [Some(client), Some(target)] = [world.app(0), world.app(1)] else {
        return;
    };
    for (reader, writer) in [(client, target), (target, client)] {
        assert!(reader.received <= writer.sent);
        if reader.saw_fin {
            assert!(writer.has_finished, "an end of file out of nothing");
            assert_eq!(reader.received, writer.sent, "an early end of file");
        }
    }
}

/// Each program's socket ended as its own hop says: closed in peace, or reset.
#[track_caller]
fn check_ends(world: &World) {
    for (index, hop) in [(0, CLIENT), (1, SUPERVISOR)] {
        let (Some(app), Some(outcome)) = (world.app(index), world.outcome(hop)) else {
            continue;
        };
        assert!(app.is_gone(), "nothing outlives its stream");
        assert_eq!(app.saw_close, outcome.is_ok());
        assert_eq!(app.has_reset || app.saw_reset, outcome.is_err());
    }
}

#[track_caller]
fn check_all_is_delivered(world: &World) {
    check_sockets(world);
    for app in apps(world) {
        assert!(app.saw_fin && app.saw_close && app.has_finished);
    }
}

fn apps(world: &World) -> [&App; 2] {
    [world.app(0).unwrap(), world.app(1).unwrap()]
}

fn path(hops: &[tidegate_lifecycle::id::HopName]) -> Vec<&str> {
    hops.iter().map(|hop| hop.as_str()).collect()
}

prop_compose! {
    /// A path on which words on the control stream are quicker than anybody's patience.
    fn setting(plan: impl Strategy<Value = Plan> + Clone, loss: impl Strategy<Value = Loss>)(
        forms in [form(), form()],
        plans in [plan.clone(), plan],
        delays in [[delays(), delays()], [delays(), delays()]],
        window in 1..4_usize,
        control in 0..CLOSE_REASON_GRACE.as_millis() as Ms,
        claim in 0..100_u64,
        loss in loss,
        keepalive in any::<bool>(),
    ) -> Setting {
        let limits = StreamLimits {
            keepalive: keepalive.then_some(Duration::from_millis(20)),
            legacy_half_close_grace: Duration::from_secs(3600),
            ..StreamLimits::default()
        };
        Setting { forms, plans, delays, window, control, claim, loss, limits }
    }
}

type Loss = Option<(usize, Ms, [Ms; 2])>;

fn loss() -> impl Strategy<Value = Loss> {
    prop_oneof![2 => Just(None), 1 => broken()]
}

fn broken() -> impl Strategy<Value = Loss> {
    (0..2_usize, 0..300_u64, [0..50_u64, 0..50_u64]).prop_map(Some)
}

fn any_plan() -> impl Strategy<Value = Plan> + Clone {
    plan(prop_oneof![3 => Just(Last::Fin), 1 => Just(Last::Reset)].boxed())
}

fn peaceful_plan() -> impl Strategy<Value = Plan> + Clone {
    plan(Just(Last::Fin).boxed())
}

fn plan(last: BoxedStrategy<Last>) -> impl Strategy<Value = Plan> + Clone {
    let sends = prop::collection::vec((0..30_u64, 1..1000_usize), 0..6);
    (sends, (0..100_u64, last), prop_oneof![Just(0), 0..40_u64])
        .prop_map(|(sends, last, pace)| Plan { sends, last, pace })
}

fn delays() -> impl Strategy<Value = Vec<Ms>> {
    prop::collection::vec(0..20_u64, 1..4)
}

fn form() -> impl Strategy<Value = HalfClose> {
    prop::sample::select(FORMS.to_vec())
}
