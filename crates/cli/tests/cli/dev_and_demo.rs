//! `tidegate dev` and `tidegate demo`

use std::time::Duration;

use serde_json::Value;
use tidegate_testkit::probe;
use tidegate_testkit::process::Process;

use crate::house::{SOON, ended, event, tidegate};

#[tokio::test]
async fn the_demonstration_shows_what_is_promised_and_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let mut command = tidegate(home.path(), &["demo", "--output", "json"]);
    // Nobody is there: its parts must not ask.
    command
        .env("HTTP_PROXY", "http://127.0.0.1:1")
        .env("TIDEGATE_CONTEXT", "nowhere");
    let process = Process::spawn(command).unwrap();
    let status = ended(&process, Duration::from_secs(20)).await;
    assert!(status.success(), "{process}");
    let shown: Value = serde_json::from_str(&process.stdout().to_string()).unwrap();
    let shown = shown.as_array().unwrap();
    assert!(shown.len() >= 6, "{process}");
    for scene in shown {
        assert_eq!(scene["expected"], scene["observed"], "{scene}");
    }
    assert!(probe::descendants(process.id()).is_empty());
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn other_commands_need_no_flags_while_dev_runs() {
    let home = tempfile::tempdir().unwrap();
    let run = async |args: &[&str]| {
        let process = Process::spawn(tidegate(home.path(), args)).unwrap();
        ended(&process, SOON).await;
        process.stdout().to_string()
    };
    run(&["context", "add", "mine", "--gateway", "http://127.0.0.1:1"]).await;
    let args = [
        "dev",
        "--listen",
        "127.0.0.1:0",
        "--sandbox",
        "play",
        "--output",
        "json",
    ];
    let dev = Process::spawn(tidegate(home.path(), &args)).unwrap();
    let ready = event(&dev, "ready").await;
    assert_eq!(
        (&ready["sandbox"], &ready["context"]),
        (&"play".into(), &"dev".into())
    );
    let sandboxes = run(&["sandboxes"]).await;
    assert!(
        sandboxes.contains("play") && sandboxes.contains("READY"),
        "{sandboxes}"
    );
    dev.interrupt();
    assert_eq!(ended(&dev, SOON).await.code(), Some(130), "{dev}");
    assert_eq!(dev.stderr().to_string(), "");
    let contexts = run(&["context", "list"]).await;
    assert!(!contexts.contains("dev"), "{contexts}");
    assert!(contexts.contains("*        mine"), "{contexts}");
}
