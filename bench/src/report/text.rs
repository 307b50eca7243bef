//! The report as tables.

use std::fmt::Write;

use crate::goal::{self, Verdict};
use crate::machine;
use crate::options::Plan;
use crate::results::{Figure, Results};
use crate::stats;
use crate::subject::Subject;

/// Every figure, then the goals, then what is missing.
pub(super) fn render(plan: &Plan, results: &Results) -> String {
    let mut out = head(plan);
    for (figure, subjects) in results.figures() {
        let _ = writeln!(out, "\n{} ({})", figure.title(), figure.unit());
        for (subject, samples) in subjects {
            let _ = writeln!(out, "{}", row(results, figure, *subject, samples));
        }
    }
    goals(&mut out, results);
    missing(&mut out, results);
    out
}

fn head(plan: &Plan) -> String {
    let machine = machine::describe();
    format!(
        "{} cores, kernel {}, load {}; {} rounds after {}; {} MiB a sample\n\
         Medians with their range; ratios are medians of same-round ratios.\n",
        machine["cores"],
        machine["kernel"].as_str().unwrap_or("?"),
        machine["loadAverage"].as_str().unwrap_or("?"),
        plan.rounds,
        plan.warm_up,
        plan.sample_bytes >> 20,
    )
}

fn row(results: &Results, figure: Figure, subject: Subject, samples: &[f64]) -> String {
    let median = stats::median(samples).unwrap_or(f64::NAN);
    let mut line = format!("  {subject:<13}{:>10}", number(median));
    if let (Some((low, high)), true) = (stats::range(samples), samples.len() > 1) {
        let _ = write!(
            line,
            "  {:>21}",
            format!("({} .. {})", number(low), number(high))
        );
    }
    for base in subject.bases() {
        if let Some(ratio) = results.ratio((figure, subject), (figure, *base)) {
            let _ = write!(line, "   {ratio:.2} x {base}");
        }
    }
    line
}

fn goals(out: &mut String, results: &Results) {
    let _ = writeln!(out, "\n{:<62}{:>9}{:>11}", "goal", "wanted", "measured");
    for goal in goal::all() {
        let (value, word) = match goal.judge(results) {
            Verdict::Reached(value) => (number(value), "ok"),
            Verdict::Missed(value) => (number(value), "miss"),
            Verdict::Unknown => ("-".to_owned(), "not measured"),
        };
        let bound = goal.bound.to_string();
        let _ = writeln!(out, "  {:<60}{bound:>9}{value:>11}  {word}", goal.title);
    }
}

fn missing(out: &mut String, results: &Results) {
    for (subject, reason) in &results.absent {
        let _ = writeln!(out, "\nleft out: {subject}: {reason}");
    }
    for failure in &results.failures {
        let _ = writeln!(out, "\nFAILED: {failure}");
    }
}

/// Three digits that mean something.
fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        small if small >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits() {
        let shown: Vec<_> = [1234.5, 12.34, 1.234, 0.0123]
            .into_iter()
            .map(number)
            .collect();
        assert_eq!(shown, ["1234", "12.3", "1.23", "0.012"]);
    }
}
