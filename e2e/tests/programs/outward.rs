//! A supervisor's way to its gateway: through a proxy that lets CONNECT pass, or past it, and to the
//! next of several gateways.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use tidegate_testkit::certs::Authority;
use tidegate_testkit::process::Process;
use tidegate_testkit::wait::{GENEROUS, until_async};

use crate::parts::{gateway, gateway_at, identity, protected, supervisor};

const ESTABLISHED: &str = "session established";

/// A name, variables of the environment, and whether the proxy is asked then.
type Case<'a> = (&'a str, &'a [(&'a str, String)], bool);

/// An HTTP proxy that knows CONNECT and nothing else, and what it was asked.
struct ConnectProxy {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl ConnectProxy {
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let heard = Arc::clone(&heard);
                thread::spawn(move || serve(client, &heard));
            }
        });
        Self { address, asked }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The request lines and headers so far.
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(mut client: TcpStream, heard: &Mutex<Vec<String>>) -> io::Result<()> {
    // One byte at a time, so that nothing behind the headers is read.
    let mut lines = BufReader::with_capacity(1, client.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let headers: Vec<_> = lines
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
        .collect();
    let target = first.split(' ').nth(1).unwrap_or_default().to_owned();
    note(heard, [vec![first], headers].concat());
    let server = TcpStream::connect(target)?;
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    let (up, down) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || copy(up, server));
    copy(down, client)
}

fn note(heard: &Mutex<Vec<String>>, lines: Vec<String>) {
    heard.lock().unwrap().extend(lines);
}

fn copy(mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
    io::copy(&mut from, &mut to)?;
    to.shutdown(Shutdown::Write)
}

#[tokio::test]
async fn a_supervisor_goes_through_the_proxy_or_past_it_as_it_is_told() {
    let authority = Authority::new().unwrap();
    let (_gateway, address) = gateway(protected(&authority.server().unwrap(), &authority)).await;
    let url = format!("https://{address}");
    let proxy = ConnectProxy::start();
    let through = format!("CONNECT {address} HTTP/1.1");
    let nowhere = "http://127.0.0.1:9".to_owned();
    let cases: [Case<'_>; 5] = [
        ("HTTPS_PROXY", &[("HTTPS_PROXY", proxy.url())], true),
        ("https_proxy", &[("https_proxy", proxy.url())], true),
        (
            "its own key",
            &[
                ("TIDEGATE_PROXY", proxy.url()),
                ("NO_PROXY", "127.0.0.1".into()),
            ],
            true,
        ),
        (
            "an exception",
            &[
                ("HTTPS_PROXY", proxy.url()),
                ("NO_PROXY", "10.0.0.0/8,127.0.0.1".into()),
            ],
            false,
        ),
        ("another scheme's", &[("HTTP_PROXY", nowhere)], false),
    ];
    for (case, environment, proxied) in cases {
        let before = proxy.asked().len();
        let certificate = authority.sandbox("box").unwrap();
        let mut command = supervisor(&[&url], identity(&authority.ca(), Some(&certificate)));
        command.envs(environment.iter().cloned());
        let process = Process::spawn(command).unwrap();
        process.line(ESTABLISHED).await;
        let asked = proxy.asked().split_off(before);
        assert_eq!(asked.contains(&through), proxied, "{case}: {asked:?}");
    }
}

#[tokio::test]
async fn a_supervisor_tries_the_next_gateway() {
    let first = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap();
    let (second, address) = gateway(vec!["--insecure-dev".into()]).await;
    let urls = [first, address].map(|address| format!("http://{address}"));
    let urls = urls.each_ref().map(String::as_str);
    let process = Process::spawn(supervisor(&urls, Vec::new())).unwrap();
    let line = process.line(ESTABLISHED).await;
    assert!(line.contains(urls[1]), "{line}");

    let (_first, _) = gateway_at(&first.to_string(), vec!["--insecure-dev".into()]).await;
    second.kill();
    let moved = until_async(GENEROUS, async || {
        let lines = process.stderr().lines();
        lines
            .iter()
            .any(|line| line.contains(ESTABLISHED) && line.contains(urls[0]))
    });
    moved.await.unwrap_or_else(|_| panic!("{process}"));
}
