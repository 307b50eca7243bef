//! Accepting when descriptors run out. A file of its own: it lowers the limit of its process.

use std::net::TcpStream;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tidegate_transport::listen;

fn set_limit(current: Option<u64>) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).expect("below the maximum");
}

#[tokio::test]
async fn a_shortage_of_descriptors_passes() {
    let listener = listen(([127, 0, 0, 1], 0).into()).expect("a free port");
    let addr = listener.local_addr().expect("an address");
    let before = getrlimit(Resource::Nofile).current;
    let client = TcpStream::connect(addr).expect("the kernel accepts it for us");
    set_limit(Some(0));
    let starved = tokio::time::timeout(Duration::from_millis(200), listener.accept()).await;
    set_limit(before);
    assert!(starved.is_err(), "there was no descriptor to accept with");
    let (_accepted, peer) = listener.accept().await;
    assert_eq!(peer, client.local_addr().expect("an address"));
}
