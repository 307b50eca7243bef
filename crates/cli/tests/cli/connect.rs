//! `tidegate connect`

use std::io::Write;
use std::time::Duration;

use tidegate_testkit::content::Content;
use tidegate_testkit::process::{Process, Terminal};
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::{Step, Target};
use tidegate_testkit::wait::GENEROUS;

use crate::house::{House, SANDBOX, SOON, ended};

/// A connect to a target.
fn connect(house: &House, target: &Target) -> Process {
    let port = target.address().port().to_string();
    house.run_with_stdin(&["connect", SANDBOX, &port])
}

#[tokio::test]
async fn the_end_of_stdin_is_fin_and_the_answer_still_arrives() {
    let house = House::new().await;
    let target = Target::answer_after_end().unwrap();
    let process = connect(&house, &target);
    let mut stdin = process.take_stdin().unwrap();
    stdin.write_all(b"12345").unwrap();
    drop(stdin);
    assert!(ended(&process, SOON).await.success(), "{process}");
    assert_eq!(process.stdout().to_string(), "OK 5\n");
    assert_eq!(process.stderr().to_string(), "");
}

#[tokio::test]
async fn stdin_is_sent_after_the_target_has_ended() {
    let house = House::new().await;
    let target =
        Target::start([Step::Send("bye\n".into()), Step::Finish, Step::ReadToEnd]).unwrap();
    let process = connect(&house, &target);
    process.line("bye").await;
    // The reader of stdout sees the end, though the process goes on.
    assert_eq!(process.stdout().line(|line| line == "never").await, None);
    assert!(process.is_running());
    let mut stdin = process.take_stdin().unwrap();
    stdin.write_all(b"after the end").unwrap();
    drop(stdin);
    assert!(ended(&process, SOON).await.success(), "{process}");
    let seen = target.next().await.until_read_end().await;
    assert_eq!((seen.bytes_read, seen.read_end), (13, Some(Ended::Eof)));
}

/// A person who has seen the end does not know that the target waits for theirs.
#[tokio::test]
async fn a_terminal_is_sent_until_the_target_ends() {
    let house = House::new().await;
    let script = [
        Step::Read(6),
        Step::Send("bye\n".into()),
        Step::Finish,
        Step::ReadToEnd,
    ];
    let target = Target::start(script).unwrap();
    let (mut terminal, stdin) = Terminal::open().unwrap();
    let port = target.address().port().to_string();
    let mut command = house.command(&["connect", SANDBOX, &port]);
    command.stdin(stdin);
    let process = Process::spawn(command).unwrap();
    terminal.type_line("hello").unwrap();
    assert!(ended(&process, SOON).await.success(), "{process}");
    assert_eq!(process.stdout().to_string(), "bye\n");
    assert_eq!(process.stderr().to_string(), "");
    let seen = target.next().await.until_read_end().await;
    assert_eq!(
        (&seen.head[..], seen.read_end),
        (&b"hello\n"[..], Some(Ended::Eof))
    );
    drop(terminal);
}

#[tokio::test]
async fn the_end_of_what_is_typed_is_fin() {
    let house = House::new().await;
    let target = Target::answer_after_end().unwrap();
    let (mut terminal, stdin) = Terminal::open().unwrap();
    let port = target.address().port().to_string();
    let mut command = house.command(&["connect", SANDBOX, &port]);
    command.stdin(stdin);
    let process = Process::spawn(command).unwrap();
    terminal.type_line("1234").unwrap();
    target.next().await.until_read(5).await;
    assert!(process.is_running());
    terminal.type_end().unwrap();
    assert!(ended(&process, SOON).await.success(), "{process}");
    assert_eq!(process.stdout().to_string(), "OK 5\n");
}

#[tokio::test]
async fn much_goes_through_unchanged() {
    let house = House::new().await;
    let content = Content::new(20_000_000, 3);
    let target = Target::sink().unwrap();
    let process = connect(&house, &target);
    let mut stdin = process.take_stdin().unwrap();
    let writing = tokio::task::spawn_blocking(move || {
        for chunk in content.chunks() {
            stdin.write_all(&chunk).unwrap();
        }
    });
    writing.await.unwrap();
    assert!(ended(&process, SOON).await.success(), "{process}");
    let seen = target.next().await.until_closed().await;
    assert_eq!(seen.sha256, content.sha256());
}

