//! Defaults, what goes together, and what is refused with which words.

use super::*;

#[test]
fn every_default_is_valid_and_the_command_line_well_formed() {
    Config::default().check().unwrap();
    PROGRAM.command().debug_assert();
    let page = PROGRAM.page(&Layers::default()).unwrap();
    assert_eq!(page.lines().count(), Config::KEYS.len());
    assert!(page.contains("session_wait = \"15s\""));
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
