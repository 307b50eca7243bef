//! `tidegate exec` without a terminal of its own

use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_testkit::probe;
use tidegate_testkit::process::{Process, Terminal};
use tidegate_testkit::wait::{GENEROUS, until, until_looking};

use crate::house::{House, SANDBOX, SOON, ended};

/// The arguments of an exec of `command` with `options`.
fn line<'a>(options: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    [&["exec"], options, &[SANDBOX, "--"], command].concat()
}

/// What a command ended with, and what it wrote to stdout and stderr.
async fn seen(house: &House, options: &[&str], command: &[&str]) -> (i32, String, String) {
    let process = house.run(&line(options, command));
    let code = ended(&process, SOON).await.code().unwrap();
    let (out, err) = (process.stdout().to_string(), process.stderr().to_string());
    (code, out, err)
}

/// The process that a command says it is, in its first line.
async fn pid_of(process: &Process) -> u32 {
    let line = process.line("pid").await;
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

fn gone(pid: u32) {
    until(Duration::from_secs(5), || !probe::is_alive(pid)).unwrap();
}

#[tokio::test]
async fn outputs_and_codes_are_the_commands_own() {
    let house = House::new().await;
    let script = "echo out; echo err >&2; exit 7";
    let expected = (7, "out\n".to_owned(), "err\n".to_owned());
    assert_eq!(seen(&house, &[], &["sh", "-c", script]).await, expected);
    for (signal, code) in [("KILL", 137), ("TERM", 143), ("SEGV", 139)] {
        let script = format!("kill -{signal} $$");
        let (seen, ..) = seen(&house, &[], &["sh", "-c", &script]).await;
        assert_eq!(seen, code, "{signal}");
    }
    let argument = "$(id); *";
    let (_, out, _) = seen(&house, &[], &["printf", "%s\\n", argument]).await;
    assert_eq!(out, format!("{argument}\n"));
}

#[tokio::test]
async fn ex_36_a_command_that_does_not_start_is_not_mistaken_for_one_that_fails() {
    let house = House::new().await;
    for (command, code, word) in [
        ("no-such-program", 127, "EXEC_NOT_FOUND"),
        ("/etc/passwd", 126, "EXEC_NOT_EXECUTABLE"),
    ] {
        let (seen, out, err) = seen(&house, &[], &[command]).await;
        assert_eq!((seen, out.as_str()), (code, ""), "{err}");
        assert!(err.starts_with("error: ") && err.contains(word), "{err}");
    }
    let (code, _, err) = seen(&house, &[], &["sh", "-c", "exit 127"]).await;
    assert_eq!((code, err.as_str()), (127, ""));
    let (code, _, err) = seen(&house, &["-w", "/no/where"], &["true"]).await;
    assert_eq!(code, 125, "{err}");
    assert!(err.contains("EXEC_BAD_WORKDIR"), "{err}");
}

#[tokio::test]
async fn what_cannot_be_understood_is_125() {
    let house = House::new().await;
    for args in [
        &["exec", SANDBOX][..],
        &["exec", "--timeout", "soon", SANDBOX, "--", "true"],
        &["exec", "-e", "novalue", SANDBOX, "--", "true"],
        &["exec", "--timeout", "0", SANDBOX, "--", "true"],
        &["exec", "-t", "--stderr-limit", "1", SANDBOX, "--", "true"],
    ] {
        let process = house.run(args);
        assert_eq!(ended(&process, SOON).await.code(), Some(125), "{process}");
    }
}

#[tokio::test]
async fn stdin_is_sent_and_its_end_is_only_its_end() {
    let house = House::new().await;
    let process = house.run_with_stdin(&line(&["-i"], &["sh", "-c", "cat; sleep 1; echo done"]));
    let mut stdin = process.take_stdin().unwrap();
    stdin.write_all(b"hi\n").unwrap();
    drop(stdin);
    assert!(ended(&process, SOON).await.success(), "{process}");
    assert_eq!(process.stdout().to_string(), "hi\ndone\n");
}

#[tokio::test]
async fn ex_09_a_stdin_that_stays_open_holds_nothing_up() {
    let house = House::new().await;
    let process = house.run_with_stdin(&line(&["-i"], &["true"]));
    let stdin = process.take_stdin().unwrap();
    let status = ended(&process, Duration::from_secs(2)).await;
    assert!(status.success(), "{process}");
    drop(stdin);
}

#[tokio::test]
async fn cli_11_a_terminal_is_read_only_if_it_is_asked_for() {
    let house = House::new().await;
    let (terminal, stdin) = Terminal::open().unwrap();
    let mut command = house.command(&line(&[], &["cat"]));
    command.stdin(stdin);
    let process = Process::spawn(command).unwrap();
    assert!(ended(&process, Duration::from_secs(2)).await.success());
    assert_eq!(process.stdout().to_string(), "");
    drop(terminal);

    let (mut terminal, stdin) = Terminal::open().unwrap();
    let mut command = house.command(&line(&["-i"], &["cat"]));
    command.stdin(stdin);
    let process = Process::spawn(command).unwrap();
    terminal.type_line("typed").unwrap();
    process.line("typed").await;
    terminal.type_end().unwrap();
    assert!(ended(&process, SOON).await.success(), "{process}");
}

#[tokio::test]
async fn ex_31_its_time_is_a_result() {
    let house = House::new().await;
    // Of one that ends by itself, long after its time, the code would be its own.
    let script = "sleep 8; exit 3";
    let (code, _, err) = seen(&house, &["--timeout", "1s"], &["sh", "-c", script]).await;
    assert_eq!(code, 124);
    assert!(err.contains("time") && err.contains("1s"), "{err}");
}

#[tokio::test]
async fn variables_and_folder_are_the_commands() {
    let house = House::new().await;
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("env");
    std::fs::write(&file, "# file\nA=file\nB=two words\n").unwrap();
    let options = [
        "--env-file",
        file.to_str().unwrap(),
        "-e",
        "A=flag",
        "-w",
        "/",
    ];
    let (_, out, err) = seen(&house, &options, &["sh", "-c", "echo $A,$B,$(pwd)"]).await;
    assert_eq!(out, "flag,two words,/\n", "{err}");
    std::fs::write(&file, "A=1\nnothing\n").unwrap();
    let (code, _, err) = seen(&house, &options, &["true"]).await;
    assert_eq!(code, 125);
    assert!(err.contains("line 2"), "{err}");
}

#[tokio::test]
async fn json_is_one_object() {
    let house = House::new().await;
    let script = "printf ' \\n'; printf '\\377' >&2; exit 3";
    let options = ["--output", "json"];
    let (code, out, _) = seen(&house, &options, &["sh", "-c", script]).await;
    let object: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, 3);
    let keys: Vec<_> = object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        [
            "schemaVersion",
            "stdout",
            "stdoutEncoding",
            "stderr",
            "stderrEncoding",
            "exitCode",
            "signal",
            "reason",
            "timedOut",
            "cancelled",
            "truncated",
            "heldOpen",
            "killScope",
            "leftover",
            "durationMs",
            "streamId",
            "sessionId",
        ]
    );
    assert_eq!(
        (&object["stdout"], &object["stdoutEncoding"]),
        (&json!(" \n"), &json!("utf-8"))
    );
    assert_eq!(
        (&object["stderr"], &object["stderrEncoding"]),
        (&json!("/w=="), &json!("base64"))
    );
    assert_eq!(
        (&object["exitCode"], &object["signal"]),
        (&json!(3), &Value::Null)
    );
    assert_eq!(
        (&object["reason"], &object["truncated"]),
        (&json!("PROCESS_EXITED"), &Value::Null)
    );
    assert!(object["streamId"].is_string() && object["sessionId"].is_string());

    let (code, out, _) = seen(&house, &options, &["no-such-program"]).await;
    let object: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, &object["error"]["reason"]),
        (127, &json!("EXEC_NOT_FOUND"))
    );

    let options = ["--output", "json", "--timeout", "1s"];
    let (code, out, _) = seen(&house, &options, &["sleep", "60"]).await;
    let object: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &object["timedOut"]), (124, &json!(true)));
    assert_eq!(object["reason"], "OPERATION_TIMEOUT");
}

