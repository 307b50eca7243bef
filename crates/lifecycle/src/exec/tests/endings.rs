//! How an execution ends, and what everybody is told.

use super::*;

#[test]
fn ex_09_the_exit_ends_it_although_the_caller_says_no_end_of_stdin() {
    let mut rig = Rig::gateway(OURS).running(START);
    rig.stalls(CALLER, true);
    assert_eq!(rig.says(PROCESS, Kind::Exit(3)), Take::Deliver);
    assert_eq!(rig.machine.state(), State::Draining);
    assert_eq!(rig.says(CALLER, Kind::Stdin(9)), Take::Discard);
    assert_eq!(rig.reason(), None);
    rig.stalls(CALLER, false);
    assert_eq!(rig.reason(), Some(Ok(())));
    assert_eq!(rig.said(CALLER), [Write::Keepalive, Write::Ok]);
    assert_eq!(rig.said(PROCESS), [Write::Ok]);
    assert_eq!(rig.machine.state(), State::Closed(Cause::Finished));
}

#[test]
fn ex_08_stdin_that_nobody_takes_delays_no_exit() {
    let mut rig = Rig::gateway(OURS).running(START);
    rig.stalls(PROCESS, true);
    rig.says(CALLER, Kind::Stdin(9));
    rig.machine.blocked(PROCESS, rig.now);
    rig.says(PROCESS, Kind::Exit(3));
    assert_eq!(rig.reason(), Some(Ok(())));
}

#[test]
fn a_supervisor_ends_its_relay_behind_the_exit() {
    let mut rig = Rig::supervisor();
    rig.says(CALLER, START);
    assert_eq!(rig.says(PROCESS, Kind::Started(true)), Take::Deliver);
    rig.says(PROCESS, OUTPUT);
    rig.says(PROCESS, Kind::Exit(0));
    assert_eq!(rig.reason(), Some(Ok(())));
    assert_eq!(rig.said(CALLER), [Write::EndStream]);
    assert_eq!(rig.said(PROCESS), [Write::Close]);
}

#[test]
fn a_client_waits_for_the_status_behind_the_exit() {
    let exited = || {
        let mut rig = Rig::client();
        rig.says(CALLER, START);
        rig.opens(OURS);
        rig.says(PROCESS, Kind::Exit(7));
        assert_eq!(rig.machine.state(), State::Exited);
        rig
    };
    let mut good = exited();
    good.ends(PROCESS);
    assert_eq!(good.reason(), Some(Ok(())));
    assert_eq!(good.said(PROCESS), [Write::EndStream]);
    let mut lost = exited();
    lost.loses(PROCESS);
    assert_eq!(lost.reason(), Some(Err(Reason::TransportLost)));
    assert_eq!(lost.code(), Some(7));
}

#[test]
fn an_exit_that_was_not_delivered_is_in_the_error() {
    let mut rig = Rig::gateway(OURS).running(START);
    rig.stalls(CALLER, true);
    rig.says(PROCESS, Kind::Exit(42));
    rig.loses(PROCESS);
    assert_eq!(rig.reason(), None, "its last word was heard");
    rig.machine.close(End::new(
        Origin::Gateway,
        Reason::GatewayDraining,
        "draining",
    ));
    rig.step();
    assert_eq!(rig.reason(), Some(Err(Reason::GatewayDraining)));
    assert_eq!(rig.code(), Some(42));
    let Some(Write::Status(end)) = rig.said(CALLER).pop() else {
        panic!("a status")
    };
    assert_eq!(end.exit_code, Some(42));
}

#[test]
fn ex_17_a_relay_that_ends_without_an_exit_is_a_loss_that_may_be_explained() {
    let mut rig = Rig::gateway(OURS).running(START);
    rig.ends(PROCESS);
    assert_eq!(rig.reason(), None);
    rig.passes(CLOSE_REASON_GRACE);
    assert_eq!(rig.reason(), Some(Err(Reason::TransportLost)));
    let mut told_why = Rig::gateway(OURS).running(START);
    told_why.loses(PROCESS);
    let end = End::new(Origin::Supervisor, Reason::SupervisorStopped, "stopped");
    told_why.machine.end(PROCESS, Rank::Typed, end);
    told_why.step();
    assert_eq!(told_why.reason(), Some(Err(Reason::SupervisorStopped)));
    assert_eq!(told_why.machine.ended_by(), Some(PROCESS));
}

