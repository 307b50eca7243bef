//! Tables, contexts, and what is said when something cannot be used.

use serde_json::Value;
use tidegate_testkit::process::Process;
use tidegate_testkit::socket::Socket;
use tidegate_testkit::target::Target;

use crate::house::{House, SANDBOX, SOON, ended, tidegate};

#[tokio::test]
async fn tables_are_for_people_and_arrays_for_programs() {
    let house = House::new().await;
    let target = Target::echo().unwrap();
    let (_forward, local) = house.forward(&target, &[]).await;
    let socket = Socket::connect(local).await.unwrap();
    socket.write(b"abc").await.unwrap();
    socket.read(3).await;

    let sandboxes = house.json(&["sandboxes"]).await;
    assert_eq!(
        (&sandboxes[0]["name"], &sandboxes[0]["phase"]),
        (&SANDBOX.into(), &"READY".into())
    );
    assert_eq!(sandboxes[0]["sessions"], 1);
    assert!(sandboxes[0]["homes"][0].is_string() && sandboxes[0]["since"].is_string());
    let sessions = house.json(&["sessions"]).await;
    assert_eq!(
        (&sessions[0]["sandbox"], &sessions[0]["streams"]),
        (&SANDBOX.into(), &1.into())
    );
    let streams = house.json(&["streams", "--sandbox", SANDBOX]).await;
    let stream = &streams[0];
    assert_eq!(
        (&stream["kind"], &stream["state"]),
        (&"forward".into(), &"open".into())
    );
    assert_eq!(
        (&stream["bytesUp"], &stream["bytesDown"]),
        (&3.into(), &3.into())
    );
    assert_eq!(
        house.json(&["streams", "--sandbox", "other"]).await,
        Value::Array(vec![])
    );

    let table = house.output(&["streams"]).await;
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(lines.len(), 2, "{table}");
    assert!(
        lines[0].starts_with("ID") && lines[1].contains("localhost:"),
        "{table}"
    );
    assert!(!table.contains('\u{1b}'), "{table}");
    assert!(
        house
            .output(&["streams", "--color", "always"])
            .await
            .contains('\u{1b}')
    );
}

#[tokio::test]
async fn a_failure_is_an_object_for_programs_and_a_sentence_for_people() {
    let house = House::new().await;
    let process = house.run(&["streams", "close", "nothing", "--output", "json"]);
    assert_eq!(ended(&process, SOON).await.code(), Some(1));
    let told: Value = serde_json::from_str(&process.stdout().to_string()).unwrap();
    assert_eq!(told["error"]["reason"], "CHANNEL_UNKNOWN");
    assert_eq!(told["error"]["code"], "NOT_FOUND");
    assert_eq!(told["error"]["origin"], "gateway");
    assert!(told["error"]["hops"].is_array());
    assert_eq!(process.stderr().to_string(), "");
    let process = house.run(&["streams", "close", "nothing"]);
    assert_eq!(ended(&process, SOON).await.code(), Some(1));
    assert_eq!(process.stdout().to_string(), "");
    let said = process.stderr().to_string();
    assert!(
        said.starts_with("error: cannot close stream nothing: "),
        "{said}"
    );
}

