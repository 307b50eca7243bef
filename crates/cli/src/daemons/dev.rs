//! `tidegate dev`: a gateway and a supervisor in one process, to play with.

mod context;

use std::net::{SocketAddr, ToSocketAddrs};

use serde_json::json;
use tidegate_client::SandboxName;
use tidegate_gateway::Gateway;
use tidegate_supervisor::{Phase, StopReason, Supervisor};
use tokio_util::sync::CancellationToken;

use self::context::DevContext;
use super::start;
use crate::failure::{Failure, Trouble};
use crate::output::{Console, Style};
use crate::settings::{self, DEFAULT_LISTEN};
use crate::signals;

/// Run a gateway and a supervisor on this machine, until Ctrl-C
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tidegate dev\n  \
    tidegate dev --listen 127.0.0.1:0 --sandbox play\n\n\
    It speaks plaintext and binds the loopback only: whoever has an account on this machine can run\n\
    commands through it, as you. While it runs, `dev` is the current context, so\n\
    that other commands find it; afterwards it is the one that was. Beside another `dev` it is `dev-2`.")]
pub(crate) struct Args {
    /// Where the gateway listens, on the loopback; port 0 is a free one
    #[arg(long, value_name = "HOST:PORT", default_value = DEFAULT_LISTEN, value_parser = resolve)]
    listen: SocketAddr,

    /// What the sandbox is called: it is this machine
    #[arg(long, value_name = "NAME", default_value = "local", value_parser = SandboxName::parse)]
    sandbox: SandboxName,
}

fn resolve(text: &str) -> Result<SocketAddr, String> {
    let form = "write HOST:PORT, such as 127.0.0.1:7070";
    if text
        .rsplit_once(':')
        .is_none_or(|(_, port)| port.parse::<u16>().is_err())
    {
        return Err(form.to_owned());
    }
    let found = text.to_socket_addrs();
    let mut found = found.map_err(|error| format!("{error}; {form}"))?;
    let address = found.next().ok_or("it has no address")?;
    if !address.ip().is_loopback() {
        return Err(
            "`dev` has no TLS and binds the loopback only; tidegate-gateway binds others".into(),
        );
    }
    Ok(address)
}

pub(super) async fn run(args: Args, console: &Console) -> Result<(), Failure> {
    let gateway = start::gateway(args.listen, args.sandbox.clone()).await?;
    let url = format!("http://{}", gateway.local_addr());
    let supervisor = start::supervisor(url.clone(), args.sandbox.clone())?;
    let context = DevContext::enter(&url);
    let ran = serve(gateway, &supervisor, async {
        let mut phase = supervisor.phase();
        // The phase outlives whoever waits for it.
        let _ = phase.wait_for(Phase::is_live).await;
        announce(&url, &args.sandbox, &context, console)
    })
    .await;
    if let Ok(context) = context {
        context.leave()?;
    }
    ran
}

/// Runs both until a signal comes, then ends them in order; or at once if a second one comes.
async fn serve(
    gateway: Gateway,
    supervisor: &Supervisor,
    ready: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let (stop_supervisor, stop_gateway) = (CancellationToken::new(), CancellationToken::new());
    let mut supervising = std::pin::pin!(supervisor.run(stop_supervisor.clone()));
    let mut serving = std::pin::pin!(gateway.run(stop_gateway.clone()));
    let mut ready = std::pin::pin!(async {
        match ready.await {
            Ok(()) => std::future::pending().await,
            Err(failure) => failure,
        }
    });
    let failure = tokio::select! {
        failure = &mut ready => failure,
        failure = signals::told_to_stop() => failure,
        () = &mut serving => return Ok(()),
        stopped = &mut supervising => stopped_alone(stopped),
    };
    let orderly = async {
        stop_supervisor.cancel();
        tokio::select! {
            _ = supervising => {}
            () = &mut serving => return,
        }
        stop_gateway.cancel();
        serving.await;
    };
    tokio::select! {
        () = orderly => {}
        _ = signals::told_to_stop() => {}
    }
    Err(failure)
}

