//! The TCP sockets of a process and their states, from `/proc/<pid>/net/tcp` and `tcp6`.

use std::{
    collections::HashSet,
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use super::proc::descriptors;

/// The state of a TCP socket, as the kernel numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "RFC 9293 explains them")]
pub enum SocketState {
    Established,
    SynSent,
    SynReceived,
    FinWait1,
    FinWait2,
    TimeWait,
    Closed,
    CloseWait,
    LastAck,
    Listening,
    Closing,
    NewSynReceived,
}

impl SocketState {
    fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Established,
            2 => Self::SynSent,
            3 => Self::SynReceived,
            4 => Self::FinWait1,
            5 => Self::FinWait2,
            6 => Self::TimeWait,
            7 => Self::Closed,
            8 => Self::CloseWait,
            9 => Self::LastAck,
            10 => Self::Listening,
            11 => Self::Closing,
            12 => Self::NewSynReceived,
            _ => return None,
        })
    }
}

/// One TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Our end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Its state.
    pub state: SocketState,
    inode: u64,
}

/// Returns the TCP sockets that a process has open.
pub fn open_sockets(pid: u32) -> Vec<Entry> {
    let links = descriptors(pid);
    let inodes: HashSet<&str> = links.iter().filter_map(|link| link.to_str()).collect();
    let mut sockets = all(&pid.to_string());
    sockets.retain(|socket| inodes.contains(format!("socket:[{}]", socket.inode).as_str()));
    sockets
}

/// Returns the sockets of this network namespace with `port` at their own end, those that no
/// process holds any more (FIN_WAIT2, TIME_WAIT) included.
pub fn sockets_of_port(port: u16) -> Vec<Entry> {
    let mut sockets = all("self");
    sockets.retain(|socket| socket.local.port() == port);
    sockets
}

fn all(process: &str) -> Vec<Entry> {
    let table =
        |name| fs::read_to_string(format!("/proc/{process}/net/{name}")).unwrap_or_default();
    let (v4, v6) = (table("tcp"), table("tcp6"));
    v4.lines()
        .chain(v6.lines())
        .filter_map(parse_line)
        .collect()
}

/// Reads `sl local remote state queues timer retransmits uid timeout inode ...`; the table's head
/// is no such line.
fn parse_line(line: &str) -> Option<Entry> {
    let mut fields = line.split_whitespace().skip(1);
    let local = parse_address(fields.next()?)?;
    let remote = parse_address(fields.next()?)?;
    let state = SocketState::from_number(u8::from_str_radix(fields.next()?, 16).ok()?)?;
    let inode = fields.nth(5)?.parse().ok()?;
    Some(Entry {
        local,
        remote,
        state,
        inode,
    })
}

/// Reads an address: 32-bit words in the machine's byte order, then the port.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |text| u32::from_str_radix(text, 16).ok().map(u32::to_ne_bytes);
    let ip = if ip.len() == 8 {
        IpAddr::V4(Ipv4Addr::from(word(ip)?))
    } else {
        let mut bytes = [0; 16];
        for (index, place) in bytes.chunks_exact_mut(4).enumerate() {
            place.copy_from_slice(&word(ip.get(index * 8..index * 8 + 8)?)?);
        }
        IpAddr::V6(Ipv6Addr::from(bytes))
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{socket::Socket, target::Target, wait};

    #[test]
    #[cfg(target_endian = "little")]
    fn the_kernel_writes_addresses_backwards() {
        let check = |text, address: &str| {
            assert_eq!(parse_address(text), Some(address.parse().unwrap()));
        };
        check("0100007F:1F90", "127.0.0.1:8080");
        check("00000000000000000000000001000000:0050", "[::1]:80");
    }

    #[tokio::test]
    async fn a_client_that_ignores_fin_is_in_close_wait() {
        let target = Target::start([]).unwrap();
        let client = Socket::connect(target.address()).await.unwrap();
        let local = client.local_address().unwrap();
        let state = || {
            let sockets = open_sockets(std::process::id());
            sockets
                .iter()
                .find(|socket| socket.local == local)
                .map(|socket| socket.state)
        };
        wait::until(wait::GENEROUS, || state() == Some(SocketState::CloseWait)).unwrap();
        drop(client);
        assert_eq!(state(), None);
    }
}
