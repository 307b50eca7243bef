//! One gateway and one set of credentials out of flags, environment, contexts and defaults.

use std::path::Path;

use tidegate_client::{Client, Config, ConfigError};
use tidegate_transport::{Endpoint, EndpointError, TlsError};

use super::DEFAULT_LISTEN;
use super::file::{Context, Contexts};
use crate::args::Global;
use crate::failure::Failure;
use crate::output::remark;

/// Who said something. A later one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Nobody,
    File,
    Environment,
    Flag,
}

/// The variables that matter, read once.
#[derive(Debug, Default)]
struct Environment {
    gateway: Option<String>,
    context: Option<String>,
    token: Option<String>,
}

#[cfg(all(unix, feature = "daemons"))]
/// The variable that leads other commands past the current context, if one is set.
pub(crate) fn overriding_variable() -> Option<&'static str> {
    let Environment {
        gateway, context, ..
    } = Environment::read();
    let gateway = gateway.map(|_| "TIDEGATE_GATEWAY");
    gateway.or_else(|| context.map(|_| "TIDEGATE_CONTEXT"))
}

impl Environment {
    /// Reads them. One that is empty counts as unset.
    fn read() -> Self {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            gateway: variable("TIDEGATE_GATEWAY"),
            context: variable("TIDEGATE_CONTEXT"),
            token: variable("TIDEGATE_TOKEN"),
        }
    }
}

/// Reads a gateway's URL of the command line.
///
/// # Errors
///
/// What it must be.
pub(crate) fn gateway_url(text: &str) -> Result<String, EndpointError> {
    Endpoint::parse(text).map(|_| text.to_owned())
}

/// A client of the gateway that is meant.
///
/// # Errors
///
/// When something that was said cannot be used.
pub(crate) fn client(global: &Global) -> Result<Client, Failure> {
    client_of(&config(global)?)
}

/// The gateway that is meant, and the credentials for it.
///
/// # Errors
///
/// When something that was said cannot be used.
pub(crate) fn config(global: &Global) -> Result<Config, Failure> {
    let config = pick(global, &Environment::read(), Contexts::load)?;
    if let Some(url) = plaintext(&config.gateways).filter(|_| config.token.is_some()) {
        remark(format_args!(
            "note: no token is sent to {url}, which is reached without TLS"
        ));
    }
    tracing::debug!(gateways = ?config.gateways, "the gateway is known");
    Ok(config)
}

/// A client, which shares its connections with its clones only.
///
/// # Errors
///
/// When a URL, a certificate or a proxy cannot be used.
pub(crate) fn client_of(config: &Config) -> Result<Client, Failure> {
    Client::new(config).map_err(|error| {
        let remedy = match &error {
            ConfigError::NoGateway => "Say it with --gateway URL.",
            ConfigError::Tls(TlsError::HalfIdentity { .. } | TlsError::Ignored { .. }) => {
                "They are set by --ca, --cert and --key, or by the context."
            }
            _ => "",
        };
        Failure::settings(error, remedy)
    })
}

/// Puts together what was said. The file is read only if it can matter.
///
/// # Errors
///
/// When a context or a file that is named does not exist.
fn pick(
    global: &Global,
    environment: &Environment,
    contexts: impl FnOnce() -> Result<Contexts, Failure>,
) -> Result<Config, Failure> {
    let (said, gateways) = gateways(global, environment);
    let (named, context) = context(global, environment, said, contexts)?;
    let gateways = match (gateways.is_empty(), context.gateway.is_empty()) {
        (false, true) => gateways,
        (false, false) if named <= said => gateways,
        (_, false) => context.gateway.clone(),
        (true, true) => vec![format!("http://{DEFAULT_LISTEN}")],
    };
    let (cert, key) = match (&global.cert, &global.key) {
        (None, None) => (context.cert.clone(), context.key.clone()),
        (cert, key) => (cert.clone(), key.clone()),
    };
    Ok(Config {
        gateways,
        ca: global.ca.clone().or_else(|| context.ca.clone()),
        cert,
        key,
        token: token(global, environment, &context)?,
    })
}

