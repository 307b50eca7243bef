//! curl, against nginx as the web server.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use tempfile::TempDir;
use tidegate_e2e::World;
use tidegate_e2e::tools::{daemon, free_port, local, shell, until_listening};
use tidegate_testkit::process::Process;

use crate::{plain, tls};

/// A web server that serves a folder and takes uploads into it.
struct WebServer {
    folder: TempDir,
    _process: Process,
    port: u16,
}

impl WebServer {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // nginx reads and writes files as another user
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let port = free_port();
        let root = folder.path().display();
        let configuration = format!(
            "daemon off; worker_processes 1; pid {root}/nginx.pid; error_log stderr warn;
             events {{ worker_connections 512; }}
             http {{
               access_log off; sendfile on; keepalive_timeout 60; client_max_body_size 0;
               client_body_temp_path {root}/temp;
               server {{ listen 127.0.0.1:{port}; root {root};
                        location / {{ dav_methods PUT; }} }}
             }}"
        );
        let file = folder.path().join("nginx.conf");
        fs::write(&file, configuration).unwrap();
        let mut command = daemon("nginx");
        command.arg("-c").arg(file).arg("-p").arg(folder.path());
        let process = Process::spawn(command).unwrap();
        until_listening(&process, port).await;
        Self {
            folder,
            _process: process,
            port,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file of random bytes.
    async fn random_file(&self, name: &str, bytes: u64) {
        let path = self.path(name);
        let (path, bytes) = (path.to_string_lossy(), bytes.to_string());
        shell(
            "head -c $2 /dev/urandom > $1; chmod a+r $1",
            &[&*path, &bytes],
        )
        .await;
    }

    async fn digest(&self, name: &str) -> String {
        shell("sha256sum < $1", &[self.path(name)]).await
    }
}

/// A gigabyte, or what `TIDEGATE_E2E_DOWNLOAD` says in bytes.
fn large() -> u64 {
    let said = std::env::var("TIDEGATE_E2E_DOWNLOAD").ok();
    said.map_or(1 << 30, |bytes| bytes.parse().expect("a number of bytes"))
}

#[tokio::test]
async fn curl_downloads_a_gigabyte_intact() {
    check_download(plain().await, large()).await;
}

#[tokio::test]
async fn curl_downloads_intact_over_tls() {
    check_download(tls().await, large() / 8).await;
}

async fn check_download(world: World, bytes: u64) {
    let server = WebServer::start().await;
    server.random_file("large", bytes).await;
    let forward = world.forward_to(&local(server.port)).await;
    let download = async {
        let script = "curl --silent --show-error --fail $1 | sha256sum";
        shell(script, &[format!("http://{}/large", forward.address())]).await
    };
    let (downloaded, original) = tokio::join!(download, server.digest("large"));
    assert_eq!(downloaded, original);
    world.settle().await;
}

#[tokio::test]
async fn curl_reuses_one_connection_for_many_requests() {
    let (world, server) = (plain().await, WebServer::start().await);
    server.random_file("small", 10_000).await;
    let forward = world.forward_to(&local(server.port)).await;
    let script = "curl --silent --show-error --fail --output /dev/null \
        --write-out '%{http_code} %{num_connects} %{size_download}\\n' \"$1/small?[1-50]\"";
    let answers = shell(script, &[format!("http://{}", forward.address())]).await;
    let answers: Vec<_> = answers.lines().collect();
    assert_eq!(answers.len(), 50);
    assert_eq!(answers[0], "200 1 10000");
    assert!(
        answers[1..].iter().all(|line| *line == "200 0 10000"),
        "{answers:?}"
    );
    world.settle().await;
}

#[tokio::test]
async fn curl_uploads_after_the_server_has_agreed() {
    let (world, server) = (plain().await, WebServer::start().await);
    server.random_file("original", 64 << 20).await;
    let forward = world.forward_to(&local(server.port)).await;
    let url = format!("http://{}/uploaded", forward.address());
    let script = "curl --silent --show-error --fail --verbose --expect100-timeout 60 \
        --header 'Expect: 100-continue' --upload-file $1 $2 2>&1 | grep '^< HTTP' | tr -d '\\r'";
    let original = server.path("original");
    let answers = shell(script, &[original.as_os_str(), url.as_ref()]).await;
    assert_eq!(answers, "< HTTP/1.1 100 Continue\n< HTTP/1.1 201 Created\n");
    assert_eq!(
        server.digest("uploaded").await,
        server.digest("original").await
    );
    world.settle().await;
}
