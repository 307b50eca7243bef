//! Flags, environment and file, put together.

use clap::{ArgMatches, CommandFactory, FromArgMatches};
use tidegate_daemon::picks::Source;

use super::*;

type Loaded = (Config, Vec<(&'static str, Source)>);

fn load(arguments: &[&str], file: &str) -> Result<Loaded, ConfigError> {
    let file = file_with(file);
    let path = file.path().to_string_lossy();
    let program = ["tidegate-supervisor", "--config", &path];
    let matches = Cli::command().get_matches_from(program.iter().chain(arguments));
    let mut settings = Settings::new(&matches);
    let config = Config::load(given(&matches), &mut settings)?;
    let sources = settings.effective().iter().map(|one| (one.key, one.source));
    Ok((config, sources.collect()))
}

fn file_with(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("room in it");
    file
}

fn given(matches: &ArgMatches) -> Cli {
    Cli::from_arg_matches(matches).expect("its own matches")
}

const FILE: &str = r#"
    gateway = ["https://a:1", "https://b:2"]
    sandbox = "build-17"
    allow_target = ["10.0.0.0/8:5432"]
    stop_grace = "3s"
    redial_max = 20
    max_buffered = "64MiB"
"#;

#[test]
fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
    let (config, sources) = load(&["--stop-grace", "1500ms"], FILE).unwrap();
    assert_eq!(config.gateways, ["https://a:1", "https://b:2"]);
    assert_eq!(config.stop_grace, Duration::from_millis(1500));
    assert_eq!(config.redial.max, Duration::from_secs(20));
    assert_eq!(config.dial_timeout, Duration::from_secs(10));
    assert_eq!(config.max_buffered, 64 << 20);
    assert!(config.allow.permits("10.1.1.1:5432".parse().unwrap()));
    for (key, source) in [
        ("stop_grace", Source::Flag),
        ("redial_max", Source::File),
        ("dial_timeout", Source::Default),
    ] {
        assert!(sources.contains(&(key, source)), "{key} {sources:?}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    for (arguments, file, named) in [
        (&[][..], "gatway = []", "gatway"),
        (&[], "sandbox = \"a\"", "gateway"),
        (&["--gateway", "http://a:1"], "", "sandbox"),
        (
            &["--gateway", "http://a:1", "--sandbox", "a b"],
            "",
            "sandbox",
        ),
        (&["--stream-window", "1k"], FILE, "stream_window"),
        (&["--time-scale", "0"], FILE, "time_scale"),
        (&["--redial-min", "0"], FILE, "redial_min"),
        (&["--proxy", "socks5://x"], FILE, "proxy"),
        (&[], "allow_target = [\"x\"]", "allow_target"),
    ] {
        let error = load(arguments, file).unwrap_err().to_string();
        assert!(error.contains(named), "{named} in {error}");
    }
}

#[test]
fn every_time_is_divided_by_the_scale() {
    let (config, _) = load(&["--time-scale", "10"], FILE).unwrap();
    assert_eq!(config.scaled(config.dial_timeout), Duration::from_secs(1));
    assert_eq!(
        config.http2().ping.unwrap().interval,
        Duration::from_secs(2)
    );
}

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

#[test]
fn the_example_in_deploy_is_a_configuration() {
    let (config, _) = load(&[], include_str!("../../../../deploy/supervisor.toml")).unwrap();
    assert_eq!(config.sandbox.as_str(), "build-17");
}