#[tokio::test]
async fn a_cut_is_told() {
    let house = House::new().await;
    let command = ["head", "-c", "11000000", "/dev/zero"];
    let options = ["--output", "json", "--stdout-limit", "1MiB"];
    let (code, out, _) = seen(&house, &options, &command).await;
    let object: Value = serde_json::from_str(&out).unwrap();
    let counts = json!({ "stdout": { "total": 11_000_000, "sent": 1_048_576 } });
    assert_eq!((code, &object["truncated"]), (0, &counts));
    let (code, _, err) = seen(&house, &["--stdout-limit", "10"], &["seq", "100"]).await;
    assert_eq!(code, 0);
    assert!(err.contains("stdout is cut: 10 B of 292 B"), "{err}");
}

#[tokio::test]
async fn cli_06_ctrl_c_interrupts_the_command() {
    let house = House::new().await;
    let process = house.run(&line(&[], &["sh", "-c", "echo pid $$; exec sleep 300"]));
    let pid = pid_of(&process).await;
    process.interrupt();
    assert_eq!(
        ended(&process, Duration::from_secs(2)).await.code(),
        Some(130)
    );
    gone(pid);
}

#[tokio::test]
async fn cli_06_ctrl_c_twice_ends_a_command_that_does_not_mind() {
    let house = House::new().await;
    let script = "trap 'echo not now' INT; echo pid $$; while :; do sleep 0.1; done";
    let process = house.run(&line(&[], &["sh", "-c", script]));
    let pid = pid_of(&process).await;
    process.interrupt();
    process.line("not now").await;
    assert!(process.is_running());
    process.interrupt();
    assert_eq!(
        ended(&process, Duration::from_secs(1)).await.code(),
        Some(130)
    );
    gone(pid);
}