/// The gateways that the command line names, or else the environment.
pub(crate) fn named_gateways(global: &Global) -> Vec<String> {
    gateways(global, &Environment::read()).1
}

/// The first gateway that is reached without TLS.
fn plaintext(gateways: &[String]) -> Option<&String> {
    gateways.iter().find(|url| url.starts_with("http://"))
}

fn gateways(global: &Global, environment: &Environment) -> (Rank, Vec<String>) {
    if !global.gateway.is_empty() {
        return (Rank::Flag, global.gateway.clone());
    }
    match &environment.gateway {
        Some(list) => {
            let urls = list.split(',').map(|url| url.trim().to_owned());
            (Rank::Environment, urls.collect())
        }
        None => (Rank::Nobody, Vec::new()),
    }
}

/// The context that counts beside a gateway said by `said`, and who named it; an empty one if none
/// does.
fn context(
    global: &Global,
    environment: &Environment,
    said: Rank,
    contexts: impl FnOnce() -> Result<Contexts, Failure>,
) -> Result<(Rank, Context), Failure> {
    let (rank, named) = match (&global.context, &environment.context) {
        (Some(name), _) => (Rank::Flag, Some(name.clone())),
        (None, Some(name)) => (Rank::Environment, Some(name.clone())),
        (None, None) => (Rank::File, None),
    };
    if rank < said {
        return Ok((rank, Context::default()));
    }
    let mut contexts = contexts()?;
    let Some(name) = named.or_else(|| contexts.current.take()) else {
        return Ok((rank, Context::default()));
    };
    let context = contexts.all.remove(&name);
    context.map(|context| (rank, context)).ok_or_else(|| {
        let known: Vec<_> = contexts.all.into_keys().collect();
        let remedy = match known.as_slice() {
            [] => "`tidegate context add` makes one.".to_owned(),
            some => format!("There are: {}.", some.join(", ")),
        };
        Failure::settings(format!("there is no context {name:?}"), remedy)
    })
}

fn token(
    global: &Global,
    environment: &Environment,
    context: &Context,
) -> Result<Option<String>, Failure> {
    match (&global.token_file, &environment.token, &context.token_file) {
        (Some(path), _, _) | (None, None, Some(path)) => read_token(path).map(Some),
        (None, Some(token), _) => Ok(Some(token.clone())),
        (None, None, None) => Ok(None),
    }
}