#[tokio::test]
async fn a_gateway_that_is_away_is_named() {
    let home = tempfile::tempdir().unwrap();
    let args = ["sandboxes", "--gateway", "http://127.0.0.1:1"];
    let process = Process::spawn(tidegate(home.path(), &args)).unwrap();
    assert_eq!(ended(&process, SOON).await.code(), Some(1));
    let said = process.stderr().to_string();
    for part in [
        "cannot list the sandboxes",
        "http://127.0.0.1:1",
        "refused",
        "tidegate dev",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
}

#[tokio::test]
async fn a_context_stands_for_a_gateway() {
    let house = House::new().await;
    let home = tempfile::tempdir().unwrap();
    let run = async |args: &[&str]| {
        let process = Process::spawn(tidegate(home.path(), args)).unwrap();
        let code = ended(&process, SOON).await.code();
        (
            code,
            process.stdout().to_string(),
            process.stderr().to_string(),
        )
    };
    let url = format!("http://{}", house.address);
    assert_eq!(
        run(&["context", "add", "here", "--gateway", &url]).await.0,
        Some(0)
    );
    assert_eq!(
        run(&["context", "add", "away", "--gateway", "http://127.0.0.1:1"])
            .await
            .0,
        Some(0)
    );
    assert!(run(&["sandboxes"]).await.1.contains(SANDBOX));
    assert_eq!(run(&["context", "use", "away"]).await.0, Some(0));
    assert_eq!(run(&["sandboxes"]).await.0, Some(1));
    assert!(
        run(&["sandboxes", "--context", "here"])
            .await
            .1
            .contains(SANDBOX)
    );
    let listed: Value =
        serde_json::from_str(&run(&["context", "list", "--output", "json"]).await.1).unwrap();
    assert_eq!(
        (&listed[0]["name"], &listed[0]["current"]),
        (&"away".into(), &true.into())
    );
    assert_eq!(run(&["context", "remove", "away"]).await.0, Some(0));
    let (code, _, said) = run(&["context", "use", "away"]).await;
    assert_eq!(code, Some(1));
    assert!(said.contains("away"), "{said}");
    let (code, _, said) = run(&["context", "add", "bad", "--gateway", "ftp://x"]).await;
    assert_eq!(code, Some(2));
    assert!(said.contains("ftp://x"), "{said}");
    let (code, _, said) = run(&[
        "context",
        "add",
        "bad",
        "--gateway",
        "https://x",
        "--ca",
        "/none",
    ])
    .await;
    assert_eq!(code, Some(1));
    let of_the_file = said.contains("/none") && !said.contains("--gateway");
    assert!(of_the_file, "the remedy is for what is wrong: {said}");
    let (code, _, said) = run(&["context", "add", "bad"]).await;
    assert_eq!(code, Some(1));
    assert!(said.contains("--gateway"), "{said}");
}

#[tokio::test]
async fn a_context_has_the_gateway_of_the_environment() {
    let home = tempfile::tempdir().unwrap();
    let mut add = tidegate(home.path(), &["context", "add", "work"]);
    add.env("TIDEGATE_GATEWAY", "http://127.0.0.1:1");
    let process = Process::spawn(add).unwrap();
    assert!(ended(&process, SOON).await.success(), "{process}");
    let list = tidegate(home.path(), &["context", "list"]);
    let process = Process::spawn(list).unwrap();
    assert!(ended(&process, SOON).await.success(), "{process}");
    let listed = process.stdout().to_string();
    assert!(listed.contains("http://127.0.0.1:1"), "{listed}");
}

#[tokio::test]
async fn an_unknown_key_in_the_configuration_is_named() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("tidegate")).unwrap();
    let file = home.path().join("tidegate/config.toml");
    std::fs::write(&file, "kontext = \"work\"\n").unwrap();
    let process = Process::spawn(tidegate(home.path(), &["sandboxes"])).unwrap();
    assert_eq!(ended(&process, SOON).await.code(), Some(1));
    let said = process.stderr().to_string();
    assert!(
        said.contains("kontext") && said.contains("config.toml"),
        "{said}"
    );
}

#[tokio::test]
async fn completions_and_manuals_are_written() {
    let home = tempfile::tempdir().unwrap();
    let run = async |args: &[&str]| {
        let process = Process::spawn(tidegate(home.path(), args)).unwrap();
        assert!(ended(&process, SOON).await.success(), "{process}");
        process.stdout().to_string()
    };
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]).await;
        for word in ["port-forward", "exec", "--kill-background", "cp"] {
            assert!(
                script.contains(word.trim_start_matches('-')),
                "{word} in {shell}"
            );
        }
    }
    assert!(run(&["man"]).await.contains(".TH tidegate 1"));
    let folder = home.path().join("man1");
    run(&["man", folder.to_str().unwrap()]).await;
    for page in [
        "tidegate.1",
        "tidegate-port-forward.1",
        "tidegate-exec.1",
        "tidegate-cp.1",
        "tidegate-context-add.1",
    ] {
        assert!(folder.join(page).is_file(), "{page}");
    }
    assert!(!folder.join("tidegate-demo-part.1").exists());
}

#[tokio::test]
async fn nobody_who_reads_is_the_quiet_end() {
    let home = tempfile::tempdir().unwrap();
    let mut command = tidegate(home.path(), &["completions", "bash"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdout(writer).stderr(std::process::Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
