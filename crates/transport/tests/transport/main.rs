//! The transport against raw HTTP/2 peers, itself, proxies and tonic. One binary: linking is slow.

mod common;
mod endings;
mod lane;
mod limits;
mod proxy;
mod tls;
mod unary;
