//! What is written for operators is true of the program.

use std::fmt::Write as _;
use std::process::Command;

use tidegate_testkit::probe::get;

use crate::common::{Running, config};

const OPERATIONS: &str = include_str!("../../../../architecture/operations.md");
const EXAMPLE: &str = include_str!("../../../../deploy/gateway.toml");

fn print_config(file: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.toml");
    std::fs::write(&path, file).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate-gateway"))
        .args(["--print-config", "--config"])
        .arg(&path)
        .env_clear()
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

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

#[test]
fn the_example_configuration_is_accepted_and_each_of_its_keys_counts() {
    print_config(EXAMPLE);
    let full = in_full(EXAMPLE);
    let page = print_config(&full);
    for line in full.lines().filter(|line| is_setting(line)) {
        let shown = page.lines().find(|shown| shown.starts_with(line));
        assert!(
            shown.is_some_and(|shown| shown.contains("gateway.toml")),
            "{line} in\n{page}"
        );
    }
}

#[test]
fn every_key_is_explained() {
    let table = OPERATIONS.split("### Gateway").nth(1).unwrap();
    let table = table.split("### Supervisor").next().unwrap();
    for line in print_config("").lines() {
        let key = line.split(" = ").next().unwrap();
        assert!(table.contains(&format!("`{key}`")), "{key} is missing");
    }
}

#[tokio::test]
async fn every_metric_is_explained() {
    let gateway = Running::start(config()).await;
    let url = format!("http://{}/metrics", gateway.admin);
    let page = tokio::task::spawn_blocking(move || get(&url));
    let page = page.await.unwrap().unwrap();
    let families = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    for family in families {
        let mut words = family.split(' ');
        let name = words.next().unwrap();
        let suffix = if words.next() == Some("counter") {
            "_total"
        } else {
            ""
        };
        let known = name.starts_with("tidegate_process_")
            || [format!("`{name}{suffix}`"), format!("`{name}{suffix}{{")]
                .iter()
                .any(|written| OPERATIONS.contains(written));
        assert!(known, "{name}{suffix} is missing");
    }
    gateway.stop().await;
}
