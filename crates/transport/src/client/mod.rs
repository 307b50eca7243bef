//! The side that connects: where to ([`Endpoint`]), the connection ([`Connection`]), several of
//! them ([`Pool`]).

mod call;
mod connection;
mod credential;
mod dial;
mod endpoint;
mod link;
mod obstacle;
mod pool;

pub use call::{CallError, ResponseBody};
pub use connection::{Connection, OpenError, ResponseHead};
pub use credential::CredentialFault;
pub use dial::ConnectError;
pub use endpoint::{Endpoint, EndpointError};
pub use obstacle::Obstacle;
pub use pool::{Pool, PoolError};

pub(crate) use link::Place;