#[test]
fn ex_36_a_failed_start_is_a_status_and_both_ends_of_the_relay_end_well() {
    let not_found = || End::new(Origin::Supervisor, Reason::ExecNotFound, "no such program");
    let mut gateway = Rig::gateway(OURS);
    gateway.says(CALLER, START);
    let take = gateway.machine.refused(not_found(), gateway.now);
    gateway.step();
    assert_eq!(take, Take::Discard);
    assert_eq!(told(&gateway.said(CALLER)), Some(Reason::ExecNotFound));
    assert_eq!(gateway.said(PROCESS), [Write::Ok]);
    assert_eq!(gateway.machine.ended_by(), Some(PROCESS));
    let mut supervisor = Rig::supervisor();
    supervisor.stalls(CALLER, true);
    supervisor.says(CALLER, START);
    let take = supervisor.machine.refused(not_found(), supervisor.now);
    supervisor.step();
    assert_eq!((take, supervisor.reason()), (Take::Deliver, None));
    supervisor.stalls(CALLER, false);
    assert_eq!(supervisor.reason(), Some(Err(Reason::ExecNotFound)));
    assert_eq!(supervisor.said(CALLER), [Write::EndStream]);
}

#[test]
fn nothing_follows_an_exit() {
    for late in [OUTPUT, Kind::Exit(1), Kind::Started(true)] {
        let mut rig = Rig::gateway(OURS).running(START);
        rig.stalls(CALLER, true);
        rig.says(PROCESS, Kind::Exit(0));
        assert_eq!(rig.says(PROCESS, late), Take::Discard);
        assert_eq!(rig.reason(), Some(Err(Reason::ProtocolViolation)));
    }
}

#[test]
fn a_process_that_speaks_before_it_was_started_breaks_the_protocol() {
    for early in [OUTPUT, Kind::Exit(1)] {
        let mut rig = Rig::gateway(OURS);
        rig.says(CALLER, START);
        rig.says(PROCESS, early);
        assert_eq!(rig.reason(), Some(Err(Reason::ProtocolViolation)));
    }
}

#[test]
fn a_gateway_that_answers_before_the_exit_has_gone_away() {
    let mut rig = Rig::supervisor().running(START);
    rig.says(CALLER, Kind::StdinFin);
    rig.ends(CALLER);
    rig.passes(CLOSE_REASON_GRACE);
    assert_eq!(rig.reason(), Some(Err(Reason::TransportLost)));
    assert_eq!(told(&rig.said(PROCESS)), Some(Reason::TransportLost));
}

#[test]
fn ex_29_a_silent_command_is_left_alone() {
    let mut rig = Rig::gateway(OURS).running(START);
    rig.says(CALLER, Kind::StdinFin);
    rig.passes(Duration::from_secs(1_000_000));
    assert_eq!(rig.machine.poll_timeout(), None);
    assert_eq!(rig.reason(), None);
}

#[test]
fn a_command_that_was_asked_to_end_has_time_for_its_exit() {
    let asked = || {
        let mut rig = Rig::gateway(OURS).running(START);
        let end = End::new(Origin::Gateway, Reason::OperatorClosed, "closed");
        let until = rig.now + Duration::from_secs(5);
        rig.machine.close_by(end, until);
        rig.passes(Duration::from_secs(4));
        assert_eq!(rig.machine.poll_timeout(), Some(until));
        assert_eq!(rig.reason(), None);
        rig
    };
    let mut in_time = asked();
    in_time.stalls(CALLER, true);
    in_time.says(PROCESS, Kind::Exit(143));
    assert_eq!(in_time.machine.poll_timeout(), None);
    in_time.passes(Duration::from_secs(9));
    in_time.stalls(CALLER, false);
    assert_eq!(in_time.reason(), Some(Ok(())));
    let mut late = asked();
    late.passes(Duration::from_secs(1));
    assert_eq!(late.reason(), Some(Err(Reason::OperatorClosed)));
}

#[test]
fn silence_counts_from_the_claim_of_the_relay() {
    let limit = Duration::from_secs(2);
    let limits = StreamLimits {
        idle: Some(limit),
        write_stall: Some(limit),
        ..StreamLimits::default()
    };
    let caller = Hop::acceptor(Orientation::Forward, OURS);
    let mut rig = Rig::with(limits, caller, Hop::awaited(), Origin::Gateway);
    rig.stalls(PROCESS, true);
    rig.says(CALLER, START);
    rig.says(CALLER, Kind::Stdin(1));
    rig.machine.blocked(PROCESS, rig.now);
    assert_eq!(rig.machine.poll_timeout(), None);
    rig.passes(limit * 10);
    assert_eq!(rig.reason(), None);

    rig.opens(Capabilities::SESSION);
    rig.step();
    assert_eq!(rig.machine.poll_timeout(), Some(rig.now + limit));
    rig.passes(limit);
    assert_eq!(rig.reason(), Some(Err(Reason::WriteStalled)));
}

#[test]
fn a_caller_that_knows_empty_messages_hears_one_when_the_command_runs() {
    for (caller, heard) in [(OURS, vec![Write::Keepalive]), (Capabilities::NONE, vec![])] {
        let mut rig = Rig::gateway(caller);
        rig.says(CALLER, START);
        assert_eq!(rig.said(CALLER), [], "the path is open, and nothing runs");
        rig.says(PROCESS, Kind::Started(true));
        assert_eq!(rig.said(CALLER), heard);
        assert_eq!(rig.said(PROCESS), []);
    }
}
