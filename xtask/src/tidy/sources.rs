//! Rules of a single file: how it begins, how long it gets, what it may not say.

use std::path::Path;

use super::Finding;

/// The longest file that still does one thing. Past about 500 lines, ask what second thing lives in it.
const MAX_LINES: usize = 700;

/// Folders whose files a program wrote.
const GENERATED: [&str; 2] = ["crates/wire/src/gen/", "crates/directory/src/etcd/gen/"];

/// Files that are long by nature.
const LONG_BY_NATURE: [&str; 2] = ["Cargo.lock", "package-lock.json"];

/// What people write, as opposed to snapshots, data and pictures.
const WRITTEN: [&str; 13] = [
    "cfg", "conf", "go", "js", "md", "mjs", "proto", "py", "rs", "sh", "toml", "ts", "yaml",
];

/// Words that put work off. In two halves, so that this file passes its own rule.
const PUT_OFF: [&str; 3] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// Beginnings of places that a reader of this repository cannot follow.
const OUTSIDE: [&str; 3] = [
    concat!("../", "shared"),
    concat!("/wo", "rk/"),
    concat!("/fa", "rm/"),
];

/// Checks one file; `path` is relative to the top folder.
pub(super) fn check(path: &Path, text: &str) -> Vec<Finding> {
    if is_generated(path) || !is_written(path) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    findings.extend(head(path, text));
    findings.extend(length(path, text));
    for (index, line) in text.lines().enumerate() {
        let found = put_off(line).or_else(|| outside(line));
        findings.extend(found.map(|message| Finding::new(path, index + 1, message)));
    }
    findings
}

fn is_generated(path: &Path) -> bool {
    GENERATED.iter().any(|folder| path.starts_with(folder))
}

fn is_written(path: &Path) -> bool {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let extension = path.extension().and_then(|extension| extension.to_str());
    !LONG_BY_NATURE.contains(&name)
        && extension.is_none_or(|extension| WRITTEN.contains(&extension))
        && name != "LICENSE"
}

fn head(path: &Path, text: &str) -> Option<Finding> {
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    let says_what_it_is = text
        .lines()
        .next()
        .is_some_and(|line| line.starts_with("//! "));
    (is_rust && !says_what_it_is).then(|| {
        Finding::new(
            path,
            1,
            "the file does not begin with `//!`: say what it is",
        )
    })
}

fn length(path: &Path, text: &str) -> Option<Finding> {
    let lines = text.lines().count();
    (lines > MAX_LINES).then(|| {
        let message = format!("{lines} lines, above {MAX_LINES}: what second thing lives here?");
        Finding::new(path, MAX_LINES, message)
    })
}

fn put_off(line: &str) -> Option<String> {
    let mut words = line.split(|c: char| !c.is_ascii_alphanumeric());
    let word = words.find(|word| PUT_OFF.contains(word))?;
    Some(format!(
        "{word}: do it, or say in architecture/ why it is absent"
    ))
}

fn outside(line: &str) -> Option<String> {
    let place = OUTSIDE.iter().find(|place| line.contains(**place));
    let place = place
        .map(|place| (*place).to_owned())
        .or_else(|| bare_ticket(line))?;
    Some(format!(
        "`{place}` is outside this repository: a reader cannot follow it"
    ))
}

/// A ticket's number that does not say whose: `owner/repository#7` can be followed, this cannot.
fn bare_ticket(line: &str) -> Option<String> {
    let lower = line.to_ascii_lowercase();
    let (_, rest) = lower.split_once(concat!("iss", "ue "))?;
    let number = rest.strip_prefix('#').unwrap_or(rest);
    let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
    (!digits.is_empty()).then(|| format!("{} {digits}", concat!("iss", "ue")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_one(path: &str, text: &str, expected: &[(usize, &str)]) {
        let found = check(Path::new(path), text);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (finding, (line, part)) in found.iter().zip(expected) {
            assert_eq!(finding.line, *line);
            assert!(finding.message.contains(part), "{finding}");
        }
    }

    #[test]
    fn rust_begins_with_what_it_is() {
        check_one("a.rs", "//! A thing.\nfn f() {}\n", &[]);
        check_one("a.rs", "fn f() {}\n", &[(1, "does not begin")]);
        check_one("a.rs", "", &[(1, "does not begin")]);
        check_one("a.py", "print()\n", &[]);
    }

    #[test]
    fn a_long_file_holds_two_things() {
        let long = format!("//! Long.\n{}", "\n".repeat(MAX_LINES));
        check_one("a.rs", &long, &[(MAX_LINES, "second thing")]);
        check_one("Cargo.lock", &long, &[]);
        check_one("crates/wire/src/gen/a.rs", &long, &[]);
        check_one("tests/snapshots/a.snap", &long, &[]);
    }

    #[test]
    fn work_is_not_put_off() {
        let line = format!("# {} later", PUT_OFF[0]);
        check_one("a.py", &line, &[(1, "do it")]);
        let template = format!("mktemp -d {0}{0}", PUT_OFF[2]);
        check_one("a.sh", &template, &[]);
    }

    #[test]
    fn only_places_that_a_reader_can_reach() {
        check_one(
            "a.md",
            &format!("see {}/x.md", OUTSIDE[0]),
            &[(1, "outside")],
        );
        check_one(
            "a.md",
            &format!("see {}{}", concat!("Iss", "ue #"), 3),
            &[(1, "outside")],
        );
        check_one("a.md", "hyperium/h2#633, or an issue of ours", &[]);
    }
}
