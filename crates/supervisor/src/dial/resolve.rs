//! From a host to the addresses it has at this moment.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tidegate_lifecycle::cause::{End, Origin, Reason};
use tokio::net::lookup_host;

/// What `localhost` means, whatever the machine's files say.
const LOOPBACKS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

/// The addresses of `host`, at least one. Spellings that only old resolvers take for addresses
/// (`2130706433`, `0x7f.1`) are names: what a resolver makes of them is judged like any address.
///
/// # Errors
///
/// TARGET_UNREACHABLE when the name leads nowhere.
pub(super) async fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, End> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip.to_canonical(), port)]);
    }
    if host.trim_end_matches('.').eq_ignore_ascii_case("localhost") {
        return Ok(LOOPBACKS.map(|ip| SocketAddr::new(ip, port)).to_vec());
    }
    let unreachable = |why: &dyn std::fmt::Display| {
        let message = format!("cannot resolve {host}: {why}");
        End::new(Origin::Target, Reason::TargetUnreachable, message)
    };
    let found = lookup_host((host, port))
        .await
        .map_err(|error| unreachable(&error))?;
    let found: Vec<SocketAddr> = found.collect();
    if found.is_empty() {
        return Err(unreachable(&"the name has no address"));
    }
    Ok(found)
}
