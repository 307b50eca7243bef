//! Where a stream leads inside the sandbox.

use std::fmt;

use thiserror::Error;

/// What the supervisor is asked to connect a stream to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A TCP address. The supervisor resolves the host and checks the address it will dial.
    Tcp {
        /// A name or an address, without brackets.
        host: String,
        /// 1 to 65535.
        port: u16,
    },
    /// The sandbox's SSH server, on the supervisor's Unix socket.
    Ssh,
    /// A command that the supervisor runs; the relay itself says which.
    Exec,
}

/// A target that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TargetError {
    /// No host was given, or one that is no host name and no address.
    #[error("{0:?} is not a host: give a name or an address")]
    Host(String),
    /// No TCP port has that number.
    #[error("{0} is not a port: use 1 to 65535")]
    Port(u32),
}

impl Target {
    /// The longest host name.
    pub const MAX_HOST: usize = 253;

    /// A TCP target.
    ///
    /// # Errors
    ///
    /// When the host is empty, too long or holds white space, control characters or brackets, or the
    /// port is 0 or above 65535.
    pub fn tcp(host: &str, port: u32) -> Result<Self, TargetError> {
        let valid = (1..=Self::MAX_HOST).contains(&host.len())
            && host
                .chars()
                .all(|c| c.is_ascii_graphic() && !matches!(c, '[' | ']' | '/' | '@'));
        if !valid {
            return Err(TargetError::Host(host.chars().take(64).collect()));
        }
        match u16::try_from(port) {
            Ok(port) if port != 0 => Ok(Self::Tcp {
                host: host.to_owned(),
                port,
            }),
            _ => Err(TargetError::Port(port)),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Ssh => f.write_str("ssh"),
            Self::Exec => f.write_str("exec"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_and_hosts_outside_the_range_are_named() {
        assert_eq!(Target::tcp("localhost", 0), Err(TargetError::Port(0)));
        assert_eq!(
            Target::tcp("localhost", 65_536),
            Err(TargetError::Port(65_536))
        );
        assert_eq!(Target::tcp("", 80), Err(TargetError::Host(String::new())));
        assert!(Target::tcp("a b", 80).is_err());
        assert_eq!(Target::tcp("::1", 80).unwrap().to_string(), "[::1]:80");
    }
}
