//! `tidegate connect`: stdin and stdout as one stream.

mod stdio;

use std::time::Instant;

use tidegate_client::{Client, Handle, PipeEnd, Reason, SandboxName, Target};
use tokio::io::{AsyncRead, AsyncWrite};

use self::stdio::{Input, Output, Word};
use crate::args::Global;
use crate::failure::{Failure, Trouble};
use crate::forward::spec::parse_target;
use crate::output::Console;
use crate::{settings, signals};

/// Join stdin and stdout to a port in a sandbox
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    ssh -o ProxyCommand='tidegate connect %h %p' root@build-17\n  \
    tidegate connect local 25                 # talk to a mail server\n  \
    tidegate connect local db:5432 < script   # the end of stdin is the end of what is sent\n\n\
    Nothing but what the target sends goes to stdout. When the target has ended, what stdin brings\n\
    is still sent, unless it is a terminal. Exits with 0 only if both directions ended cleanly.")]
pub(crate) struct Args {
    /// Which sandbox
    #[arg(value_parser = SandboxName::parse)]
    sandbox: SandboxName,
    /// Where to, as seen from inside the sandbox; `ssh` is the supervisor's --ssh-socket
    #[arg(value_name = "[HOST:]PORT", value_parser = parse_target)]
    target: Target,
}

pub(crate) async fn run(args: &Args, global: &Global, console: &Console) -> Result<(), Failure> {
    let word = Word::default();
    let joined = async {
        let client = settings::client(global)?;
        join(&client, args, Input::new(&word), Output::new(&word)).await
    };
    let outcome = tokio::select! {
        outcome = joined => outcome,
        stopped = signals::told_to_stop() => Err(stopped),
    };
    outcome.map_err(|failure| match failure {
        Failure::End { what, end }
            if end.reason == Reason::ClientReset && word.is_reader_gone() =>
        {
            console.sentence(&unread(&what));
            Failure::Said
        }
        // Stdout is the target's: not even JSON may be written there.
        Failure::End { .. } | Failure::Local(_) => {
            console.sentence(&failure);
            Failure::Said
        }
        Failure::OutputClosed | Failure::Said | Failure::Stopped(_) | Failure::Ended(_) => failure,
    })
}

/// Whoever read what the target sends has gone before its end.
fn unread(what: &str) -> Failure {
    let sentence =
        format!("cannot {what}: nobody reads stdout any more, and the target had not ended");
    Failure::local(Trouble::System, sentence, "")
}

async fn join<R, W>(client: &Client, args: &Args, input: R, output: W) -> Result<(), Failure>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let Args { sandbox, target } = args;
    let failed = |end| Failure::end(format!("connect to {target} in sandbox {sandbox}"), end);
    let pipe = PipeEnd::new(input, output, client.buffered());
    let handle = Handle::new(Instant::now());
    let opening = client.tunnel(sandbox, target.clone(), pipe, <_>::default(), handle);
    let mut tunnel = opening.await.map_err(failed)?;
    if let Err(outcome) = tunnel.open().await {
        let end = outcome.end;
        tunnel.linger().await;
        return end.map_or(Ok(()), |end| Err(failed((*end).clone())));
    }
    let outcome = tunnel.run().await;
    tunnel.linger().await;
    let failed = |end| Failure::end(format!("go on with {target} in sandbox {sandbox}"), end);
    outcome
        .end
        .map_or(Ok(()), |end| Err(failed((*end).clone())))
}
