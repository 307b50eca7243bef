//! The processes of the demonstration, and the ways to the two ends.

use std::io;
use std::net::SocketAddr;
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdout, Command};

use crate::failure::Failure;

/// A gateway, a supervisor and a forward, each a process; client and target are we.
pub(super) struct Stage {
    gateway: Part,
    gateway_at: SocketAddr,
    supervisor: Part,
    forward: Part,
    target: TcpListener,
    /// Leads to the target.
    forward_at: SocketAddr,
    /// Leads to a port on which nothing listens.
    nothing_at: SocketAddr,
}

/// A process of our own program. Dropping it kills it.
struct Part {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Stage {
    /// Starts everything, and waits until it is ready.
    ///
    /// # Errors
    ///
    /// When a part does not start.
    pub(super) async fn set() -> Result<Self, Failure> {
        let set = Self::try_set().await;
        set.map_err(|error| Failure::io("start the parts of the demonstration", error))
    }

    async fn try_set() -> io::Result<Self> {
        let target = TcpListener::bind("127.0.0.1:0").await?;
        let target_port = target.local_addr()?.port();
        let (gateway, gateway_at) = start_gateway("127.0.0.1:0").await?;
        let url = format!("http://{gateway_at}");
        let mut supervisor = Part::start(&["demo-part", "supervisor", &url])?;
        supervisor.said("ready").await?;
        let specs = [
            format!(":{target_port}"),
            format!(":{}", unused_port().await?),
        ];
        let mut forward = Part::start(&[
            "port-forward",
            "demo",
            &specs[0],
            &specs[1],
            "--gateway",
            &url,
        ])?;
        Ok(Self {
            forward_at: forward.address("local").await?,
            nothing_at: forward.address("local").await?,
            gateway,
            gateway_at,
            supervisor,
            forward,
            target,
        })
    }

    /// A line that shows who is who.
    pub(super) fn picture(&self) -> String {
        let id = |part: &Part| format!("pid {}", part.child.id().unwrap_or_default());
        format!(
            "client --> port-forward --> gateway --> supervisor --> target\n\
             here       {:<16} {:<11} {:<14} here",
            id(&self.forward),
            id(&self.gateway),
            id(&self.supervisor),
        )
    }

    /// A connection through all of it: the client's end, and the target's.
    pub(super) async fn connect(&self) -> io::Result<(TcpStream, TcpStream)> {
        let client = TcpStream::connect(self.forward_at).await?;
        let (target, _) = self.target.accept().await?;
        Ok((client, target))
    }

    /// A connection that leads to a port on which nothing listens.
    pub(super) async fn connect_to_nothing(&self) -> io::Result<TcpStream> {
        TcpStream::connect(self.nothing_at).await
    }

    /// Kills the gateway, which can say nothing to anybody.
    pub(super) async fn kill_gateway(&mut self) -> io::Result<()> {
        self.gateway.child.kill().await
    }

    /// Starts another gateway in its place.
    pub(super) async fn start_gateway(&mut self) -> io::Result<()> {
        (self.gateway, self.gateway_at) = start_gateway(&self.gateway_at.to_string()).await?;
        Ok(())
    }

    /// Ends everything.
    pub(super) async fn clear(&mut self) {
        for part in [&mut self.forward, &mut self.supervisor, &mut self.gateway] {
            // One that has ended already needs no killing.
            let _ = part.child.kill().await;
        }
    }
}

async fn start_gateway(listen: &str) -> io::Result<(Part, SocketAddr)> {
    let mut gateway = Part::start(&["demo-part", "gateway", listen])?;
    let address = gateway.address("listening").await?;
    Ok((gateway, address))
}

impl Part {
    fn start(args: &[&str]) -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(args)
            .args(["--output", "json"])
            // The parts are on this machine, and are told all that they need.
            .env_remove("TIDEGATE_GATEWAY")
            .env_remove("TIDEGATE_CONTEXT")
            .env_remove("TIDEGATE_TOKEN")
            // Held open by us alone: a part whose stdin ends, ends.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self {
            child,
            lines: BufReader::new(stdout).lines(),
        })
    }

    /// Waits for the next object with `key` on its stdout.
    async fn said(&mut self, key: &str) -> io::Result<Value> {
        while let Some(line) = self.lines.next_line().await? {
            let mut said: Value = serde_json::from_str(&line)?;
            if let Some(value) = said.get_mut(key) {
                return Ok(value.take());
            }
            if let Some(why) = said["error"]["message"].as_str() {
                return Err(io::Error::other(format!("one of them says: {why}")));
            }
        }
        Err(io::Error::other("a part ended before it was ready"))
    }

    async fn address(&mut self, key: &str) -> io::Result<SocketAddr> {
        let said = self.said(key).await?;
        let address = said.as_str().and_then(|text| text.parse().ok());
        address.ok_or_else(|| io::Error::other("a part said something else than an address"))
    }
}

/// A port that was free a moment ago.
async fn unused_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port())
}
