//! Forms, precedence, provenance, and what is refused with which words.

use std::fmt;
use std::time::Duration;

use tidegate_lifecycle::id::SandboxName;

use super::rule::{filled, positive};
use super::*;
use crate::Size;

crate::settings! {
    /// A table with one of each kind.
    struct Config {
        /// Has no default.
        names: Vec<SandboxName> where filled,
        /// Has a rule.
        patience: Duration = "10s" where positive,
        /// May be off.
        limit: Option<Duration> = "off" where positive,
        /// A switch,
        /// explained in two lines.
        dev: bool = "false",
        /// Is nobody's business.
        password: Password = "",
        /// A number.
        count: usize = "7",
    }
}

/// A value that is never shown.
#[derive(Clone, Debug, PartialEq)]
struct Password(String);

impl Value for Password {
    const KIND: &'static str = "TEXT";
    const SECRET: bool = true;

    fn read(text: &str) -> Result<Self, Remedy> {
        if text.contains(' ') {
            return Err(Remedy::new("leave blanks out"));
        }
        Ok(Self(text.to_owned()))
    }

    fn show(&self) -> String {
        quoted(if self.0.is_empty() { "" } else { "…" })
    }
}

const PROGRAM: Program = Program {
    name: "tidegate-test",
    about: "Is for tests",
    examples: "  tidegate-test --dev",
    keys: Config::KEYS,
};

