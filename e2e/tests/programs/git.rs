//! git over its own protocol: clone, then push.

use std::process::Command;

use tempfile::TempDir;
use tidegate_e2e::tools::{free_port, local, shell, until_listening};
use tidegate_testkit::process::Process;

use crate::plain;

/// A daemon that serves one repository of some megabytes and takes pushes.
struct GitDaemon {
    folder: TempDir,
    _process: Process,
    port: u16,
}

impl GitDaemon {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let make = "cd $1; git init --quiet --initial-branch main work; cd work
            git config user.name e2e; git config user.email e2e@localhost
            for i in $(seq 20); do
              head -c 400000 /dev/urandom > file-$i; git add .; git commit --quiet -m \"number $i\"
            done
            git clone --quiet --bare . ../repository.git";
        shell(make, &[folder.path()]).await;
        let port = free_port();
        let mut command = Command::new("git");
        command.args([
            "daemon",
            "--export-all",
            "--enable=receive-pack",
            "--reuseaddr",
        ]);
        command.args(["--listen=127.0.0.1", &format!("--port={port}")]);
        command.arg(format!("--base-path={}", folder.path().display()));
        let process = Process::spawn(command).unwrap();
        until_listening(&process, port).await;
        Self {
            folder,
            _process: process,
            port,
        }
    }
}

#[tokio::test]
async fn git_clones_and_pushes() {
    let (world, daemon) = tokio::join!(plain(), GitDaemon::start());
    let forward = world.forward_to(&local(daemon.port)).await;
    let script = "cd $1; git clone --quiet git://127.0.0.1:$2/repository.git clone
        cd clone; git fsck --full --strict 2>&1 | grep -v '^dangling' || true
        test $(git rev-parse HEAD) = $(git -C ../repository.git rev-parse main)
        git config user.name e2e; git config user.email e2e@localhost
        head -c 3000000 /dev/urandom > more; git add .; git commit --quiet -m more
        git push --quiet origin main
        test $(git rev-parse HEAD) = $(git -C ../repository.git rev-parse main)
        git -C ../repository.git rev-list --count main";
    let folder = daemon.folder.path();
    let said = shell(
        script,
        &[
            folder.as_os_str(),
            forward.address().port().to_string().as_ref(),
        ],
    )
    .await;
    assert_eq!(said, "21\n");
    world.settle().await;
}
