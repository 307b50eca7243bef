//! The logs of programs: a warning that nobody expected is a failure.

use std::io::Write;

use tidegate_testkit::process::Process;

/// How many of its last lines a program is quoted with.
const QUOTED: usize = 80;

/// What a line of trouble contains.
const TROUBLE: [&str; 3] = [" WARN ", " ERROR ", "panicked at"];

/// Returns the lines of trouble in a program's logs that contain none of the `expected` texts.
pub(crate) fn surprises(process: &Process, expected: &[String]) -> Vec<String> {
    let lines = process.stderr().lines();
    let troubled = lines
        .iter()
        .filter(|line| TROUBLE.iter().any(|trouble| line.contains(trouble)));
    let surprising =
        troubled.filter(|line| !expected.iter().any(|text| line.contains(text.as_str())));
    surprising.map(|line| line.to_string()).collect()
}

/// Writes the last lines of a program's logs to standard error, where a failed test is explained.
pub(crate) fn tell(process: &Process) {
    let lines = process.stderr().lines();
    let left_out = lines.len().saturating_sub(QUOTED);
    let mut stderr = std::io::stderr().lock();
    // Nobody is left to be told if this fails.
    let _ = writeln!(
        stderr,
        "--- process {}, after {left_out} lines",
        process.id()
    );
    for line in &lines[left_out..] {
        let _ = writeln!(stderr, "{line}");
    }
}
