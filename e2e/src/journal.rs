//! The logs of programs: a warning that nobody expected is a failure, and so is a secret.

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

/// Fails if a program's log holds what it was given to carry or to keep, in any form.
///
/// # Panics
///
/// If it does, or if the log does not say everything that could be said.
pub fn assert_silent_about(process: &Process, secrets: &[&str]) {
    let log = process.stderr().to_string();
    assert!(log.contains(" TRACE ") || log.contains(" DEBUG "), "{log}");
    for form in secrets.iter().flat_map(|secret| forms(secret)) {
        assert!(!log.contains(&form), "{form:?} in {log}");
    }
}

/// The ways in which bytes find their way into a log: as text, as numbers, in hexadecimal, in base64.
fn forms(secret: &str) -> Vec<String> {
    let bytes = &secret.as_bytes()[..12];
    let numbers: Vec<_> = bytes.iter().map(u8::to_string).collect();
    let hex: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    vec![
        secret[..12].to_owned(),
        numbers.join(", "),
        hex.concat(),
        hex.join(" "),
        base64(bytes),
    ]
}

/// Of a length that divides by three, so that it is found wherever it begins at such a place.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |bytes: &[u8]| {
        let value = bytes
            .iter()
            .fold(0, |value, byte| value << 8 | usize::from(*byte));
        [18, 12, 6, 0].map(|shift| char::from(DIGITS[value >> shift & 63]))
    };
    bytes.chunks_exact(3).flat_map(group).collect()
}
