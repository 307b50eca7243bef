//! Which of our crates may use which.
//!
//! ```text
//! 4   gateway   supervisor   cli      composition, configuration, main.rs
//! 3   client   daemon   peer-relay    what a program links to open streams; what daemons share;
//!                                     one hop to another gateway
//! 2   bridge                          tokio: bytes <-> frames
//! 1   wire   transport   directory    protobuf; HTTP/2; who owns what
//! 0   lifecycle                       pure: states, causes, deadlines
//! ```
//!
//! A crate uses floors below its own. Beside the house stand the workshops (`testkit`, `e2e`, `bench`,
//! `xtask`): they use what they like, and nothing in the house uses them but tests, `testkit` alone.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::Finding;

const FLOORS: [&[&str]; 5] = [
    &["lifecycle"],
    &["wire", "transport", "directory"],
    &["bridge"],
    &["client", "daemon", "peer-relay"],
    &["gateway", "supervisor", "cli"],
];

const WORKSHOPS: [&str; 4] = ["testkit", "e2e", "bench", "xtask"];

/// The one arrow within a floor, for `dev` and `demo`; it must be optional, so that the command can
/// be built without the daemons.
const WITHIN_A_FLOOR: [(&str, &str); 2] = [("cli", "gateway"), ("cli", "supervisor")];

/// All that the pure core may use of other people's.
const CORE_USES: [&str; 2] = ["bytes", "thiserror"];

/// Checks the manifests of the workspace: path and text of each.
///
/// # Errors
/// If a manifest is not TOML.
pub(super) fn check(manifests: &[(PathBuf, String)]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (path, text) in manifests {
        let manifest: Table = text
            .parse()
            .with_context(|| format!("{} is not TOML", path.display()))?;
        let Some(name) = package_name(&manifest) else {
            continue;
        };
        let package = Package { path, name, text };
        for dependency in dependencies(&manifest) {
            findings.extend(package.verdict(&dependency));
        }
        if place(name).is_none() {
            findings.push(package.finding(name, "this crate has no floor: give it one in tidy"));
        }
    }
    Ok(findings)
}

fn package_name(manifest: &Table) -> Option<&str> {
    ours(manifest.get("package")?.get("name")?.as_str()?)
}

/// The crate's name without the family's, if it is of the family.
fn ours(name: &str) -> Option<&str> {
    name.strip_prefix("tidegate-")
}

/// Where a crate of ours stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Floor(usize),
    Workshop,
}

fn place(name: &str) -> Option<Place> {
    let floor = FLOORS
        .iter()
        .position(|crates| crates.contains(&name))
        .map(Place::Floor);
    floor.or_else(|| WORKSHOPS.contains(&name).then_some(Place::Workshop))
}

struct Dependency<'a> {
    name: &'a str,
    only_for_tests: bool,
    optional: bool,
}

fn dependencies(manifest: &Table) -> Vec<Dependency<'_>> {
    let platforms = manifest.get("target").and_then(Value::as_table);
    let platforms = platforms
        .into_iter()
        .flat_map(Table::values)
        .filter_map(Value::as_table);
    let mut found = Vec::new();
    for table in std::iter::once(manifest).chain(platforms) {
        for kind in ["dependencies", "build-dependencies", "dev-dependencies"] {
            let entries = table.get(kind).and_then(Value::as_table);
            found.extend(entries.into_iter().flatten().map(|(name, entry)| {
                Dependency {
                    name,
                    only_for_tests: kind == "dev-dependencies",
                    optional: entry
                        .get("optional")
                        .and_then(Value::as_bool)
                        .unwrap_or(false),
                }
            }));
        }
    }
    found
}

struct Package<'a> {
    path: &'a Path,
    name: &'a str,
    text: &'a str,
}

