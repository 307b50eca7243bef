//! The unary methods, without a trace of protobuf: a trait to serve them, a client to call them.
//!
//! Both released dialects of openshell.v1 are served at once. They are told apart by the shape of
//! what arrives, and answers hold both forms of whatever they disagree on. This gateway has no
//! workspaces: a sandbox's name is unique, its id is its name, and the workspace a request names is
//! ignored.

mod api;
mod caller;
mod client;
mod deadline;
mod list;
mod open_shell;
mod operator;
mod page;
mod routes;
mod translate;
mod types;

pub use self::api::GatewayApi;
pub use self::caller::Caller;
pub use self::client::Client;
pub(crate) use self::list::ListSandboxesRequest;
pub use self::routes::{HealthSwitch, routes};
pub use self::types::{
    Deletion, GatewayInfo, Health, Phase, Sandbox, ServiceStatus, Session, SshSession, Stream, User,
};

#[cfg(test)]
mod tests;