#[tokio::test]
async fn ctrl_c_twice_gets_past_stdin_that_nobody_reads() {
    let house = House::new().await;
    let script = "trap 'echo not now' INT; echo pid $$; while :; do sleep 0.1; done";
    let process = house.run_with_stdin(&line(&["-i"], &["sh", "-c", script]));
    let pid = pid_of(&process).await;
    let written = Arc::new(AtomicUsize::new(0));
    let (mut stdin, count) = (process.take_stdin().unwrap(), Arc::clone(&written));
    // It ends when nobody can read any more.
    let writer = std::thread::spawn(move || {
        while stdin.write_all(&[0; 4096]).is_ok() {
            count.fetch_add(4096, Ordering::Relaxed);
        }
    });
    let mut last = 0;
    let is_full = || {
        let before = std::mem::replace(&mut last, written.load(Ordering::Relaxed));
        last > 1 << 20 && last == before
    };
    let pause = Duration::from_millis(500);
    until_looking(pause, GENEROUS, is_full).unwrap();
    process.interrupt();
    // Two signals at once would be one.
    let again = || {
        process.interrupt();
        !process.is_running()
    };
    until_looking(pause, SOON, again).unwrap();
    assert_eq!(ended(&process, SOON).await.code(), Some(130));
    gone(pid);
    writer.join().unwrap();
}

#[tokio::test]
async fn cli_06_ctrl_c_ends_a_call_to_a_gateway_that_does_not_answer() {
    let house = House::new().await;
    house.gateway.stop();
    let process = house.run(&line(&[], &["true"]));
    let asked = async || !probe::open_sockets(process.id()).is_empty();
    tidegate_testkit::wait::until_async(SOON, asked)
        .await
        .unwrap();
    process.interrupt();
    assert_eq!(
        ended(&process, Duration::from_secs(1)).await.code(),
        Some(130)
    );
    house.gateway.resume();
}

#[tokio::test]
async fn ex_13_a_caller_that_is_killed_leaves_nothing_behind() {
    let house = House::new().await;
    let script = "echo pid $$; sleep 301 & exec sleep 302";
    let process = house.run(&line(&[], &["sh", "-c", script]));
    let pid = pid_of(&process).await;
    process.kill();
    gone(pid);
}

#[tokio::test]
async fn a_stdin_that_cannot_be_read_is_no_end_of_stdin() {
    let house = House::new().await;
    let mut command = house.command(&line(&["-i"], &["cat"]));
    // A folder can be opened, and every read of it fails.
    command.stdin(std::fs::File::open("/").unwrap());
    let process = Process::spawn(command).unwrap();
    assert_eq!(ended(&process, SOON).await.code(), Some(125), "{process}");
    let said = process.stderr().to_string();
    assert!(said.contains("cannot read stdin"), "{said}");
}

#[tokio::test]
async fn who_does_not_read_any_more_stops_the_producer() {
    let house = House::new().await;
    let (reader, writer) = std::io::pipe().unwrap();
    let script = "echo pid $$ >&2; exec yes";
    let mut command = house.command(&line(&[], &["sh", "-c", script]));
    command.stdout(writer).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The test's own copy of the writing end.
    drop(command);
    let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut pid = String::new();
    std::io::BufRead::read_line(&mut said, &mut pid).unwrap();
    let pid: u32 = pid.trim().trim_start_matches("pid ").parse().unwrap();
    drop(reader);
    let status = tokio::task::spawn_blocking(move || child.wait()).await;
    assert_eq!(status.unwrap().unwrap().code(), Some(141));
    gone(pid);
}

#[tokio::test]
async fn ex_17_a_lost_hop_is_no_result() {
    let mut house = House::new().await;
    let process = house.run(&line(&[], &["sh", "-c", "echo pid $$; exec sleep 300"]));
    let pid = pid_of(&process).await;
    house.supervisor.kill();
    assert_eq!(ended(&process, SOON).await.code(), Some(125), "{process}");
    let err = process.stderr().to_string();
    assert!(err.contains("SUPERVISOR_LOST"), "{err}");
    gone(pid);

    house.supervisor_back().await;
    let process = house.run(&line(&["--output", "json"], &["sleep", "300"]));
    until(GENEROUS, || !probe::open_sockets(process.id()).is_empty()).unwrap();
    house.json(&["streams"]).await;
    house.gateway.kill();
    assert_eq!(ended(&process, SOON).await.code(), Some(125), "{process}");
    let object: Value = serde_json::from_str(&process.stdout().to_string()).unwrap();
    assert_eq!(object["error"]["reason"], "TRANSPORT_LOST");
}
