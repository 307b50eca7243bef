//! The bench itself works: baselines run, bytes are counted, nothing fails.

use std::process::Command;

use serde_json::Value;

#[test]
fn the_baselines_move_every_byte_and_report_it() {
    let report = bench(&[
        "--only",
        "stream",
        "--only",
        "parallel",
        "--only",
        "connections",
    ]);
    let unit = |row: &&Value| row["unit"] == "GiB/s" && row["subject"] == "tls";
    let rows = report["figures"].as_array().unwrap();
    assert_eq!(rows.iter().filter(unit).count(), 4, "{report:#}");
    assert!(
        rows.iter()
            .all(|row| row["samples"].as_array().unwrap().len() == 1)
    );
}

#[test]
fn a_goal_that_was_not_measured_is_neither_reached_nor_missed() {
    let report = bench(&["--only", "round-trip"]);
    let goals = report["goals"].as_array().unwrap();
    assert!(
        goals.iter().all(|goal| goal["verdict"] == "notMeasured"),
        "{report:#}"
    );
}

#[test]
fn a_missing_program_leaves_its_contender_out_and_fails_nothing() {
    let report = bench(&[
        "--only",
        "round-trip",
        "--subject",
        "tidegate",
        "--bin-dir",
        "/",
    ]);
    assert_eq!(report["leftOut"][0]["subject"], "tidegate", "{report:#}");
}

/// Runs the plain and the TLS relays once and returns the report.
fn bench(more: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate-bench"))
        .args([
            "--quick",
            "--rounds",
            "1",
            "--warm-up",
            "0",
            "--mebibytes",
            "8",
        ])
        .args(["--subject", "plain", "--subject", "tls", "--output", "json"])
        .args(more)
        .output()
        .expect("the bench starts");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a JSON report");
    assert_eq!(report["failures"], Value::Array(Vec::new()), "{report:#}");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    report
}
