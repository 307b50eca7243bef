//! psql, against a Postgres of its own: COPY carries a table out and in again.

use std::{fs, process::Command};

use tempfile::TempDir;
use tidegate_e2e::tools::{free_port, local, shell};
use tidegate_testkit::process::Process;

use crate::plain;

/// Rows of the table that is copied, 26 MB as text.
const ROWS: u32 = 300_000;

struct Postgres {
    _folder: TempDir,
    _process: Process,
    port: u16,
}

impl Postgres {
    /// Starts one as the user `postgres`, since it refuses to run as root.
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let programs = fs::read_dir("/usr/lib/postgresql").unwrap();
        let newest = programs.flatten().map(|entry| entry.path()).max().unwrap();
        let programs = newest.join("bin");
        let port = free_port();
        let make = "chown postgres $1; cd $1
            runuser -u postgres -- $2/initdb --no-sync --auth trust --locale C --encoding UTF8 $1/data";
        shell(make, &[path.as_ref(), programs.as_os_str()]).await;
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]);
        command.arg(programs.join("postgres")).arg("-D");
        command.arg(folder.path().join("data")).args(["-k", path]);
        command.args(["-F", "-h", "127.0.0.1", "-p", &port.to_string()]);
        command.current_dir(path);
        let process = Process::spawn(command).unwrap();
        process.line("ready to accept connections").await;
        Self {
            _folder: folder,
            _process: process,
            port,
        }
    }
}

/// Runs SQL on a port of the loopback, `$2` its arguments, with a plain protocol without TLS.
async fn psql(port: u16, script: &str) -> String {
    let connection =
        format!("host=127.0.0.1 port={port} user=postgres dbname=postgres sslmode=disable");
    let script = format!(
        "sql() {{ psql --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 \"$C\" -c \"$1\"; }}
         C=$1; {script}"
    );
    shell(&script, &[connection]).await
}

#[tokio::test]
async fn psql_copies_a_table_out_and_in() {
    let (world, postgres) = tokio::join!(plain(), Postgres::start());
    let forward = world.forward_to(&local(postgres.port)).await;
    let fill = format!(
        "sql \"create table source as select i as id, md5(i::text) || md5((i * 7)::text) as text
               from generate_series(1, {ROWS}) i; create table copy (like source)\""
    );
    psql(postgres.port, &fill).await;
    let out = "sql 'copy source to stdout' | sha256sum";
    let direct = psql(postgres.port, out).await;
    assert_eq!(psql(forward.address().port(), out).await, direct);

    let both =
        "sql 'copy source to stdout' | sql 'copy copy from stdin'; sql 'select count(*) from copy'";
    assert_eq!(
        psql(forward.address().port(), both).await,
        format!("{ROWS}\n")
    );
    let copied = "sql 'copy copy to stdout' | sha256sum";
    assert_eq!(psql(postgres.port, copied).await, direct);
    world.settle().await;
}
