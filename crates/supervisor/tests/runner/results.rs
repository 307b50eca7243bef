//! How commands end, and why some do not start.

use std::time::Duration;

use tidegate_lifecycle::exec::{Command, ExitReason, KillScope};
use tidegate_supervisor::runner::{RunnerConfig, StartError};

use crate::common::*;

#[tokio::test]
async fn a_code_is_a_result() {
    for scope in SCOPES {
        let runner = runner(scope);
        for code in [0, 1, 3, 126, 127, 255] {
            let ran = run(&runner, sh(&format!("exit {code}"))).await;
            assert_eq!((ran.exit.code, ran.exit.reason), (code, ExitReason::Exited));
            assert_eq!(ran.exit.signal, None);
            assert_eq!(ran.exit.leftover, 0);
        }
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn a_death_by_signal_is_told() {
    for scope in SCOPES {
        let runner = runner(scope);
        for (name, number) in [("KILL", 9), ("TERM", 15), ("SEGV", 11)] {
            let ran = run(&runner, sh(&format!("kill -{name} $$"))).await;
            let exit = ran.exit;
            assert_eq!((exit.code, exit.signal), (128 + number, Some(number)));
            assert_eq!(exit.reason, ExitReason::Signaled);
        }
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn the_scope_is_in_the_result() {
    for (scope, expected) in SCOPES
        .into_iter()
        .zip([KillScope::Cgroup, KillScope::Reaper])
    {
        let runner = runner(scope);
        assert_eq!(runner.scope(), expected);
        assert_eq!(run(&runner, argv(&["true"])).await.exit.scope, expected);
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn arguments_are_taken_as_they_are() {
    for scope in SCOPES {
        let runner = runner(scope);
        let ran = run(&runner, argv(&["printf", "%s", "$(id); *"])).await;
        assert_eq!(ran.stdout(), "$(id); *");
        let ran = run(&runner, argv(&["printf", "[%s]", "", " a  b ", "ü\n"])).await;
        assert_eq!(ran.stdout(), "[][ a  b ][ü\n]");
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn the_environment_is_what_was_configured_and_asked_for() {
    for scope in SCOPES {
        let base = [("PATH", "/usr/bin:/bin"), ("A", "1"), ("B", "2")];
        let config = RunnerConfig {
            base_environment: base.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            ..config(scope)
        };
        let runner = tidegate_supervisor::runner::Runner::new(config).unwrap();
        let command = Command {
            environment: vec![("B".to_owned(), "3 4".to_owned())],
            ..argv(&["env"])
        };
        let ran = run(&runner, command).await;
        let mut lines: Vec<_> = ran.stdout().lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["A=1", "B=3 4", "PATH=/usr/bin:/bin"]);
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn a_command_starts_where_it_asked_to_and_with_three_files() {
    for scope in SCOPES {
        let runner = runner(scope);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        let command = Command {
            workdir: Some(path.to_str().unwrap().to_owned()),
            ..sh("pwd; ls /proc/$$/fd; ps -o sid= -p $$ | tr -d ' ' | grep -qx $$ && echo leads")
        };
        let ran = run(&runner, command).await;
        let expected = format!("{}\n0\n1\n2\nleads\n", path.display());
        // Shells may keep a file of their own open while they run a command.
        assert_eq!(ran.stdout().replace("\n10\n", "\n"), expected);
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn a_program_finds_signals_as_they_should_be() {
    for scope in SCOPES {
        let runner = runner(scope);
        let ran = run(
            &runner,
            sh("yes | head -n 1; grep -E 'SigBlk|SigIgn' /proc/self/status"),
        )
        .await;
        // The highest two belong to the C library of whoever started the tests.
        let expected = "y\nSigBlk:\t0000000000000000\nSigIgn:\t0000000";
        assert!(ran.stdout().starts_with(expected), "{}", ran.stdout());
        assert!(ran.stdout().ends_with("0000000\n"), "{}", ran.stdout());
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn failures_to_start_are_told_apart() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode: u32| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let plain = file("plain", "#!/bin/sh\n", 0o644);
    let orphaned = file("orphaned", "#!/no/such/interpreter\n", 0o755);
    let shapeless = file("shapeless", "exit 7\n", 0o755);
    for scope in SCOPES {
        let runner = runner(scope);
        let start = async |command: Command| runner.start(command).await.unwrap_err();
        let not_found = |error| matches!(error, StartError::NotFound { .. });
        let not_executable = |error| matches!(error, StartError::NotExecutable { .. });
        assert!(not_found(start(argv(&["no-such-program"])).await));
        assert!(not_found(start(argv(&["/no/such/program"])).await));
        assert!(not_found(start(argv(&["/bin/sh/program"])).await));
        for path in [plain.as_str(), &orphaned, &shapeless, "/tmp"] {
            let error = start(argv(&[path])).await;
            assert!(not_executable(error.clone()), "{path}: {error}");
        }
        let in_path = Command {
            environment: vec![("PATH".to_owned(), directory.path().display().to_string())],
            ..argv(&["plain"])
        };
        assert!(not_executable(start(in_path).await));
        for workdir in ["/no/such/directory", "/bin/sh"] {
            let command = Command {
                workdir: Some(workdir.to_owned()),
                ..argv(&["true"])
            };
            let error = start(command).await;
            assert!(matches!(error, StartError::BadWorkdir { .. }), "{error}");
        }
        assert!(matches!(
            start(Command::default()).await,
            StartError::Invalid(_)
        ));
        assert_eq!(run(&runner, sh("exit 127")).await.exit.code, 127);
        eventually(Duration::from_secs(2), "places are free", || {
            runner.running() == 0
        })
        .await;
        runner.stop_all().await;
        assert_eq!(zombies(), 0);
    }
}

#[tokio::test]
async fn a_program_is_looked_for_where_it_starts() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("here");
    std::fs::write(&path, "#!/bin/sh\necho found\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    for scope in SCOPES {
        let runner = runner(scope);
        let command = Command {
            workdir: Some(directory.path().display().to_string()),
            ..argv(&["./here"])
        };
        assert_eq!(run(&runner, command).await.stdout(), "found\n");
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn only_so_many_run_at_a_time() {
    for scope in SCOPES {
        let config = RunnerConfig {
            exec_limit: 1,
            ..config(scope)
        };
        let runner = tidegate_supervisor::runner::Runner::new(config).unwrap();
        let first = runner.start(argv(&["cat"])).await.unwrap();
        let refused = runner.start(argv(&["true"])).await.unwrap_err();
        assert_eq!(refused, StartError::Limit { limit: 1 });
        let (_control, mut stdin, mut events) = first.split();
        stdin.close().await;
        collect(&mut events).await;
        for _ in 0..20 {
            run(&runner, argv(&["true"])).await;
        }
        runner.stop_all().await;
        let late = runner.start(argv(&["true"])).await.unwrap_err();
        assert_eq!(late, StartError::Stopping);
    }
}