fn said(args: &[&str], environment: &[(&str, &str)]) -> Result<Layers, ConfigError> {
    let args = [&["tidegate-test"], args].concat();
    let variable = |name: &str| {
        let found = environment.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let said = PROGRAM.listen(args.into_iter().map(Into::into), variable);
    said.map(|said| said.layers)
}

fn load(args: &[&str], environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Config::read(&said(args, environment)?)
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn with_file(text: &str) -> Result<Config, ConfigError> {
    let file = file(text);
    load(&["--config", file.path().to_str().unwrap()], &[])
}

fn check<T: Value + fmt::Debug + PartialEq>(text: &str, value: T, shown: &str) {
    assert_eq!(T::read(text), Ok(value), "{text}");
    assert_eq!(T::read(text).unwrap().show(), shown, "{text}");
}

#[test]
fn times_and_sizes_are_read_in_every_unit_and_shown_in_the_largest() {
    check("1500ms", Duration::from_millis(1500), "\"1500ms\"");
    check("2", Duration::from_secs(2), "\"2s\"");
    check("0.5s", Duration::from_millis(500), "\"500ms\"");
    check("120s", Duration::from_secs(120), "\"2m\"");
    check("168h", Duration::from_secs(604_800), "\"168h\"");
    check("off", None::<Duration>, "\"off\"");
    check("64KiB", Size(65_536), "\"64KiB\"");
    check("1g", Size(1 << 30), "\"1GiB\"");
    check("1000", Size(1000), "\"1000\"");
}

#[test]
fn what_has_no_such_form_is_refused_with_a_remedy() {
    for text in ["", "s", "-1s", "1 day", "inf"] {
        assert!(Duration::read(text).is_err(), "{text}");
    }
    for text in ["", "MiB", "-1", "1.5MiB", "99999999999GiB"] {
        assert!(Size::read(text).is_err(), "{text}");
    }
    for text in ["", ":80", "localhost", "::1:80", "localhost:65536", "[::1]"] {
        assert!(Address::read(text).is_err(), "{text}");
    }
    assert!(Address::read("[::1]:0").is_ok() && Address::read("localhost:0").is_ok());
    assert!(Vec::<SandboxName>::read("a, b,,-c").is_err());
    assert!(Threads::read("0").is_err() && TimeScale::read("0").is_err());
}

#[test]
fn a_flag_wins_over_the_environment_that_over_the_file_that_over_the_default() {
    let file = file("names = [\"a\"]\npatience = 2\nlimit = \"3s\"");
    let path = file.path().to_str().unwrap();
    let environment = [
        ("TIDEGATE_CONFIG", path),
        ("TIDEGATE_NAMES", "b"),
        ("TIDEGATE_PATIENCE", "5s"),
        ("TIDEGATE_COUNT", ""),
    ];
    let layers = said(&["--names", "c"], &environment).unwrap();
    let config = Config::read(&layers).unwrap();
    assert_eq!(config.names, [SandboxName::parse("c").unwrap()]);
    assert_eq!(config.patience, Duration::from_secs(5));
    assert_eq!(config.limit, Some(Duration::from_secs(3)));
    assert_eq!(config.count, 7);
    let page = PROGRAM.page(&layers).unwrap();
    let line = |key: &str| page.lines().find(|line| line.starts_with(key)).unwrap();
    assert!(line("names").ends_with("# command line"));
    assert!(line("patience").ends_with("# TIDEGATE_PATIENCE"));
    assert!(line("limit").ends_with(&format!("# {path}")));
    assert!(line("count").ends_with("# default"));
}

#[test]
fn the_page_is_a_configuration_file() {
    let layers = Layers::said([("names", "a,b")]);
    let page = PROGRAM.page(&layers).unwrap();
    assert_eq!(page.lines().count(), Config::KEYS.len());
    assert!(page.contains("# program"), "{page}");
    let again = with_file(&page).unwrap();
    let before = Config::read(&layers).unwrap();
    assert_eq!(format!("{before:?}"), format!("{again:?}"));
}

#[test]
fn what_has_to_be_set_and_is_not_is_shown_and_refused() {
    let page = PROGRAM.page(&Layers::default()).unwrap();
    assert!(page.starts_with("# names = NAME "), "{page}");
    let error = load(&[], &[]).unwrap_err().to_string();
    assert_eq!(
        error,
        "`names` is not set: use --names NAME, TIDEGATE_NAMES or the configuration file"
    );
}

#[test]
fn what_is_wrong_is_named_with_key_value_and_remedy() {
    let unknown = with_file("patienc = \"1s\"").unwrap_err().to_string();
    for word in ["`patienc`", "tidegate-test --print-config"] {
        assert!(unknown.contains(word), "{unknown}");
    }
    let value = load(&["--patience", "soon"], &[]).unwrap_err();
    assert_eq!(
        load(&["--names", "a", "--patience", "0"], &[])
            .unwrap_err()
            .to_string(),
        "`patience` is set to \"0\" (command line): it must be more than nothing"
    );
    assert!(matches!(value, ConfigError::Missing { .. }), "{value}");
    let value = load(&["--names", "a", "--patience", "soon"], &[]);
    let value = value.unwrap_err().to_string();
    for word in ["`patience`", "\"soon\"", "command line", "1500ms"] {
        assert!(value.contains(word), "{value}");
    }
    let empty = load(&["--names", ","], &[]).unwrap_err().to_string();
    assert!(empty.contains("`names`"), "{empty}");
    let missing = load(&["--config", "/nonexistent/a.toml"], &[]).unwrap_err();
    assert!(missing.to_string().contains("/nonexistent/a.toml"));
}

#[test]
fn the_rules_hold_for_what_a_program_puts_together_too() {
    let mut config = load(&["--names", "a"], &[]).unwrap();
    config.check().unwrap();
    config.limit = Some(Duration::ZERO);
    let error = config.check().unwrap_err().to_string();
    assert_eq!(
        error,
        "`limit` is set to \"0s\": it must be more than nothing"
    );
}

#[test]
fn lists_and_switches_are_read_from_every_layer() {
    let config = load(&["--names", "a", "--names", "b,c", "--dev"], &[]).unwrap();
    assert_eq!((config.names.len(), config.dev), (3, true));
    let config = with_file("names = [\"x\", \"y\"]\ndev = true\ncount = 8").unwrap();
    assert_eq!((config.names.len(), config.dev, config.count), (2, true, 8));
    let config = load(&["--names", "a", "--dev=false"], &[("TIDEGATE_DEV", "yes")]);
    assert!(!config.unwrap().dev);
}

#[test]
fn a_secret_is_neither_printed_nor_in_an_error() {
    let layers = said(&["--password", "hunter2"], &[]).unwrap();
    let page = PROGRAM.page(&layers).unwrap();
    assert!(page.contains("password = \"…\""), "{page}");
    let wrong = load(&["--names", "a", "--password", "hunter2 "], &[]);
    let wrong = wrong.unwrap_err().to_string();
    assert_eq!(
        wrong,
        "`password` cannot be used (command line): leave blanks out"
    );
    let broken = with_file("names = [\"a\"]\npassword = \"hunter2\ncount = 1");
    let broken = broken.unwrap_err();
    assert!(broken.to_string().contains("line 2"), "{broken}");
    for shown in [
        page,
        wrong,
        broken.to_string(),
        format!("{broken:?} {layers:?}"),
    ] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn the_command_line_is_well_formed_and_explains_each_key() {
    PROGRAM.command().debug_assert();
    let help = PROGRAM.command().render_help().to_string();
    for line in [
        "--names <NAME,...>",
        "[default: 10s]",
        "A switch, explained in two lines.",
        "  tidegate-test --dev",
    ] {
        assert!(help.contains(line), "{line} in\n{help}");
    }
}
