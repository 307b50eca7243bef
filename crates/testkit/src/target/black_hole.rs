//! A port that answers no SYN, as a host behind a firewall that drops.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use socket2::{Domain, Socket, Type};

/// How long a connect on loopback may take before it counts as unanswered.
const PATIENCE: Duration = Duration::from_millis(300);

/// How many connections a backlog of 0 is believed to take at most.
const MOST: usize = 64;

/// A listening socket whose queue is full: the kernel drops every further SYN.
#[derive(Debug)]
pub struct BlackHole {
    address: SocketAddr,
    _listener: Socket,
    /// Connections nobody accepts; they fill the queue.
    _filling: Vec<Socket>,
}

impl BlackHole {
    /// Opens a port on 127.0.0.1 and fills its queue; blocks for about 300 ms.
    ///
    /// # Errors
    ///
    /// What the kernel says, or `Other` if it takes connections without end.
    pub fn open() -> io::Result<Self> {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
        listener.listen(0)?;
        let address = listener.local_addr()?;
        let mut filling = Vec::new();
        while filling.len() < MOST {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            let answered = socket.connect_timeout(&address, PATIENCE);
            filling.push(socket);
            match answered {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    let address = address
                        .as_socket()
                        .expect("it was bound to an IPv4 address");
                    return Ok(Self {
                        address,
                        _listener: listener,
                        _filling: filling,
                    });
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("the backlog never fills"))
    }

    /// Returns the address that does not answer.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_gets_through() {
        let hole = BlackHole::open().unwrap();
        let connected = std::net::TcpStream::connect_timeout(&hole.address(), PATIENCE);
        assert_eq!(connected.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
