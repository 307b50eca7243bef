//! Binding every local address before anything else happens.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use tidegate_client::Target;
use tidegate_transport::{Listener, listen};
use tokio::net::TcpStream;

use super::spec::{Bind, Spec};
use crate::failure::{Failure, Trouble};

/// How often a free port is looked for that both loopbacks have.
const ATTEMPTS: usize = 16;

/// A local address that is listened on, and where it leads.
#[derive(Debug)]
pub(super) struct Local {
    pub(super) address: SocketAddr,
    pub(super) target: Target,
    pub(super) listener: Listener,
}

impl Local {
    /// Waits for the next connection.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub(super) async fn accept(&self) -> (&Self, TcpStream, SocketAddr) {
        let (socket, peer) = self.listener.accept().await;
        (self, socket, peer)
    }
}

/// Listens on everything, or on nothing.
///
/// # Errors
///
/// Which address cannot be had, and why.
pub(super) fn bind_all(specs: &[Spec], addresses: &[Bind]) -> Result<Vec<Local>, Failure> {
    let mut locals: Vec<Local> = Vec::new();
    for spec in specs {
        let binds = match (&spec.bind, addresses) {
            (Some(bind), _) => std::slice::from_ref(bind),
            (None, []) => &[Bind::DEFAULT],
            (None, addresses) => addresses,
        };
        for bind in binds {
            let (address, _) = bind.addresses(spec.local);
            if locals.iter().any(|local| local.address == address) {
                let sentence = format!("{address} is to lead to two targets");
                return Err(Failure::local(
                    Trouble::Listen,
                    sentence,
                    "Give each a port of its own.",
                ));
            }
            let bound = bind_one(*bind, spec.local)?;
            locals.extend(bound.into_iter().map(|(address, listener)| Local {
                address,
                target: spec.target.clone(),
                listener,
            }));
        }
    }
    Ok(locals)
}

type Bound = (SocketAddr, Listener);

fn bind_one(bind: Bind, port: u16) -> Result<Vec<Bound>, Failure> {
    let mut attempts = if port == 0 { ATTEMPTS } else { 1 };
    loop {
        attempts -= 1;
        let (address, _) = bind.addresses(port);
        let first = bind_address(address)?;
        let (_, Some(second)) = bind.addresses(first.0.port()) else {
            return Ok(vec![first]);
        };
        match listen(second) {
            Ok(listener) => return Ok(vec![first, (second, listener)]),
            Err(error) if is_missing(&error) => return Ok(vec![first]),
            // Another free port may be free on both.
            Err(error) if error.kind() == ErrorKind::AddrInUse && attempts > 0 => {}
            Err(error) => return Err(failed(second, &error)),
        }
    }
}

fn bind_address(address: SocketAddr) -> Result<Bound, Failure> {
    let bound = listen(address).and_then(|listener| Ok((listener.local_addr()?, listener)));
    bound.map_err(|error| failed(address, &error))
}

/// Whether this machine does not have the address at all, as where IPv6 is switched off.
fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::AddrNotAvailable | ErrorKind::Unsupported
    )
}

fn failed(address: SocketAddr, error: &io::Error) -> Failure {
    let port = address.port();
    let (why, remedy) = match error.kind() {
        ErrorKind::AddrInUse => (
            format!("port {port} is in use"),
            "Choose another local port, or 0 for a free one.",
        ),
        ErrorKind::PermissionDenied => (
            format!("port {port} needs a privilege"),
            "Choose a local port from 1024 on.",
        ),
        ErrorKind::AddrNotAvailable => (
            "this machine does not have that address".to_owned(),
            "Leave --address out, or name one of this machine's own.",
        ),
        _ => (error.to_string(), ""),
    };
    let sentence = format!("cannot listen on {address}: {why}");
    Failure::local(Trouble::Listen, sentence, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specs(texts: &[&str]) -> Vec<Spec> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[tokio::test]
    async fn the_loopback_is_bound_unless_another_address_is_named() {
        let locals = bind_all(&specs(&[":80", "127.0.0.2::81"]), &[]).unwrap();
        let addresses: Vec<_> = locals
            .iter()
            .map(|local| local.address.ip().to_string())
            .collect();
        assert_eq!(addresses, ["127.0.0.1", "127.0.0.2"]);
        let everywhere: Bind = "0.0.0.0".parse().unwrap();
        let locals = bind_all(&specs(&[":80"]), &[everywhere]).unwrap();
        assert_eq!(locals[0].address.ip().to_string(), "0.0.0.0");
    }

    #[tokio::test]
    async fn localhost_is_both_loopbacks_on_one_port() {
        let locals = bind_all(&specs(&[":80"]), &[Bind::Localhost]).unwrap();
        let ports: Vec<_> = locals.iter().map(|local| local.address.port()).collect();
        assert!(ports.windows(2).all(|two| two[0] == two[1]), "{locals:?}");
    }

    #[tokio::test]
    async fn a_port_that_is_written_twice_is_not_called_in_use() {
        let free = listen(([127, 0, 0, 1], 0).into()).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let texts = [format!("{port}:80"), format!("{port}:81")];
        let failure = bind_all(&specs(&[&texts[0], &texts[1]]), &[]).unwrap_err();
        let sentence = failure.sentence().unwrap();
        assert!(sentence.contains("two targets"), "{sentence}");
    }

    #[tokio::test]
    async fn a_port_in_use_is_named_and_nothing_stays_bound() {
        let taken = listen(([127, 0, 0, 1], 0).into()).unwrap();
        let free = listen(([127, 0, 0, 1], 0).into()).unwrap();
        let (taken_at, free_at) = (taken.local_addr().unwrap(), free.local_addr().unwrap());
        drop(free);
        let texts = [
            format!("{}:80", free_at.port()),
            format!("{}:80", taken_at.port()),
        ];
        let failure = bind_all(&specs(&[&texts[0], &texts[1]]), &[]).unwrap_err();
        let sentence = failure.sentence().unwrap();
        assert!(
            sentence.starts_with(&format!("cannot listen on {taken_at}")),
            "{sentence}"
        );
        assert!(listen(free_at).is_ok());
    }
}
