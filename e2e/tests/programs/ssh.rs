//! ssh, scp and rsync with `ProxyCommand tidegate connect`, to an sshd of its own: one that listens
//! on a port, and one that is started for each connection to a Unix socket.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use tempfile::TempDir;
use tidegate_e2e::tools::{daemon, free_port, shell, until_listening};
use tidegate_e2e::{Options, SANDBOX, Topology, World, every_topology};
use tidegate_testkit::process::{Process, binary};

/// Keys and configuration of a server, and of a client that trusts it and is trusted.
struct Keys(TempDir);

impl Keys {
    async fn new() -> Self {
        let keys = Self(tempfile::tempdir().unwrap());
        let make = "cd $1; mkdir -p /run/sshd
            for key in host user; do ssh-keygen -q -t ed25519 -N '' -f $key; done
            echo \"sandbox $(cat host.pub)\" > known_hosts
            printf '%s\\n' \"HostKey $1/host\" \"AuthorizedKeysFile $1/user.pub\" 'StrictModes no' \
              'UsePAM no' 'PidFile none' 'PermitRootLogin prohibit-password' \
              'PasswordAuthentication no' 'Subsystem sftp internal-sftp' > sshd_config";
        shell(make, &[keys.folder()]).await;
        keys
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    fn sshd(&self) -> Command {
        let mut command = daemon("sshd");
        command.arg("-f").arg(self.file("sshd_config")).arg("-e");
        command
    }

    /// Writes the client's configuration, in which `host` is reached by the command `proxy`.
    fn configure(&self, proxy: &str) {
        let folder = self.folder().display();
        let text = format!(
            "Host *\n  ProxyCommand {proxy}\n  IdentityFile {folder}/user\n  IdentitiesOnly yes\n  \
             UserKnownHostsFile {folder}/known_hosts\n  HostKeyAlias sandbox\n  \
             StrictHostKeyChecking yes\n  BatchMode yes\n  LogLevel ERROR\n"
        );
        fs::write(self.file("ssh_config"), text).unwrap();
    }
}

/// `tidegate connect` with everything it must be told.
fn connect(world: &World, target: &str) -> String {
    let access = world.access();
    let mut words = vec![binary("tidegate").unwrap().display().to_string()];
    words.extend(access.gateways.iter().map(|url| format!("--gateway {url}")));
    let files = [
        ("ca", access.ca),
        ("cert", access.cert),
        ("key", access.key),
    ];
    for (flag, path) in files {
        words.extend(path.map(|path| format!("--{flag} {}", path.display())));
    }
    words.push(format!("connect %h {target}"));
    words.join(" ")
}

/// Works on the host that the configuration leads to, as people do.
async fn work(keys: &Keys) {
    let script = "cd $1; host=$2; ssh=\"ssh -F $1/ssh_config\"
        mkdir there here; head -c 30000000 /dev/urandom > here/large
        for i in $(seq 200); do echo $i > here/file-$i; done
        test \"$($ssh $host 'cat; echo over' <<< words)\" = $'words\\nover'
        $ssh $host 'exit 7' && exit 1 || test $? = 7
        $ssh $host \"cat > $1/there/piped\" < here/large; cmp here/large there/piped
        $ssh $host \"cat $1/here/large\" | cmp - here/large
        scp -q -F ssh_config -r here $host:$1/there/copied; diff -r here there/copied
        scp -q -F ssh_config $host:$1/here/large back; cmp here/large back
        rsync -a -e \"$ssh\" here/ $host:$1/there/synced/; diff -r here there/synced
        echo more >> here/large; rm here/file-7
        rsync -a --delete --checksum -e \"$ssh\" here/ $host:$1/there/synced/; diff -r here there/synced
        rm -r there here back; echo done";
    let said = shell(script, &[keys.folder(), Path::new(SANDBOX)]).await;
    assert_eq!(said, "done\n");
}

async fn people_work_over_a_port(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let keys = Keys::new().await;
    let port = free_port();
    let mut command = keys.sshd();
    command.args([
        "-D",
        "-o",
        "ListenAddress=127.0.0.1",
        "-p",
        &port.to_string(),
    ]);
    let sshd = Process::spawn(command).unwrap();
    until_listening(&sshd, port).await;
    keys.configure(&connect(&world, &port.to_string()));
    work(&keys).await;
    world.settle().await;
}

async fn people_work_over_the_ssh_socket(topology: Topology) {
    let keys = Keys::new().await;
    let socket = keys.file("socket");
    let options = Options::new().supervisor("ssh_socket", socket.to_str().unwrap());
    let world = World::start(topology, options).await;
    let listener = UnixListener::bind(&socket).unwrap();
    let program = keys.file("sshd_config");
    thread::spawn(move || activate(&listener, &program));
    keys.configure(&connect(&world, "ssh"));
    work(&keys).await;
    world.settle().await;
}

/// Starts an sshd for each connection, as inetd does, for as long as the test lives.
fn activate(listener: &UnixListener, configuration: &Path) {
    let mut running = Vec::new();
    for connection in listener.incoming().map_while(Result::ok) {
        let end = |stream: &UnixStream| Stdio::from(OwnedFd::from(stream.try_clone().unwrap()));
        let mut command = daemon("sshd");
        command.arg("-i").arg("-f").arg(configuration);
        command.stdin(end(&connection)).stdout(end(&connection));
        running.push(command.stderr(Stdio::null()).spawn().unwrap());
    }
}

every_topology!(people_work_over_a_port, people_work_over_the_ssh_socket);