fn read_token(path: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path);
    let text =
        text.map_err(|error| Failure::io(format!("read the token {}", path.display()), error))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A context `work` that is current, and one `home`.
    fn contexts() -> Contexts {
        let context = |name: &str| Context {
            gateway: vec![format!("https://{name}:1")],
            ca: Some(format!("{name}.crt").into()),
            ..Context::default()
        };
        let all = ["work", "home"].map(|name| (name.to_owned(), context(name)));
        Contexts {
            current: Some("work".to_owned()),
            all: BTreeMap::from(all),
        }
    }

    fn flags(gateway: Option<&str>, context: Option<&str>) -> Global {
        Global {
            gateway: gateway.into_iter().map(ToOwned::to_owned).collect(),
            context: context.map(ToOwned::to_owned),
            ..Global::default()
        }
    }

    fn variables(gateway: Option<&str>, context: Option<&str>) -> Environment {
        Environment {
            gateway: gateway.map(ToOwned::to_owned),
            context: context.map(ToOwned::to_owned),
            token: None,
        }
    }

    #[track_caller]
    fn check(global: &Global, environment: &Environment, url: &str, ca: Option<&str>) {
        let config = pick(global, environment, || Ok(contexts())).unwrap();
        assert_eq!(config.gateways, [url]);
        assert_eq!(config.ca.as_deref(), ca.map(Path::new));
    }

    #[test]
    fn flag_before_environment_before_file_before_default() {
        let none = variables(None, None);
        let both = variables(Some("http://env:1"), Some("home"));
        check(
            &flags(None, None),
            &none,
            "https://work:1",
            Some("work.crt"),
        );
        check(
            &flags(None, Some("home")),
            &none,
            "https://home:1",
            Some("home.crt"),
        );
        check(
            &flags(None, None),
            &variables(None, Some("home")),
            "https://home:1",
            Some("home.crt"),
        );
        check(
            &flags(None, Some("work")),
            &both,
            "https://work:1",
            Some("work.crt"),
        );
        check(&flags(None, None), &both, "http://env:1", Some("home.crt"));
        let config = pick(&flags(None, None), &none, || Ok(Contexts::default())).unwrap();
        assert_eq!(config.gateways, ["http://127.0.0.1:7070"]);
    }

    #[test]
    fn credentials_never_go_to_another_gateway_than_they_are_for() {
        let none = variables(None, None);
        check(&flags(Some("http://x:1"), None), &none, "http://x:1", None);
        check(
            &flags(None, None),
            &variables(Some("http://x:1"), None),
            "http://x:1",
            None,
        );
        let environment = variables(None, Some("home"));
        check(
            &flags(Some("http://x:1"), None),
            &environment,
            "http://x:1",
            None,
        );
        // Who names both on purpose gets both.
        let global = flags(Some("http://x:1"), Some("home"));
        check(&global, &none, "http://x:1", Some("home.crt"));
    }

    #[test]
    fn a_file_that_cannot_matter_is_not_read() {
        let global = flags(Some("http://x:1"), None);
        let never = || -> Result<Contexts, Failure> { panic!("read") };
        assert!(pick(&global, &Environment::default(), never).is_ok());
    }

    #[test]
    fn a_context_that_is_not_there_is_named_with_those_that_are() {
        let global = flags(None, Some("wrok"));
        let failure = pick(&global, &Environment::default(), || Ok(contexts())).unwrap_err();
        let sentence = failure.sentence().unwrap();
        assert_eq!(
            sentence,
            "there is no context \"wrok\". There are: home, work."
        );
    }

    #[test]
    fn files_that_would_be_ignored_and_halves_of_a_pair_come_with_a_remedy() {
        let context = |cert: Option<&str>, key: Option<&str>| Context {
            gateway: vec!["http://work:1".to_owned()],
            cert: cert.map(Into::into),
            key: key.map(Into::into),
            ..Context::default()
        };
        for (context, words) in [
            (
                context(Some("c"), Some("k")),
                ["`cert`", "http://work:1", "https://"],
            ),
            (context(Some("c"), None), ["`cert`", "`key`", "--key"]),
            (context(None, Some("k")), ["`key`", "`cert`", "--cert"]),
        ] {
            let contexts = Contexts {
                current: Some("work".to_owned()),
                all: BTreeMap::from([("work".to_owned(), context)]),
            };
            let config = pick(&Global::default(), &Environment::default(), || Ok(contexts));
            let sentence = client_of(&config.unwrap()).unwrap_err().sentence().unwrap();
            for word in words {
                assert!(sentence.contains(word), "{word} in {sentence}");
            }
        }
    }

    #[test]
    fn a_gateway_that_gets_no_token_is_found() {
        let urls = ["https://a:1", "http://b:1"].map(str::to_owned);
        assert_eq!(plaintext(&urls), Some(&urls[1]));
        assert_eq!(plaintext(&urls[..1]), None);
    }

    #[test]
    fn several_gateways_of_the_environment_are_separated_by_commas() {
        let environment = variables(Some("http://a:1, http://b:2"), None);
        let config = pick(&Global::default(), &environment, || Ok(contexts())).unwrap();
        assert_eq!(config.gateways, ["http://a:1", "http://b:2"]);
    }
}
