//! How many connections there are, and for how long.

use tokio::task::JoinSet;

use super::*;

/// An owner that answers every call, and allows so many streams on each connection.
struct Owner {
    url: String,
    _tasks: JoinSet<()>,
}

impl Owner {
    async fn start(streams: u32) -> Self {
        let mut settings = h2::server::Builder::new();
        settings.max_concurrent_streams(streams);
        let server = Server::bind_with(settings).await.unwrap();
        let url = url(&server);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let mut connection = server.accept().await.unwrap();
                connections.spawn(async move {
                    let mut open = Vec::new();
                    loop {
                        let call = connection.call().await;
                        open.push(call.accept(HeaderMap::new()).unwrap());
                    }
                });
            }
        });
        Self { url, _tasks: tasks }
    }
}

#[tokio::test]
async fn ha_06_full_connections_are_joined_by_others_until_there_are_enough() {
    let owner = Owner::start(2).await;
    let peers = Peers::new(PeerSettings {
        connections: 2,
        ..plaintext()
    });
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(ask(&peers, &owner.url).await.unwrap());
    }
    assert_eq!((peers.connections(), peers.streams()), (2, 4));
    let Err(Unopened::Unable(end)) = ask(&peers, &owner.url).await else {
        panic!("there is no room")
    };
    let expected = (Origin::Gateway, Reason::LimitStreams);
    assert_eq!((end.origin, end.reason), expected);
    drop(open.pop());
    ask(&peers, &owner.url).await.unwrap();
}

#[tokio::test]
async fn streams_are_spread_over_several_connections_from_the_beginning() {
    let owner = Owner::start(100).await;
    let peers = Peers::new(PeerSettings {
        width: 2,
        ..plaintext()
    });
    let mut open = Vec::new();
    for _ in 0..20 {
        open.push(ask(&peers, &owner.url).await.unwrap());
    }
    assert_eq!((peers.connections(), peers.streams()), (2, 20));
}

#[tokio::test]
async fn a_connection_without_streams_is_let_go_and_one_with_streams_is_not() {
    let owner = Owner::start(100).await;
    let peers = Peers::new(PeerSettings {
        idle: Duration::from_millis(100),
        ..plaintext()
    });
    let open = ask(&peers, &owner.url).await.unwrap();
    let gone = async {
        let none = async || peers.connections() == 0;
        wait::until_async(GENEROUS, none).await.unwrap();
    };
    let kept = tokio::time::timeout(Duration::from_millis(500), peers.tend());
    assert!(kept.await.is_err(), "it never ends by itself");
    assert_eq!(peers.connections(), 1);
    drop(open);
    tokio::select! {
        () = peers.tend() => {}
        () = gone => {}
    }
    ask(&peers, &owner.url).await.unwrap();
}
