//! What is special about one world.

use toml::{Table, Value};

use crate::forward::Via;

/// What a daemon of ours warns of when its peer promises no heartbeats.
pub const NO_HEARTBEATS: &str = "promises no heartbeats";

/// Everything about a world that is not its topology.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(crate) gateway: Table,
    pub(crate) supervisor: Table,
    pub(crate) client_proxy: bool,
    pub(crate) supervisor_proxy: bool,
    pub(crate) no_supervisor: bool,
    pub(crate) one_cpu: bool,
    pub(crate) log_everything: bool,
    pub(crate) commands: bool,
    pub(crate) foreign_hops: bool,
    pub(crate) via: Option<Via>,
    pub(crate) expected: Vec<String>,
}

impl Options {
    /// The defaults: two threads a program, no proxies, nothing to complain about.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a key of the gateways' configuration.
    pub fn gateway(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.gateway.insert(key.to_owned(), value.into());
        self
    }

    /// Sets a key of the supervisor's configuration.
    pub fn supervisor(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.supervisor.insert(key.to_owned(), value.into());
        self
    }

    /// Makes every time of gateways and supervisor shorter by this factor.
    pub fn time_scale(self, scale: f64) -> Self {
        self.gateway("time_scale", scale)
            .supervisor("time_scale", scale)
    }

    /// Puts a fault proxy between clients and gateway.
    pub fn client_proxy(mut self) -> Self {
        self.client_proxy = true;
        self
    }

    /// Puts a fault proxy between supervisor and gateway, for control and data alike.
    pub fn supervisor_proxy(mut self) -> Self {
        self.supervisor_proxy = true;
        self
    }

    /// Starts no supervisor: the test plays it, or starts it later. One that it plays may promise no
    /// heartbeats, which is told.
    pub fn no_supervisor(mut self) -> Self {
        self.no_supervisor = true;
        self.expect_warning(NO_HEARTBEATS)
    }

    /// Lets gateways and supervisor run on one CPU.
    pub fn one_cpu(mut self) -> Self {
        self.one_cpu = true;
        self
    }

    /// Lets gateways and supervisor log all that they can.
    pub fn log_everything(mut self) -> Self {
        self.log_everything = true;
        self
    }

    /// Runs a command before what is held is taken for what may be held: what a supervisor keeps for
    /// all commands comes with the first.
    pub fn commands(mut self) -> Self {
        self.commands = true;
        self
    }

    /// Leaves descriptors and sockets out of what must be as before: other people's proxies keep
    /// connections for later. Streams must be gone all the same.
    pub fn foreign_hops(mut self) -> Self {
        self.foreign_hops = true;
        self
    }

    /// Decides what forwards are made of; otherwise the environment does.
    pub fn via(mut self, via: Via) -> Self {
        self.via = Some(via);
        self
    }

    /// Lets programs warn in lines that contain `text`.
    pub fn expect_warning(mut self, text: &str) -> Self {
        self.expected.push(text.to_owned());
        self
    }
}