/// What is said and seen when a connection to a target that greets is ended by `cause`.
async fn cli_08(house: &mut House, target: &Target, cause: impl AsyncFnOnce(&mut House)) -> String {
    let process = connect(house, target);
    process.line("220").await;
    cause(house).await;
    assert_eq!(ended(&process, SOON).await.code(), Some(1), "{process}");
    assert_eq!(process.stdout().to_string(), "220 ready\n", "{process}");
    let said = process.stderr().to_string();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("error: cannot go on"), "{said}");
    said
}

fn greeter() -> Target {
    Target::start([Step::Send("220 ready\n".into()), Step::Cue, Step::Reset]).unwrap()
}

#[tokio::test]
async fn cli_08_stdout_holds_payload_only_when_the_target_resets() {
    let mut house = House::new().await;
    let target = greeter();
    let reset = async |_: &mut House| target.next().await.cue();
    let said = cli_08(&mut house, &target, reset).await;
    assert!(said.contains("TARGET_RESET"), "{said}");
}

#[tokio::test]
async fn cli_08_stdout_holds_payload_only_when_a_hop_is_lost() {
    let mut house = House::new().await;
    let target = greeter();
    let said = cli_08(&mut house, &target, async |house: &mut House| {
        house.supervisor.kill()
    })
    .await;
    assert!(said.contains("SUPERVISOR_LOST"), "{said}");
    house.supervisor_back().await;
    let said = cli_08(&mut house, &target, async |house: &mut House| {
        house.gateway.kill()
    })
    .await;
    assert!(said.contains("TRANSPORT_LOST"), "{said}");
}

#[tokio::test]
async fn cli_08_stdout_holds_payload_only_when_an_operator_ends_it() {
    let mut house = House::new().await;
    let target = greeter();
    let close_stream = async |house: &mut House| {
        let streams = house.json(&["streams"]).await;
        house
            .output(&["streams", "close", streams[0]["id"].as_str().unwrap()])
            .await;
    };
    let said = cli_08(&mut house, &target, close_stream).await;
    assert!(said.contains("OPERATOR_CLOSED"), "{said}");
    let kick = async |house: &mut House| {
        house.output(&["sessions", "close", SANDBOX]).await;
    };
    let said = cli_08(&mut house, &target, kick).await;
    assert!(said.contains("OPERATOR_CLOSED"), "{said}");
    house.supervisor_back().await;
    let delete = async |house: &mut House| {
        house.output(&["sandboxes", "delete", SANDBOX]).await;
    };
    cli_08(&mut house, &target, delete).await;
}

#[tokio::test]
async fn cli_06_ctrl_c_ends_a_call_to_a_gateway_that_does_not_answer() {
    let house = House::new().await;
    house.gateway.stop();
    let process = house.run(&["connect", SANDBOX, "7"]);
    // Its connection stands in the kernel's queue, and nobody will ever answer.
    let asked = async || !tidegate_testkit::probe::open_sockets(process.id()).is_empty();
    tidegate_testkit::wait::until_async(SOON, asked)
        .await
        .unwrap();
    process.interrupt();
    assert_eq!(ended(&process, SOON).await.code(), Some(130), "{process}");
    assert_eq!(process.stdout().to_string(), "");
    house.gateway.resume();
}

#[tokio::test]
async fn cli_08_stdout_is_empty_when_the_way_does_not_open() {
    let house = House::new().await;
    let target = Target::echo().unwrap();
    let port = target.address().port().to_string();
    drop(target);
    // Asking for JSON does not make stdout anything but payload.
    let process = house.run(&["connect", SANDBOX, &port, "--output", "json"]);
    assert_eq!(ended(&process, SOON).await.code(), Some(1));
    assert_eq!(process.stdout().to_string(), "");
    let said = process.stderr().to_string();
    assert!(said.contains("TARGET_REFUSED"), "{said}");
}

#[tokio::test]
async fn ctrl_c_resets_the_target_although_stdin_is_being_read() {
    let house = House::new().await;
    let target = Target::start([Step::Send("220 ready\n".into()), Step::ReadToEnd]).unwrap();
    let process = connect(&house, &target);
    process.line("220").await;
    process.interrupt();
    let status = ended(&process, Duration::from_secs(1)).await;
    assert_eq!(status.code(), Some(130));
    let seen = target.next().await.until_reset(GENEROUS).await;
    assert_eq!(seen.read_end, Some(Ended::Reset));
}

#[tokio::test]
async fn a_closed_stdout_before_the_targets_end_is_a_sentence() {
    let house = House::new().await;
    let target = Target::endless().unwrap();
    let port = target.address().port().to_string();
    let mut command = house.command(&["connect", SANDBOX, &port]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdout(writer).stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    let output = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap());
    let output = output.await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("nobody reads stdout any more"), "{said}");
}
