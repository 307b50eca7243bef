//! The report as one JSON object with every raw sample.

use serde_json::{Map, Value, json};

use crate::goal::{self, Bound, Goal, Verdict};
use crate::machine;
use crate::options::Plan;
use crate::results::{Figure, Results};
use crate::stats;
use crate::subject::Subject;

/// Everything, in camelCase.
pub(super) fn render(plan: &Plan, results: &Results) -> Value {
    let figures: Vec<_> = results
        .figures()
        .flat_map(|(figure, subjects)| subjects.keys().map(move |subject| (figure, *subject)))
        .map(|(figure, subject)| row(results, figure, subject))
        .collect();
    let goals: Vec<_> = goal::all()
        .iter()
        .map(|goal| judged(goal, results))
        .collect();
    let absent = results.absent.iter();
    let absent: Vec<_> = absent
        .map(|(subject, reason)| json!({ "subject": subject.name(), "reason": reason }))
        .collect();
    json!({
        "machine": machine::describe(),
        "plan": settings(plan),
        "figures": figures,
        "goals": goals,
        "leftOut": absent,
        "failures": results.failures,
    })
}

fn settings(plan: &Plan) -> Value {
    json!({
        "rounds": plan.rounds,
        "warmUp": plan.warm_up,
        "sampleBytes": plan.sample_bytes,
        "parallelStreams": plan.parallel_streams,
        "roundTrips": plan.round_trips,
        "connectSeconds": plan.connect_time.as_secs_f64(),
        "connectWorkers": plan.connect_workers,
        "idleStreams": plan.idle_streams,
        "idleSessions": plan.idle_sessions,
        "stalledStreams": plan.stalled_streams,
        "execWorkers": plan.exec_workers,
        "idleExecs": plan.idle_execs,
    })
}

fn row(results: &Results, figure: Figure, subject: Subject) -> Value {
    let samples = results.of(figure, subject);
    let ratio = |base: &Subject| {
        let ratio = results.ratio((figure, subject), (figure, *base))?;
        Some((base.name().to_owned(), json!(ratio)))
    };
    let ratios: Map<String, Value> = subject.bases().iter().filter_map(ratio).collect();
    json!({
        "figure": figure.title(),
        "unit": figure.unit(),
        "subject": subject.name(),
        "median": stats::median(samples),
        "ratioTo": ratios,
        "samples": samples,
    })
}

fn judged(goal: &Goal, results: &Results) -> Value {
    let (value, verdict) = match goal.judge(results) {
        Verdict::Reached(value) => (Some(value), "ok"),
        Verdict::Missed(value) => (Some(value), "miss"),
        Verdict::Unknown => (None, "notMeasured"),
    };
    let (key, bound) = match goal.bound {
        Bound::AtLeast(least) => ("atLeast", least),
        Bound::AtMost(most) => ("atMost", most),
    };
    json!({ "goal": goal.title, key: bound, "value": value, "verdict": verdict })
}