impl Package<'_> {
    fn verdict(&self, dependency: &Dependency<'_>) -> Option<Finding> {
        let Some(name) = ours(dependency.name) else {
            return self.foreign(dependency);
        };
        let (Some(own), Some(other)) = (place(self.name), place(name)) else {
            return None;
        };
        let allowed = match (own, other) {
            (Place::Workshop, _) => true,
            (Place::Floor(_), Place::Workshop) => dependency.only_for_tests && name == "testkit",
            (Place::Floor(own), Place::Floor(other)) => {
                other < own || self.is_within_a_floor(name, dependency)
            }
        };
        (!allowed).then(|| {
            let message = format!(
                "{} may not use {name}: a crate uses floors below it",
                self.name
            );
            self.finding(dependency.name, message)
        })
    }

    fn is_within_a_floor(&self, name: &str, dependency: &Dependency<'_>) -> bool {
        let excepted = WITHIN_A_FLOOR.contains(&(self.name, name));
        excepted && (dependency.optional || dependency.only_for_tests)
    }

    fn foreign(&self, dependency: &Dependency<'_>) -> Option<Finding> {
        let heavy = self.name == "lifecycle"
            && !dependency.only_for_tests
            && !CORE_USES.contains(&dependency.name);
        heavy.then(|| {
            let message = format!(
                "lifecycle is pure: it uses {} and no more",
                CORE_USES.join(", ")
            );
            self.finding(dependency.name, message)
        })
    }

    fn finding(&self, word: &str, message: impl Into<String>) -> Finding {
        let line = self
            .text
            .lines()
            .position(|line| line.contains(word))
            .map_or(1, |index| index + 1);
        Finding::new(self.path, line, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_one(name: &str, rest: &str, expected: &[&str]) {
        let text = format!("[package]\nname = \"tidegate-{name}\"\n{rest}\n");
        let findings = check(&[(PathBuf::from("Cargo.toml"), text)]).expect("TOML");
        assert_eq!(findings.len(), expected.len(), "{findings:?}");
        for (finding, part) in findings.iter().zip(expected) {
            assert!(finding.message.contains(part), "{finding}");
        }
    }

    #[test]
    fn arrows_point_down() {
        check_one(
            "bridge",
            "[dependencies]\ntidegate-wire.workspace = true",
            &[],
        );
        check_one(
            "wire",
            "[dependencies]\ntidegate-bridge.workspace = true",
            &["wire may not"],
        );
        check_one(
            "wire",
            "[dependencies]\ntidegate-transport = \"1\"",
            &["may not use transport"],
        );
        check_one(
            "gateway",
            "[target.'cfg(unix)'.dependencies]\ntidegate-supervisor.workspace = true",
            &["gateway may not use supervisor"],
        );
    }

    #[test]
    fn the_command_may_hold_the_daemons_if_it_can_be_built_without() {
        let optional = "[dependencies]\ntidegate-gateway = { workspace = true, optional = true }";
        check_one("cli", optional, &[]);
        check_one(
            "cli",
            "[dependencies]\ntidegate-gateway.workspace = true",
            &["cli may not"],
        );
    }

    #[test]
    fn workshops_are_for_tests() {
        check_one(
            "wire",
            "[dev-dependencies]\ntidegate-testkit.workspace = true",
            &[],
        );
        check_one(
            "wire",
            "[dependencies]\ntidegate-testkit.workspace = true",
            &["may not use"],
        );
        check_one(
            "wire",
            "[dev-dependencies]\ntidegate-bench.workspace = true",
            &["may not use"],
        );
        check_one(
            "bench",
            "[dependencies]\ntidegate-testkit.workspace = true",
            &[],
        );
    }

    #[test]
    fn the_core_is_pure() {
        check_one(
            "lifecycle",
            "[dependencies]\nbytes = \"1\"\ntokio = \"1\"",
            &["is pure"],
        );
        check_one("lifecycle", "[dev-dependencies]\nproptest = \"1\"", &[]);
    }

    #[test]
    fn a_new_crate_needs_a_floor() {
        check_one("cellar", "", &["no floor"]);
    }
}