fn stopped_alone(stopped: Result<(), StopReason>) -> Failure {
    match stopped {
        Ok(()) => Failure::local(
            Trouble::System,
            "the sandbox was deleted, and with it the reason to go on",
            "Start `tidegate dev` again to have it back.",
        ),
        Err(reason) => Failure::local(Trouble::System, reason, ""),
    }
}

fn announce(
    url: &str,
    sandbox: &SandboxName,
    context: &Result<DevContext, Failure>,
    console: &Console,
) -> Result<(), Failure> {
    let named = context.as_ref().ok().map(DevContext::name);
    if console.is_json() {
        return console.json(&json!({
            "event": "ready",
            "gateway": url,
            "sandbox": sandbox.as_str(),
            "context": named,
        }));
    }
    let overriding = settings::overriding_variable();
    console.line(page(url, sandbox, context, overriding, console.style()))
}

/// What is there, and what to do with it.
fn page(
    url: &str,
    sandbox: &SandboxName,
    context: &Result<DevContext, Failure>,
    overriding: Option<&str>,
    style: Style,
) -> String {
    let with_flags = format!(" --gateway {url}");
    let (context, context_note, flags) = match (context, overriding) {
        (Ok(context), None) => (context.name(), context.note(), String::new()),
        (Ok(context), Some(variable)) => (
            context.name(),
            format!("{variable} is set and wins over it: unset it, or say --gateway"),
            with_flags,
        ),
        (Err(failure), _) => ("none", failure.sentence().unwrap_or_default(), with_flags),
    };
    let width = [url.len(), sandbox.as_str().len(), context.len()];
    let width = width.into_iter().max().unwrap_or_default();
    let fact = |what: &str, value: &str, note: &str| {
        format!(
            "  {}  {value:<width$}  {}\n",
            style.dim(what),
            style.dim(note)
        )
    };
    let command = |rest: String, does: &str| {
        let command = format!("tidegate{flags} {rest}");
        format!(
            "  {}  {}\n",
            style.bold(&format!("{command:<40}")),
            style.dim(does)
        )
    };
    [
        format!(
            "{} until Ctrl-C.\n\n",
            style.green("Tidegate runs on this machine")
        ),
        fact("gateway", url, "plaintext, loopback only"),
        fact("sandbox", sandbox.as_str(), "this machine's own loopback"),
        fact("context", context, &context_note),
        "\nTry, in another terminal:\n\n".to_owned(),
        command(
            format!("port-forward {sandbox} 8080:80"),
            "127.0.0.1:8080 -> its port 80",
        ),
        command(
            format!("exec -it {sandbox} -- sh"),
            "a shell on a terminal in there",
        ),
        command(
            format!("connect {sandbox} 22"),
            "stdin and stdout <-> its port 22",
        ),
        command("streams".to_owned(), "what is open"),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_of_the_loopback_is_taken_and_the_form_is_told() {
        assert!(resolve("127.0.0.1:0").is_ok() && resolve("[::1]:7070").is_ok());
        assert!(
            resolve("0.0.0.0:7070")
                .unwrap_err()
                .contains("loopback only")
        );
        for text in ["127.0.0.1", "7070", "", "localhost:http"] {
            assert!(resolve(text).unwrap_err().contains("HOST:PORT"), "{text}");
        }
    }

    #[test]
    fn a_variable_that_wins_over_the_context_is_named() {
        let sandbox = SandboxName::parse("local").unwrap();
        let page = |overriding| {
            let context = DevContext::of_tests("http://127.0.0.1:1");
            page(
                "http://127.0.0.1:1",
                &sandbox,
                &Ok(context),
                overriding,
                Style::PLAIN,
            )
        };
        let plain = page(None);
        assert!(
            plain.contains("need no flags") && !plain.contains("--gateway"),
            "{plain}"
        );
        let led_past = page(Some("TIDEGATE_CONTEXT"));
        assert!(!led_past.contains("need no flags"), "{led_past}");
        for part in [
            "TIDEGATE_CONTEXT is set",
            "tidegate --gateway http://127.0.0.1:1 streams",
        ] {
            assert!(led_past.contains(part), "{part} in {led_past}");
        }
    }
}
