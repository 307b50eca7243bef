//! Precedence, provenance, and what is refused with which words.

use std::io::Write as _;

use super::*;

fn load(args: &[&str], environment: &[(&str, &str)]) -> Result<(Config, Layers), ConfigError> {
    let flags = command().get_matches_from([&["tidegate-gateway"], args].concat());
    let variable = |name: &str| {
        let found = environment.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let layers = Layers::gather(&flags, variable)?;
    Ok((Config::read(&layers)?, layers))
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn with_file(text: &str) -> ConfigError {
    let file = file(text);
    load(&["--config", file.path().to_str().unwrap()], &[]).unwrap_err()
}

#[test]
fn every_default_is_valid_and_survives_being_printed() {
    let config = Config::default();
    config.check().unwrap();
    let printed = config.print(&Layers::default());
    assert_eq!(printed.lines().count(), Config::KEYS.len());
    assert!(printed.contains("session_wait = \"15s\""));
    let printed = file(&printed);
    let (again, layers) = load(&["--config", printed.path().to_str().unwrap()], &[]).unwrap();
    assert_eq!(format!("{config:?}"), format!("{again:?}"));
    assert!(matches!(layers.source("session_wait"), Source::File(_)));
}

#[test]
fn a_flag_wins_over_the_environment_that_over_the_file_that_over_the_default() {
    let file = file("session_wait = \"1s\"\ninit_timeout = 2\nidle_timeout = \"3s\"");
    let path = file.path().to_str().unwrap();
    let environment = [
        ("TIDEGATE_CONFIG", path),
        ("TIDEGATE_SESSION_WAIT", "4s"),
        ("TIDEGATE_INIT_TIMEOUT", "5s"),
    ];
    let (config, layers) = load(&["--session-wait", "6s"], &environment).unwrap();
    assert_eq!(config.session_wait, Duration::from_secs(6));
    assert_eq!(config.init_timeout, Duration::from_secs(5));
    assert_eq!(config.idle_timeout, Some(Duration::from_secs(3)));
    assert_eq!(config.heartbeat_interval, Duration::from_secs(15));
    let printed = config.print(&layers);
    let line = |key: &str| printed.lines().find(|line| line.starts_with(key)).unwrap();
    assert!(line("session_wait").ends_with("# command line"));
    assert!(line("init_timeout").ends_with("# TIDEGATE_INIT_TIMEOUT"));
    assert!(line("idle_timeout").ends_with(&format!("# {path}")));
    assert!(line("heartbeat_interval").ends_with("# default"));
}

#[test]
fn what_is_wrong_is_named_with_key_value_and_remedy() {
    let unknown = with_file("sesion_wait = \"1s\"").to_string();
    assert!(unknown.contains("`sesion_wait`"), "{unknown}");
    let value = with_file("session_wait = \"soon\"").to_string();
    for word in ["`session_wait`", "\"soon\"", "1500ms"] {
        assert!(value.contains(word), "{value}");
    }
    assert!(matches!(
        with_file("session_wait = "),
        ConfigError::Syntax { .. }
    ));
    let missing = load(&["--config", "/nonexistent/gateway.toml"], &[]).unwrap_err();
    assert!(missing.to_string().contains("/nonexistent/gateway.toml"));
}

#[test]
fn lists_and_switches_are_read_from_every_layer() {
    let (config, _) = load(
        &["--sandboxes", "a", "--sandboxes", "b,c", "--insecure-dev"],
        &[],
    )
    .unwrap();
    assert_eq!(config.sandboxes.len(), 3);
    assert!(config.insecure_dev);
    let file = file("sandboxes = [\"x\", \"y\"]\ninsecure_dev = true\nmax_streams = 7");
    let (config, _) = load(&["--config", file.path().to_str().unwrap()], &[]).unwrap();
    assert_eq!(
        (
            config.sandboxes.len(),
            config.insecure_dev,
            config.max_streams
        ),
        (2, true, 7)
    );
}

#[test]
fn a_gateway_that_asks_nobody_serves_this_machine_only() {
    let plain = Config::default();
    assert!(
        plain
            .protection()
            .unwrap_err()
            .to_string()
            .contains("--insecure-dev")
    );
    let dev = Config {
        insecure_dev: true,
        ..Config::default()
    };
    assert_eq!(dev.protection().unwrap(), Protection::Plaintext);
    assert!(dev.check_reach(([127, 0, 0, 1], 0).into()).is_ok());
    let reach = dev
        .check_reach(([10, 0, 0, 1], 7070).into())
        .unwrap_err()
        .to_string();
    assert!(
        reach.contains("10.0.0.1:7070") && reach.contains("client_ca"),
        "{reach}"
    );

    let half = Config {
        tls_cert: Some("c".into()),
        ..Config::default()
    };
    assert!(
        half.protection()
            .unwrap_err()
            .to_string()
            .contains("`tls_key`")
    );
    let unasked = Config {
        tls_key: Some("k".into()),
        ..half
    };
    assert!(
        unasked
            .protection()
            .unwrap_err()
            .to_string()
            .contains("`client_ca`")
    );
    let asked = Config {
        client_ca: Some("a".into()),
        ..unasked
    };
    assert!(matches!(
        asked.protection().unwrap(),
        Protection::Authenticated { .. }
    ));
    assert!(asked.check_reach(([0, 0, 0, 0], 7070).into()).is_ok());
}

#[test]
fn the_scale_divides_every_time_and_nonsense_is_refused() {
    let config = Config {
        time_scale: TimeScale(10.0),
        ..Config::default()
    };
    let times = config.times();
    assert_eq!(times.session_wait, Duration::from_millis(1500));
    assert_eq!(times.dial, Duration::from_secs(1));
    assert_eq!(times.grace, Duration::from_secs(6));
    let nonsense = Config {
        heartbeat_interval: Duration::ZERO,
        ..Config::default()
    };
    assert!(
        nonsense
            .check()
            .unwrap_err()
            .to_string()
            .contains("`heartbeat_interval`")
    );
    let window = Config {
        stream_window: Size(1),
        ..Config::default()
    };
    assert!(
        window
            .check()
            .unwrap_err()
            .to_string()
            .contains("`stream_window`")
    );
}
