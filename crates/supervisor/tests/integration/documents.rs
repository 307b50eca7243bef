//! What is written for operators is true of the program.

use std::fmt::Write as _;

use tidegate_testkit::process::Process;

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

#[tokio::test]
async fn the_example_configuration_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("supervisor.toml");
    for text in [EXAMPLE, &in_full(EXAMPLE)] {
        std::fs::write(&file, text).unwrap();
        let path = file.to_str().unwrap();
        // What the file says of this machine and its network is overridden, the rest counts.
        let nowhere = "http://127.0.0.1:1";
        let here = [
            "--gateway",
            nowhere,
            "--proxy",
            nowhere,
            "--admin",
            "127.0.0.1:0",
        ];
        let process = Process::run(PROGRAM, ["--config", path].iter().chain(&here)).unwrap();
        process.address_after("admin listening on").await;
    }
}

#[tokio::test]
async fn every_key_is_explained() {
    let table = OPERATIONS.split("### Supervisor").nth(1).unwrap();
    let table = table.split("\n## ").next().unwrap();
    let help = std::process::Command::new(PROGRAM)
        .arg("--help")
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let options = help
        .lines()
        .filter_map(|line| line.trim().strip_prefix("--"));
    let keys: Vec<_> = options
        .filter_map(|option| option.split_once(" <"))
        .map(|(name, _)| name.replace('-', "_"))
        .filter(|key| key != "config")
        .collect();
    assert!(keys.len() > 10, "{help}");
    for key in keys {
        assert!(table.contains(&format!("`{key}`")), "{key} is missing");
    }
}
