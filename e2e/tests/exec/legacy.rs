//! Callers that say less than ours, or something else: frame by frame.

use bytes::Bytes;
use prost::{Message, Oneof};
use tidegate_e2e::raw::Client;
use tidegate_e2e::{Options, SANDBOX, Topology, World, every_topology};
use tidegate_testkit::messages::Empty;
use tidegate_testkit::outcome::Outcome;
use tidegate_testkit::raw_h2::{self, Inbox, Outbox, Received};
use tidegate_testkit::wait::within;
use tonic::Code;

use crate::{GONE, MOMENT, long_sleep, until_sleepers};

/// Where the interactive call is.
const INTERACTIVE: &str = "/openshell.v1.OpenShell/ExecSandboxInteractive";

every_topology! {
    ss_20_a_caller_without_the_frame_ends_stdin_with_its_stream,
    ex_09_a_request_that_is_never_ended_is_not_waited_for,
    ex_22_a_resize_without_a_terminal_is_ignored_of_old,
    ex_32_a_reset_is_no_end_of_stdin,
    a_stream_that_ends_without_the_frame_was_aborted,
    nothing_comes_before_the_start,
}

/// What a caller asks for, written down a second time.
#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(string, tag = "1")]
    sandbox: String,
    #[prost(string, repeated, tag = "2")]
    command: Vec<String>,
    #[prost(string, repeated, tag = "200")]
    capabilities: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Input {
    #[prost(oneof = "Said", tags = "1, 2, 3, 200")]
    said: Option<Said>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Said {
    #[prost(message, tag = "1")]
    Start(Request),
    #[prost(bytes = "bytes", tag = "2")]
    Stdin(Bytes),
    #[prost(message, tag = "3")]
    Resize(Size),
    #[prost(message, tag = "200")]
    HalfClose(Empty),
}

#[derive(Clone, PartialEq, Message)]
struct Size {
    #[prost(uint32, tag = "1")]
    cols: u32,
    #[prost(uint32, tag = "2")]
    rows: u32,
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(oneof = "Told", tags = "1, 2, 3")]
    told: Option<Told>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Told {
    #[prost(message, tag = "1")]
    Stdout(Data),
    #[prost(message, tag = "2")]
    Stderr(Data),
    #[prost(message, tag = "3")]
    Exit(Exit),
}

#[derive(Clone, PartialEq, Message)]
struct Data {
    #[prost(bytes = "vec", tag = "1")]
    data: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Exit {
    #[prost(int32, tag = "1")]
    code: i32,
}

/// A call for a command that runs.
struct Call {
    outbox: Outbox,
    inbox: Inbox,
}

/// All that came back.
#[derive(Debug, Default)]
struct Answer {
    stdout: Vec<u8>,
    exits: Vec<i32>,
    outcome: Option<Outcome>,
}

/// Asks for a command and waits for nothing.
async fn ask(client: &Client, capabilities: &[&str], script: &str) -> raw_h2::Call {
    let mut call = client.call(INTERACTIVE).await;
    let request = Request {
        sandbox: SANDBOX.to_owned(),
        command: ["sh", "-c", script].map(str::to_owned).to_vec(),
        capabilities: capabilities.iter().map(|&it| it.to_owned()).collect(),
    };
    let said = Some(Said::Start(request));
    call.outbox.message(&Input { said }).await.unwrap();
    call
}

/// The status of a call for a command that does not run.
pub(crate) async fn refusal(client: &Client, script: &str) -> Outcome {
    let call = ask(client, &[], script).await;
    let headers = within(MOMENT, "a status", call.response.headers()).await;
    Outcome::from_headers(&headers.unwrap().1).expect("it does not run")
}

impl Call {
    async fn start(client: &Client, capabilities: &[&str], script: &str) -> Self {
        let call = ask(client, capabilities, script).await;
        let headers = within(MOMENT, "headers", call.response.headers()).await;
        Self {
            outbox: call.outbox,
            inbox: headers.unwrap().2,
        }
    }

    async fn say(&mut self, said: Said) {
        let said = Some(said);
        self.outbox.message(&Input { said }).await.unwrap();
    }

    async fn stdin(&mut self, data: &'static str) {
        self.say(Said::Stdin(data.into())).await;
    }

    async fn answer(&mut self) -> Answer {
        let (messages, end) = within(GONE, "the end of the call", self.inbox.rest()).await;
        let mut answer = Answer::default();
        for message in messages {
            match Event::decode(message).unwrap().told {
                Some(Told::Stdout(stdout)) => {
                    assert!(answer.exits.is_empty(), "output after the exit");
                    answer.stdout.extend(stdout.data);
                }
                Some(Told::Exit(exit)) => answer.exits.push(exit.code),
                Some(Told::Stderr(_)) | None => {}
            }
        }
        if let Received::Trailers(trailers) = end {
            answer.outcome = Outcome::from_headers(&trailers);
        }
        answer
    }
}

#[track_caller]
fn is_whole(answer: &Answer, stdout: &str, code: i32) {
    assert_eq!(answer.stdout, stdout.as_bytes(), "{answer:?}");
    assert_eq!(answer.exits, [code], "{answer:?}");
    assert!(
        answer.outcome.as_ref().is_some_and(Outcome::is_ok),
        "{answer:?}"
    );
}

fn options() -> Options {
    Options::new().commands()
}

async fn ss_20_a_caller_without_the_frame_ends_stdin_with_its_stream(topology: Topology) {
    let world = World::start(topology, options()).await;
    let client = Client::connect(&world).await;
    let mut call = Call::start(&client, &[], "cat; sleep 0.3; echo done; exit 4").await;
    call.stdin("hello\n").await;
    call.outbox.finish().unwrap();
    is_whole(&call.answer().await, "hello\ndone\n", 4);
    drop((call, client));
    world.settle().await;
}

async fn ex_09_a_request_that_is_never_ended_is_not_waited_for(topology: Topology) {
    let world = World::start(topology, options()).await;
    let client = Client::connect(&world).await;
    for capabilities in [&[][..], &["stream-half-close-v1", "stream-explicit-fin-v1"]] {
        let mut call = Call::start(&client, capabilities, "echo over; exit 2").await;
        is_whole(&call.answer().await, "over\n", 2);
        for daemon in [world.gateway(), world.supervisor()] {
            daemon.until_metric("tidegate_streams", 0.0, GONE).await;
        }
    }
    drop(client);
    world.settle().await;
}

async fn ex_22_a_resize_without_a_terminal_is_ignored_of_old(topology: Topology) {
    let world = World::start(topology, options()).await;
    let client = Client::connect(&world).await;
    let mut call = Call::start(&client, &[], "read line; echo $line").await;
    call.say(Said::Resize(Size { cols: 9, rows: 9 })).await;
    call.stdin("word\n").await;
    is_whole(&call.answer().await, "word\n", 0);
    drop((call, client));
    world.settle().await;
}

async fn ex_32_a_reset_is_no_end_of_stdin(topology: Topology) {
    let world = World::start(topology, options()).await;
    let client = Client::connect(&world).await;
    let directory = tempfile::tempdir().unwrap();
    let done = directory.path().join("done");
    for capabilities in [&[][..], &["stream-half-close-v1", "stream-explicit-fin-v1"]] {
        let time = long_sleep();
        let committing = format!("sleep {time} & cat; touch {}", done.display());
        let mut call = Call::start(&client, capabilities, &committing).await;
        call.stdin("half of it").await;
        until_sleepers(&time, 1, MOMENT).await;
        call.outbox.reset(h2::Reason::CANCEL);
        until_sleepers(&time, 0, GONE).await;
        let supervisor = world.supervisor();
        supervisor.until_metric("tidegate_execs", 0.0, GONE).await;
        assert!(!done.exists(), "{capabilities:?}");
    }
    drop(client);
    world.settle().await;
}

async fn a_stream_that_ends_without_the_frame_was_aborted(topology: Topology) {
    let world = World::start(topology, options()).await;
    let client = Client::connect(&world).await;
    let directory = tempfile::tempdir().unwrap();
    let done = directory.path().join("done");
    let agreed = ["stream-half-close-v1", "stream-explicit-fin-v1"];
    let committing = format!("cat; touch {}", done.display());
    let mut call = Call::start(&client, &agreed, &committing).await;
    call.stdin("half of it").await;
    call.outbox.finish().unwrap();
    let answer = call.answer().await;
    assert!(answer.exits.is_empty(), "{answer:?}");
    assert!(!answer.outcome.is_some_and(|it| it.is_ok()));
    assert!(!done.exists());
    // With it, it was not.
    let mut call = Call::start(&client, &agreed, "cat").await;
    call.stdin("all of it").await;
    call.say(Said::HalfClose(Empty {})).await;
    call.outbox.finish().unwrap();
    is_whole(&call.answer().await, "all of it", 0);
    drop((call, client));
    world.settle().await;
}

async fn nothing_comes_before_the_start(topology: Topology) {
    let world = World::start(topology, options()).await;
    let client = Client::connect(&world).await;
    let mut call = client.call(INTERACTIVE).await;
    let said = Some(Said::Stdin("early".into()));
    call.outbox.message(&Input { said }).await.unwrap();
    let headers = within(MOMENT, "a refusal", call.response.headers()).await;
    let outcome = Outcome::from_headers(&headers.unwrap().1).unwrap();
    assert_eq!(outcome.code, Code::InvalidArgument, "{outcome:?}");
    // A second start is none.
    let mut call = Call::start(&client, &[], "sleep 60").await;
    call.say(Said::Start(Request::default())).await;
    let answer = call.answer().await;
    let outcome = answer.outcome.unwrap();
    assert_eq!(outcome.code, Code::InvalidArgument, "{outcome:?}");
    assert!(answer.exits.is_empty());
    drop((call, client));
    world.settle().await;
}
