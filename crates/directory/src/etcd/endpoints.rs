//! Where an etcd is, as an operator writes it: `etcd://HOST:PORT[,HOST:PORT…]`.

use thiserror::Error;

/// The members of one etcd, and whether they speak TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    tls: bool,
    hosts: Vec<String>,
}

/// What is wrong with the URL of an etcd.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EndpointsError {
    /// It begins with something else.
    #[error("it begins with neither etcd:// nor etcds://")]
    Scheme,
    /// One of its members is not `HOST:PORT`.
    #[error("{0:?} is not HOST:PORT (an IPv6 address stands in brackets)")]
    Member(String),
    /// Something stands where only members may.
    #[error("{0:?} has no place in it: user and password are settings of their own")]
    Extra(String),
}

impl Endpoints {
    /// Reads a URL.
    ///
    /// # Errors
    ///
    /// [`EndpointsError`], which says what is wrong without the parts that may be secret.
    pub fn parse(url: &str) -> Result<Self, EndpointsError> {
        let (tls, members) = if let Some(members) = url.strip_prefix("etcds://") {
            (true, members)
        } else if let Some(members) = url.strip_prefix("etcd://") {
            (false, members)
        } else {
            return Err(EndpointsError::Scheme);
        };
        if let Some(extra) = members.matches(['@', '?', '#', '/']).next() {
            return Err(EndpointsError::Extra(extra.into()));
        }
        let hosts = members.split(',').map(member).collect::<Result<_, _>>()?;
        Ok(Self { tls, hosts })
    }

    /// Tells whether the members speak TLS.
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// Returns a URI for each member.
    pub(super) fn uris(&self) -> impl Iterator<Item = String> {
        let scheme = if self.tls { "https" } else { "http" };
        self.hosts
            .iter()
            .map(move |host| format!("{scheme}://{host}"))
    }
}

fn member(text: &str) -> Result<String, EndpointsError> {
    let wrong = || EndpointsError::Member(text.into());
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    let is_host = !host.is_empty() && (is_bracketed || !host.contains([':', '[', ']']));
    if !is_host || port.parse::<u16>().is_err() {
        return Err(wrong());
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: Result<&[&str], EndpointsError>) {
        let uris = Endpoints::parse(url).map(|endpoints| endpoints.uris().collect::<Vec<_>>());
        let expected = expected.map(|uris| uris.iter().map(ToString::to_string).collect());
        assert_eq!(uris, expected, "{url}");
    }

    #[test]
    fn members_are_separated_by_commas() {
        check("etcd://a:2379", Ok(&["http://a:2379"]));
        check(
            "etcds://a:1,[::1]:2",
            Ok(&["https://a:1", "https://[::1]:2"]),
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        check("http://a:1", Err(EndpointsError::Scheme));
        for member in ["a", "a:", ":1", "a:b", "::1:2", "a:70000", ""] {
            let url = format!("etcd://{member}");
            check(&url, Err(EndpointsError::Member(member.into())));
        }
    }

    #[test]
    fn a_password_in_it_is_refused_and_not_repeated() {
        let error = Endpoints::parse("etcd://root:secret@a:1").unwrap_err();
        assert_eq!(error, EndpointsError::Extra("@".into()));
    }
}
