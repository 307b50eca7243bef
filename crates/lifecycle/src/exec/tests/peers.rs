//! A command whose supervisor is at home at another gateway.

use super::*;

/// The gateway that the caller talks to.
fn requester() -> Rig {
    let caller = Hop::acceptor(Orientation::Forward, OURS);
    let mut rig = Rig::new(caller, Hop::awaited(), Origin::Gateway);
    rig.machine.leads_to_owner();
    rig
}

/// The owner of the session.
fn owner() -> Rig {
    let caller = Hop::acceptor(Orientation::Forward, OURS).between_gateways();
    Rig::new(caller, Hop::awaited(), Origin::Gateway)
}

#[test]
fn the_owner_answers_when_the_path_is_open_and_a_message_says_that_the_command_runs() {
    let mut owns = owner();
    assert!(owns.opens(OURS), "the requester waits for headers");
    assert_eq!(owns.says(CALLER, START), Take::Deliver);
    assert_eq!(owns.says(PROCESS, Kind::Started(true)), Take::Deliver);
    assert_eq!(owns.said(CALLER), [], "nobody needs a greeting");

    let mut asks = requester();
    asks.says(CALLER, START);
    assert!(!asks.opens(OURS), "the command does not run yet");
    assert_eq!(asks.says(PROCESS, Kind::Started(true)), Take::Announce);
    assert_eq!(asks.said(CALLER), [Write::Keepalive]);
}

#[test]
fn the_end_of_stdin_is_a_message_and_leaves_the_request_open() {
    let mut asks = requester();
    asks.says(CALLER, START);
    asks.says(CALLER, Kind::StdinFin);
    assert_eq!(asks.said(PROCESS), [], "nothing before the owner's answer");
    asks.opens(OURS);
    asks.step();
    assert_eq!(asks.said(PROCESS), [Write::FinFrame]);
    assert_eq!(asks.says(CALLER, Kind::Signal(15)), Take::Deliver);
    let mut owns = owner();
    owns.opens(OURS);
    let mut owns = owns.running(START);
    owns.says(CALLER, Kind::StdinFin);
    assert_eq!(owns.said(PROCESS), [Write::FinFrame]);
}

#[test]
fn the_exit_is_followed_by_the_owners_status() {
    let mut owns = owner();
    owns.opens(OURS);
    let mut owns = owns.running(START);
    assert_eq!(owns.says(PROCESS, Kind::Exit(3)), Take::Deliver);
    assert_eq!(owns.reason(), Some(Ok(())));
    assert_eq!(owns.said(CALLER), [Write::Ok]);

    let mut asks = requester();
    asks.says(CALLER, START);
    asks.opens(OURS);
    asks.says(PROCESS, Kind::Started(true));
    asks.says(PROCESS, Kind::Exit(3));
    assert_eq!(asks.reason(), None, "the owner may fail still");
    asks.ends(PROCESS);
    assert_eq!(asks.reason(), Some(Ok(())));
    assert_eq!(asks.said(PROCESS), [Write::EndStream]);
}

#[test]
fn a_failed_start_is_a_message_between_gateways_with_the_owner_on_its_path() {
    let failed = || End::new(Origin::Supervisor, Reason::ExecNotFound, "no such program");
    let mut owns = owner();
    owns.opens(OURS);
    owns.says(CALLER, START);
    assert_eq!(owns.machine.refused(failed(), owns.now), Take::Deliver);
    let passed = owns.machine.refusal(Box::new(failed()));
    assert_eq!(passed.hops, [HopName::new("here")]);
    owns.step();
    assert_eq!(owns.said(CALLER), [Write::Ok]);
    assert_eq!(owns.said(PROCESS), [Write::Ok]);
    assert_eq!(owns.reason(), Some(Err(Reason::ExecNotFound)));

    let mut asks = requester();
    asks.says(CALLER, START);
    asks.opens(OURS);
    assert_eq!(asks.machine.refused(*passed, asks.now), Take::Discard);
    asks.step();
    assert_eq!(told(&asks.said(CALLER)), Some(Reason::ExecNotFound));
    assert_eq!(asks.said(PROCESS), [Write::EndStream]);
}

#[test]
fn a_requester_that_leaves_stdin_open_is_lost() {
    let mut owns = owner();
    owns.opens(OURS);
    let mut owns = owns.running(START);
    owns.ends(CALLER);
    assert_eq!(owns.reason(), Some(Err(Reason::PeerLost)));
    assert_eq!(told(&owns.said(PROCESS)), Some(Reason::PeerLost));
}

#[test]
fn an_owner_that_says_ok_without_an_exit_is_lost() {
    let mut asks = requester();
    asks.says(CALLER, START);
    asks.opens(OURS);
    asks.says(PROCESS, Kind::Started(true));
    asks.ends(PROCESS);
    assert_eq!(asks.reason(), Some(Err(Reason::OwnerLost)));
}
