//! Defaults, what goes together, and what is refused with which words.

use tidegate_daemon::settings::Value as _;
use tidegate_lifecycle::limits::{DIAL_TIMEOUT, STOP_GRACE};

use super::*;
use crate::{StartError, Supervisor};

fn file_of(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn read(arguments: &[&str], file: &str) -> Result<Config, ConfigError> {
    let file = file_of(file);
    let config = file.path().to_string_lossy().into_owned();
    let program = ["tidegate-supervisor", "--config", &config];
    let arguments = program.iter().chain(arguments).map(Into::into);
    Config::read(&PROGRAM.listen(arguments, |_| None)?.layers)
}

/// What stands against a supervisor with these arguments.
fn refused(arguments: &[&str], file: &str) -> String {
    match read(arguments, file).map(Supervisor::new) {
        Err(error) => error.to_string(),
        Ok(started) => started.unwrap_err().to_string(),
    }
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
fn every_key_is_read_from_its_place() {
    let config = read(&["--stop-grace", "1500ms"], FILE).unwrap();
    assert_eq!(config.gateway.len(), 2);
    assert_eq!(config.stop_grace, Duration::from_millis(1500));
    assert_eq!(config.redial_max, Duration::from_secs(20));
    assert_eq!(config.max_buffered, Size::mib(64));
    assert_eq!(config.allow_target.len(), 1);
    assert_eq!(config.proxy, GatewayProxy::Environment);
}

#[test]
fn every_default_is_valid_and_the_command_line_well_formed() {
    let config = Config::new("http://a:1", SandboxName::parse("box").unwrap());
    config.check().unwrap();
    assert_eq!(config.redial().unwrap(), Bounds::default());
    assert_eq!(
        (config.dial_timeout, config.stop_grace),
        (DIAL_TIMEOUT, STOP_GRACE)
    );
    PROGRAM.command().debug_assert();
}

#[test]
fn what_is_wrong_is_named() {
    for (arguments, file, named) in [
        (&[][..], "gatway = []", "`gatway`"),
        (&[], "sandbox = \"a\"", "`gateway`"),
        (&["--gateway", "http://a:1"], "", "`sandbox`"),
        (
            &["--gateway", "http://a:1", "--sandbox", "a b"],
            "",
            "`sandbox`",
        ),
        (&["--gateway", "ftp://a:1"], FILE, "`ftp://a:1`"),
        (&["--homes", "0"], FILE, "from 1 to 8"),
        (&["--homes", "9"], FILE, "from 1 to 8"),
        (&["--stream-window", "1k"], FILE, "`stream_window`"),
        (&["--time-scale", "0"], FILE, "`time_scale`"),
        (&["--redial-min", "0"], FILE, "`redial_min`"),
        (&["--redial-min", "40"], FILE, "`redial_max`"),
        (&["--proxy", "socks5://x"], FILE, "`proxy`"),
        (&["--allow-target", "x"], FILE, "`allow_target`"),
    ] {
        let error = refused(arguments, file);
        assert!(error.contains(named), "{named} in {error}");
    }
}

#[test]
fn files_of_tls_that_would_be_ignored_are_refused() {
    let gateway = ["--gateway", "http://a:1", "--sandbox", "box"];
    for (files, first) in [
        (&["--ca", "/ca"][..], "`ca`"),
        (&["--cert", "/c", "--key", "/k"], "`cert`"),
    ] {
        let error = refused(&[&gateway, files].concat(), "");
        for word in [first, "http://a:1", "https://"] {
            assert!(error.contains(word), "{word} in {error}");
        }
    }
    // One of several gateways is enough: nobody knows which is dialled.
    let mixed = ["--gateway", "https://b:1", "--ca", "/ca"];
    let error = refused(&[&gateway[..], &mixed].concat(), "");
    assert!(error.contains("http://a:1"), "{error}");
}

#[test]
fn a_certificate_without_its_key_is_refused_and_the_other_way_round() {
    for (set, missing) in [("cert", "key"), ("key", "cert")] {
        for url in ["http://a:1", "https://a:1"] {
            let set_flag = format!("--{set}");
            let arguments = ["--gateway", url, "--sandbox", "box", &set_flag, "/f"];
            let error = refused(&arguments, "");
            let sentence = format!("`{set}` is set without `{missing}`");
            assert!(error.starts_with(&sentence), "{error}");
        }
    }
}

#[test]
fn a_token_is_not_shown_where_others_can_read_it() {
    let token = file_of("secret");
    let path = token.path().to_str().unwrap();
    let arguments = |url| ["--gateway", url, "--sandbox", "box", "--token-file", path];
    let error = refused(&arguments("http://a:1"), "");
    for word in ["`token_file`", "http://a:1", "https://", "--token-file"] {
        assert!(error.contains(word), "{word} in {error}");
    }
    // One of several gateways is enough: nobody knows which is dialled.
    let mixed = [&arguments("https://b:1")[..], &["--gateway", "http://a:1"]].concat();
    assert!(refused(&mixed, "").contains("http://a:1"));
    // The loopback of this machine is not on the way of anybody, unless a proxy is.
    let local = arguments("http://127.0.0.1:1");
    let proxied = [&local[..], &["--proxy", "http://proxy:3128"]].concat();
    assert!(refused(&proxied, "").contains("`token_file`"));
    let direct = [&local[..], &["--proxy", "off"]].concat();
    Supervisor::new(read(&direct, "").unwrap()).unwrap();
}

#[test]
fn a_password_of_a_proxy_or_a_url_is_not_shown() {
    let said = [
        ("gateway", "http://a:1"),
        ("proxy", "http://me:hunter2@proxy:3128"),
        ("sandbox", "box"),
    ];
    let layers = Layers::said(said);
    let page = PROGRAM.page(&layers).unwrap();
    let config = format!("{:?}", Config::read(&layers).unwrap());
    let url = refused(&["--gateway", "http://me:hunter2@a:1"], FILE);
    let proxy = refused(&["--proxy", "socks5://me:hunter2@a:1"], FILE);
    for shown in [page, config, url, proxy] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn a_supervisor_that_cannot_be_configured_says_so_by_type() {
    let mut config = Config::new("http://a:1", SandboxName::parse("box").unwrap());
    config.cert = Some("/c".into());
    let error = Supervisor::new(config).unwrap_err();
    assert!(matches!(error, StartError::Tls(_)), "{error}");
}

#[test]
fn every_time_is_divided_by_the_scale() {
    let config = read(&["--time-scale", "10"], FILE).unwrap();
    assert_eq!(config.scaled(config.dial_timeout), Duration::from_secs(1));
    assert_eq!(
        config.http2().ping.unwrap().interval,
        Duration::from_secs(2)
    );
}

#[test]
fn the_example_in_deploy_is_a_configuration() {
    let config = read(&[], include_str!("../../../../deploy/supervisor.toml")).unwrap();
    assert_eq!(config.sandbox.as_str(), "build-17");
}

#[test]
fn the_environment_of_commands_is_what_was_said() {
    let config = read(&["--base-environment", "A=1,B=x=y,NOT_SET_ANYWHERE"], FILE).unwrap();
    let set: Vec<_> = config
        .base_environment
        .iter()
        .filter_map(Variable::resolve)
        .collect();
    let expected = [("A", "1"), ("B", "x=y")].map(|(name, value)| (name.into(), value.into()));
    assert_eq!(set, expected);
    let page = config.base_environment[1].show();
    assert!(!page.contains("x=y"), "{page} may hold a secret");
    assert!(!format!("{:?}", config.base_environment).contains("x=y"));
    for bad in ["=1", "1A=x", "A-B"] {
        assert!(
            refused(&["--base-environment", bad], FILE).contains("NAME=VALUE"),
            "{bad}"
        );
    }
}
