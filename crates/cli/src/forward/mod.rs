//! `tidegate port-forward`: local ports that lead into a sandbox, for as long as it runs.
//!
//! | module | what it does |
//! |---|---|
//! | `spec` | reads what is to lead where |
//! | `listen` | binds all of it, before anybody is asked anything |
//! | `lanes` | the threads that carry connections |
//! | `connection` | one local connection, from accept to its end |
//! | `link` | whether the way is there, told once when it changes (pure) |
//! | `watch` | asks the gateway now and then, so that an idle forward knows too |
//! | `event`, `reporter` | what is told, and a task of its own that tells it |

mod connection;
mod event;
mod lanes;
mod link;
mod listen;
mod reporter;
mod watch;

pub(crate) mod spec;

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tidegate_client::{Client, Reason, SandboxName, harden};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::event::{Connection, Event};
use self::lanes::Lanes;
use self::listen::Local;
use self::reporter::Reporter;
use self::spec::{Bind, Spec};
use crate::args::Global;
use crate::failure::Failure;
use crate::output::Console;
use crate::{settings, signals};

/// How long connections may take to end when the forward does.
const GOODBYE: Duration = Duration::from_millis(300);

/// Lead local ports to ports in a sandbox, until Ctrl-C
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tidegate port-forward local 8080:80           # 127.0.0.1:8080 -> port 80 in the sandbox\n  \
    tidegate port-forward local 5432 :6379        # the same port; any free port\n  \
    tidegate port-forward local 8080:db:5432      # a host that the sandbox can reach\n  \
    tidegate port-forward local 0.0.0.0:8080:80   # for other machines too\n  \
    tidegate port-forward local :80 --output json # one event a line\n\n\
    It stays when gateway or supervisor go away: open connections are reset, new ones work again as\n\
    soon as the way does. Only 127.0.0.1 is bound unless you say otherwise.")]
pub(crate) struct Args {
    /// Which sandbox
    #[arg(value_parser = SandboxName::parse)]
    sandbox: SandboxName,

    /// What leads where: [[BIND:]LOCAL:][HOST:]REMOTE; an empty or zero LOCAL is a free port
    #[arg(value_name = "SPEC", required = true)]
    specs: Vec<Spec>,

    /// The local address to bind where SPEC names none, repeatable; `localhost` is 127.0.0.1 and ::1
    #[arg(long, value_name = "BIND")]
    address: Vec<Bind>,

    /// Exit with 1 when the sandbox is deleted
    #[arg(long)]
    exit_on_loss: bool,

    /// Threads that carry connections [default: half the cores, at most 4]
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<NonZeroUsize>,
}

fn threads(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "use a number from 1 on")
}

pub(crate) async fn run(args: Args, global: &Global, console: &Console) -> Result<(), Failure> {
    // Before anything is asked of anybody: a port in use leaves no trace at the gateway.
    let locals = listen::bind_all(&args.specs, &args.address)?;
    let config = settings::config(global)?;
    let client = settings::client_of(&config)?;
    let lanes = Lanes::new(args.threads, &client, || settings::client_of(&config))?;
    let (reporter, mut printing) =
        Reporter::start(args.sandbox.clone(), global.verbose > 0, *console);
    let forward = Arc::new(Forward {
        client,
        sandbox: args.sandbox,
        reporter,
        look: Notify::new(),
        stop: CancellationToken::new(),
    });
    let mut carried = Carried {
        lanes,
        connections: JoinSet::new(),
    };
    let outcome = tokio::select! {
        failure = forward.serve(&locals, args.exit_on_loss, &mut carried) => Err(failure),
        stopped = signals::told_to_stop() => Err(stopped),
        printed = printing.ended() => return printed,
    };
    // What is open is reset here and tells its end, and the gateway is told as soon as the connection
    // to it has its turn. Nobody waits for that: to exit says the same.
    forward.stop.cancel();
    let all = async { while carried.connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(GOODBYE, all).await;
    carried.connections.shutdown().await;
    tokio::task::yield_now().await;
    drop(forward);
    printing.finish().await;
    outcome
}

/// The connections, and the threads that they run on.
#[derive(Debug)]
struct Carried {
    lanes: Lanes,
    connections: JoinSet<()>,
}

/// What the connections share.
#[derive(Debug)]
struct Forward {
    /// Asks; what carries connections is the lanes'.
    client: Client,
    sandbox: SandboxName,
    reporter: Reporter,
    /// Asks the watch to look after the way at once.
    look: Notify,
    /// Ends the connections, each of which then tells its end.
    stop: CancellationToken,
}

impl Forward {
    /// Forwards until that makes no sense any more, and says why.
    async fn serve(
        self: &Arc<Self>,
        locals: &[Local],
        exit_on_loss: bool,
        carried: &mut Carried,
    ) -> Failure {
        let asked = self.ask().await;
        let absent = match asked {
            Ok(()) => None,
            // Only the supervisor is missing: what connects waits for it.
            Err(end) if end.reason == Reason::NoSession => Some(end),
            Err(end) => return Failure::end(format!("forward to sandbox {}", self.sandbox), end),
        };
        for Local {
            address, target, ..
        } in locals
        {
            let (local, target) = (*address, target.clone());
            self.reporter.tell(Event::Listening { local, target }).await;
        }
        if let Some(end) = absent {
            self.reporter.failed(&end).await;
        }
        tokio::select! {
            failure = self.watch(exit_on_loss) => failure,
            never = self.accept(locals, carried) => match never {},
        }
    }

    async fn accept(self: &Arc<Self>, locals: &[Local], carried: &mut Carried) -> Infallible {
        let Carried { lanes, connections } = carried;
        let mut accepting: FuturesUnordered<_> = locals.iter().map(Local::accept).collect();
        loop {
            tokio::select! {
                Some((local, socket, peer)) = accepting.next() => {
                    accepting.push(local.accept());
                    // From the first moment on: killed, we must not seem to have finished.
                    if let Err(error) = harden(&socket) {
                        tracing::debug!(%error, %peer, "a connection was gone before it began");
                        continue;
                    }
                    let on = Connection {
                        local: local.address,
                        peer,
                        target: local.target.clone(),
                    };
                    let forward = Arc::clone(self);
                    lanes.spawn(connections, socket, |client, socket| {
                        forward.carry(client, socket, on)
                    });
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }
}
