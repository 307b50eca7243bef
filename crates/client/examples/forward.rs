//! The smallest port forward: `forward GATEWAY SANDBOX PORT` listens on a free local port.

use std::sync::Arc;
use std::time::Instant;

use tidegate_client::{Client, Config, Handle, Plug, SandboxName, Side, SocketEnd, Target, harden};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(gateway), Some(sandbox), Some(port)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: forward GATEWAY SANDBOX PORT".into());
    };
    let client = Client::new(&Config::new([gateway]))?;
    let sandbox = SandboxName::parse(&sandbox)?;
    let target = Target::tcp("localhost", port.parse()?)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    #[expect(clippy::print_stdout, reason = "an example says where it listens")]
    {
        println!(
            "Forwarding {} -> {sandbox} {target}",
            listener.local_addr()?
        );
    }
    let mut streams = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (socket, _) = accepted?;
                harden(&socket)?;
                let plug = Plug::Tcp(Arc::new(socket));
                let local = SocketEnd::new(Side::Downstream, plug, client.buffered());
                let (client, sandbox, target) = (client.clone(), sandbox.clone(), target.clone());
                streams.spawn(async move {
                    let handle = Handle::new(Instant::now());
                    let limits = Default::default();
                    // A stream that cannot be opened resets the local connection: `local` is dropped.
                    if let Ok(mut tunnel) =
                        client.tunnel(&sandbox, target, local, limits, handle).await
                    {
                        tunnel.run().await;
                        tunnel.linger().await;
                    }
                });
            }
            Some(ended) = streams.join_next() => ended?,
        }
    }
}
