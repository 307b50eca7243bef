//! What the roster's places are: endpoints, by name.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tidegate_transport::Endpoint;
use tokio::time::timeout;

use crate::session::Gateway;

/// How long a name may take to be looked up: what is not known by then is not learnt.
const LOOKUP: Duration = Duration::from_secs(5);
/// Addresses that are kept of one name.
const MAX_ADDRESSES: usize = 32;

/// Makes the endpoint of a URL that a gateway has told, as the configured ones are made. None for one
/// that may not be dialled.
#[derive(Clone)]
pub(crate) struct Ready(Arc<Make>);

type Make = dyn Fn(&str) -> Option<Endpoint> + Send + Sync;

impl Ready {
    pub(crate) fn new(ready: impl Fn(&str) -> Option<Endpoint> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ready))
    }

    pub(crate) fn endpoint(&self, url: &str) -> Option<Endpoint> {
        let endpoint = (self.0)(url);
        if endpoint.is_none() {
            tracing::debug!(url, "an address that a gateway told is not used");
        }
        endpoint
    }
}

impl std::fmt::Debug for Ready {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ready").finish_non_exhaustive()
    }
}

/// Every place that is known.
pub(crate) struct Places {
    configured: Vec<Gateway>,
    known: BTreeMap<String, Gateway>,
    ready: Ready,
}

impl Places {
    /// The configured gateways; `ready` turns what is learnt into an endpoint, if it may be dialled.
    pub(crate) fn new(configured: Vec<Gateway>, ready: Ready) -> Self {
        let named = |gateway: &Gateway| (gateway.url.clone(), gateway.clone());
        Self {
            known: configured.iter().map(named).collect(),
            configured,
            ready,
        }
    }

    /// What is made of what gateways tell.
    pub(super) fn ready(&self) -> Ready {
        self.ready.clone()
    }

    /// The names of those that are configured, in order.
    pub(super) fn configured(&self) -> Vec<String> {
        let urls = self.configured.iter().map(|gateway| gateway.url.clone());
        urls.collect()
    }

    /// What the place of this name is.
    pub(super) fn gateway(&self, place: &str) -> Option<Gateway> {
        self.known.get(place).cloned()
    }

    /// Takes URLs that a gateway has told. One that may not be dialled is left out: plaintext where the
    /// configured ones are encrypted, or what is no URL.
    pub(super) fn admit(&mut self, urls: Vec<String>) -> Vec<String> {
        let mut names = Vec::new();
        for url in urls {
            let told = self.ready.endpoint(&url).map(Gateway::new);
            names.extend(self.add(told.into_iter().collect()));
        }
        names
    }

    /// Takes what was looked up, and returns their names.
    pub(super) fn add(&mut self, gateways: Vec<Gateway>) -> Vec<String> {
        let mut names = Vec::new();
        for gateway in gateways {
            names.push(gateway.url.clone());
            self.known.entry(gateway.url.clone()).or_insert(gateway);
        }
        names
    }

    /// Looks up the names of the configured gateways: each address of one that stands for several is
    /// a place of its own.
    pub(super) fn lookup(&self) -> impl Future<Output = Vec<Gateway>> + Send + 'static {
        let configured = self.configured.clone();
        async move {
            let each = configured.iter().map(|gateway| async move {
                match timeout(LOOKUP, gateway.endpoint.addresses()).await {
                    Ok(Ok(found)) => pinned(gateway, found),
                    // Dialling says why, if it does not work there either.
                    Ok(Err(_)) | Err(_) => Vec::new(),
                }
            });
            join_all(each).await.into_iter().flatten().collect()
        }
    }
}

/// Both loopbacks are one machine, and one address is what the name says anyway.
fn pinned(gateway: &Gateway, found: Vec<SocketAddr>) -> Vec<Gateway> {
    let found: BTreeSet<_> = found.into_iter().collect();
    if found.len() < 2 || found.iter().all(|address| address.ip().is_loopback()) {
        return Vec::new();
    }
    let at = |address| gateway.at(address);
    found.into_iter().take(MAX_ADDRESSES).map(at).collect()
}

impl std::fmt::Debug for Places {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.known.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gateway() -> Gateway {
        Gateway::new(Endpoint::parse("https://gw.example:7070").unwrap())
    }

    fn names(found: &[&str]) -> Vec<String> {
        let found = found.iter().map(|address| address.parse().unwrap());
        let pinned = pinned(&gateway(), found.collect());
        pinned.into_iter().map(|gateway| gateway.url).collect()
    }

    #[test]
    fn a_name_that_stands_for_several_machines_is_several_places() {
        assert_eq!(names(&["10.0.0.1:7070"]), Vec::<String>::new());
        assert_eq!(
            names(&["127.0.0.1:7070", "[::1]:7070"]),
            Vec::<String>::new()
        );
        assert_eq!(
            names(&["10.0.0.2:7070", "10.0.0.1:7070", "10.0.0.2:7070"]),
            [
                "https://gw.example:7070 at 10.0.0.1",
                "https://gw.example:7070 at 10.0.0.2"
            ]
        );
    }

    #[test]
    fn what_is_told_is_used_if_it_may_be_dialled() {
        let only_tls = |url: &str| Endpoint::parse(url).ok().filter(Endpoint::is_tls);
        let mut places = Places::new(vec![gateway()], Ready::new(only_tls));
        let told = ["http://a:1", "https://b:1", "nonsense"].map(String::from);
        assert_eq!(places.admit(told.into()), ["https://b:1"]);
        assert!(places.gateway("https://b:1").is_some());
        assert!(places.gateway("http://a:1").is_none());
        assert_eq!(places.configured(), ["https://gw.example:7070"]);
    }
}
