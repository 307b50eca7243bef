//! The logs of programs: a warning that nobody expected is a failure.

use tidegate_testkit::process::Process;

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
