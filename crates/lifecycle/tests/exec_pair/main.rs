//! Executions back to back in virtual time: client, gateway and supervisor, over links that keep
//! order, take time and break, between a caller and a runner that say what they please.
//!
//! No runtime and no sockets: a whole path takes microseconds, so what a race can do is tried
//! thousands of times.

mod world;

use proptest::prelude::*;
use tidegate_lifecycle::cause::Reason;

use crate::world::{CLIENT, GATEWAY, Ms, Plan, SUPERVISOR, Start, World};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// Whatever happens, nobody is lied to, and every hop has an end.
    #[test]
    fn nobody_is_lied_to(plan in plan(any_loss(), any_leave())) {
        let world = World::new(plan).run();
        check(&world);
    }

    /// A command that ends is told of, with all its output, though nobody ends its stdin.
    #[test]
    fn ex_09_an_exit_ends_everything_well(mut plan in plan(Just(None), Just(None))) {
        plan.start = Start::Runs;
        let (exits, slow) = (plan.exits_at, plan.caller_reads_at);
        let way: Ms = plan.delays.iter().sum();
        let world = World::new(plan).run();
        check(&world);
        for hop in [CLIENT, GATEWAY, SUPERVISOR] {
            prop_assert_eq!(world.reason(hop), Some(Ok(())), "hop {}", hop);
        }
        prop_assert!(world.heard_exit.is_some());
        let by = exits.max(slow) + 8 * way + 50;
        prop_assert!(world.client_done_at.unwrap() <= by, "{:?} > {}", world.client_done_at, by);
    }

    /// A command that was not started is a status of its reason, everywhere.
    #[test]
    fn ex_36_a_failed_start_keeps_its_name(mut plan in plan(Just(None), Just(None))) {
        plan.start = Start::Fails;
        let world = World::new(plan).run();
        check(&world);
        for hop in [CLIENT, GATEWAY, SUPERVISOR] {
            prop_assert_eq!(world.reason(hop), Some(Err(Reason::ExecNotFound)), "hop {}", hop);
        }
        prop_assert_eq!(world.heard_exit, None);
    }

    /// A caller that goes away ends the command, and not its stdin.
    #[test]
    fn ex_32_a_caller_that_goes_away_cancels(mut plan in plan(Just(None), (0..40_u64).prop_map(Some))) {
        plan.fin_at = None;
        plan.exits_at += 100_000;
        let world = World::new(plan).run();
        check(&world);
        prop_assert!(!world.runner_heard_fin);
        prop_assert!(world.runner_was_told || world.start_failed());
    }
}

/// What holds in every world.
#[track_caller]
fn check(world: &World) {
    for hop in [CLIENT, GATEWAY, SUPERVISOR] {
        assert!(world.reason(hop).is_some(), "hop {hop} has no end");
    }
    if world.reason(CLIENT) == Some(Ok(())) {
        assert_eq!(world.heard_exit, Some(7), "success is an exit");
        assert_eq!(world.caller_heard, world.runner_wrote, "output is missing");
    }
    if world.heard_exit.is_some() {
        assert_eq!(
            world.caller_heard, world.runner_wrote,
            "an exit before its output"
        );
        assert!(world.runner_exited, "an exit that nobody said");
    }
    if world.runner_heard_fin {
        assert!(world.caller_said_fin, "an end of stdin that nobody said");
        assert_eq!(
            world.runner_heard, world.caller_wrote,
            "an early end of stdin"
        );
    }
    assert!(world.starts <= 1, "nobody starts it twice");
    let seen = world.exit_codes.iter().flatten().all(|code| *code == 7);
    assert!(seen, "a code that nobody has seen");
}

fn any_loss() -> impl Strategy<Value = Option<(usize, Ms)>> {
    prop::option::of((0..2_usize, 0..60_u64))
}

fn any_leave() -> impl Strategy<Value = Option<Ms>> {
    prop::option::of(0..60_u64)
}

fn plan(
    loss: impl Strategy<Value = Option<(usize, Ms)>>,
    leaves_at: impl Strategy<Value = Option<Ms>>,
) -> impl Strategy<Value = Plan> {
    let start = prop::sample::select(vec![Start::Runs, Start::Runs, Start::Runs, Start::Fails]);
    let times = || prop::collection::vec(0..40_u64, 0..6);
    let caller = (times(), prop::option::of(0..50_u64), 0..60_u64, leaves_at);
    let runner = (start, 0..10_u64, times(), 0..60_u64);
    let links = (
        any::<[bool; 1]>(),
        [0..9_u64, 0..9, 0..9, 0..9],
        1..4_usize,
        loss,
    );
    (caller, runner, links).prop_map(|(caller, runner, links)| Plan {
        stdin_at: caller.0,
        fin_at: caller.1,
        caller_reads_at: caller.2,
        leaves_at: caller.3,
        start: runner.0,
        starts_after: runner.1,
        writes_at: runner.2,
        exits_at: runner.3,
        ours: links.0[0],
        delays: links.1,
        window: links.2,
        loss: links.3,
    })
}
