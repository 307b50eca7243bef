//! A port of the loopback that a server can be told to use.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    net::{Ipv4Addr, TcpListener},
};

/// Below the range from which the system takes ports of its own accord: what is free here stays so
/// until the server has it, and again while the server is down.
const FIRST: u16 = 12_000;
const PORTS: u64 = 8_000;

/// Returns a port that nothing listens on.
///
/// # Panics
///
/// If hundreds of tries find none.
pub(super) fn free() -> u16 {
    let seed = RandomState::new();
    (0_u32..500)
        .map(|attempt| {
            let offset = seed.hash_one(attempt) % PORTS;
            FIRST + u16::try_from(offset).expect("it is below the number of ports")
        })
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .expect("there is a free port")
}
