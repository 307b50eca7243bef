//! What a supervisor may be made to connect to.

use tidegate_e2e::raw::{self, Client};
use tidegate_e2e::{Options, Topology, World, every_topology};
use tidegate_testkit::messages::{ForwardInit, TcpTarget};
use tidegate_testkit::target::{Step, Target};
use tonic::Code;

every_topology! {
    sec_04_no_spelling_of_an_address_leads_off_the_loopback,
    sec_04_what_is_allowed_is_reached,
}

/// The call's code, or none if the path was opened.
async fn open(client: &Client, host: &str, port: u16) -> Option<(Code, String)> {
    let mut init: ForwardInit = raw::init(([127, 0, 0, 1], port).into(), &raw::STREAM);
    init.tcp = Some(TcpTarget {
        host: host.to_owned(),
        port: port.into(),
    });
    let mut forward = client.forward_with(init).await;
    if forward.is_opened().await {
        return None;
    }
    let outcome = forward.outcome().await.unwrap();
    Some((outcome.code, outcome.reason))
}

async fn sec_04_no_spelling_of_an_address_leads_off_the_loopback(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let target = Target::echo().unwrap();
    let port = target.address().port();
    let client = Client::connect(&world).await;
    for host in [
        "169.254.169.254",
        "10.0.0.1",
        "0.0.0.0",
        "::",
        "::ffff:169.254.169.254",
        "::ffff:10.0.0.1",
        "fe80::1",
        "2852039166", // 169.254.169.254
        "0xa9.0xfe.0xa9.0xfe",
        "0251.0376.0251.0376",
        "",
        "127.0.0.1 ",
        "no-such-name.invalid",
    ] {
        let refused = open(&client, host, port).await;
        let (code, reason) = refused.unwrap_or_else(|| panic!("{host:?} was opened"));
        let is_policy = matches!(code, Code::PermissionDenied | Code::InvalidArgument);
        let has_no_address = reason == "TARGET_UNREACHABLE" && host.ends_with("invalid");
        assert!(is_policy || has_no_address, "{host:?}: {code:?} {reason}");
    }
    assert_eq!(target.accepted(), 0);
    for host in ["127.0.0.1", "localhost", "LOCALHOST"] {
        assert_eq!(open(&client, host, port).await, None, "{host}");
    }
    let six = Target::start_on("[::1]:0".parse().unwrap(), [Step::Echo]).unwrap();
    for host in ["::1", "localhost"] {
        assert_eq!(
            open(&client, host, six.address().port()).await,
            None,
            "{host}"
        );
    }
    drop(client);
    world.settle().await;
}

async fn sec_04_what_is_allowed_is_reached(topology: Topology) {
    let target = Target::start_on("0.0.0.0:0".parse().unwrap(), [Step::Echo]).unwrap();
    let port = target.address().port();
    let Some(own) = own_address() else {
        return; // a machine without a network has nowhere else to go
    };
    let rule = format!("{own}/32:{port}");
    let options = Options::new().supervisor("allow_target", vec![rule]);
    let world = World::start(topology, options).await;
    let client = Client::connect(&world).await;
    assert_eq!(open(&client, &own, port).await, None);
    let (code, _) = open(&client, &own, port.wrapping_add(1)).await.unwrap();
    assert_eq!(code, Code::PermissionDenied);
    drop(client);
    world.settle().await;
}

/// An address of this machine that is not on the loopback.
fn own_address() -> Option<String> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?; // sends nothing: it only picks a route
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback()).then(|| address.to_string())
}
