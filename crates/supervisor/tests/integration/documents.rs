//! What is written for operators is true of the program.

use std::fmt::Write as _;
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tidegate-supervisor");
const OPERATIONS: &str = include_str!("../../../../architecture/operations.md");
const EXAMPLE: &str = include_str!("../../../../deploy/supervisor.toml");

/// The file with the keys that are commented out set, as `# key = value`.
fn in_full(file: &str) -> String {
    let mut full = String::new();
    for line in file.lines() {
        let set = line.strip_prefix("# ").filter(|line| is_setting(line));
        writeln!(full, "{}", set.unwrap_or(line)).unwrap();
    }
    full
}

fn is_setting(line: &str) -> bool {
    line.split_once(" = ")
        .is_some_and(|(key, _)| key.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
}

fn print_config(file: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("supervisor.toml");
    std::fs::write(&path, file).unwrap();
    let output = Command::new(PROGRAM)
        .args(["--print-config", "--config"])
        .arg(&path)
        .env_clear()
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_example_configuration_is_accepted_and_each_of_its_keys_counts() {
    print_config(EXAMPLE);
    let full = in_full(EXAMPLE);
    let page = print_config(&full);
    for line in full.lines().filter(|line| is_setting(line)) {
        let shown = page.lines().find(|shown| shown.starts_with(line));
        assert!(
            shown.is_some_and(|shown| shown.contains("supervisor.toml")),
            "{line} in\n{page}"
        );
    }
}

#[test]
fn every_key_is_explained() {
    let table = OPERATIONS.split("### Supervisor").nth(1).unwrap();
    let table = table.split("\n## ").next().unwrap();
    let page = print_config("");
    let lines = page.lines().map(|line| line.trim_start_matches("# "));
    let keys: Vec<_> = lines.filter_map(|line| line.split(" = ").next()).collect();
    assert!(keys.len() > 10, "{page}");
    for key in keys {
        assert!(table.contains(&format!("`{key}`")), "{key} is missing");
    }
}
