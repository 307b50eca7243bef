//! Every kind of leg, in every state it can be in, meets everything that can happen to it.

use std::fmt::Write as _;

use super::*;
use crate::cause::{Origin, Reason};

const FORWARD: Orientation = Orientation::Forward;
const BACKWARD: Orientation = Orientation::Backward;

#[test]
fn a_socket_answers_everything() {
    insta::assert_snapshot!(matrix("a socket", Leg::socket));
}

#[test]
fn an_opener_answers_everything() {
    let mut table = String::new();
    for orientation in [FORWARD, BACKWARD] {
        for form in [
            None,
            Some(HalfClose::Unsupported),
            Some(HalfClose::Response),
            Some(HalfClose::Explicit),
        ] {
            let name = format!("opener, {orientation:?}, {}", word(form));
            table += &matrix(&name, || Leg::opener(orientation, form));
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn an_acceptor_answers_everything() {
    let mut table = matrix("acceptor, Backward, awaited", Leg::awaited);
    for orientation in [FORWARD, BACKWARD] {
        for form in [
            HalfClose::Unsupported,
            HalfClose::Response,
            HalfClose::Explicit,
        ] {
            let name = format!("acceptor, {orientation:?}, {}", word(Some(form)));
            table += &matrix(&name, || Leg::acceptor(orientation, form));
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn another_gateway_as_the_neighbour_changes_no_form() {
    for form in [
        HalfClose::Unsupported,
        HalfClose::Response,
        HalfClose::Explicit,
    ] {
        let opener = || Leg::opener(FORWARD, Some(form));
        let acceptor = || Leg::acceptor(FORWARD, form);
        let between = || opener().between_gateways();
        assert_eq!(matrix("", between), matrix("", opener));
        let between = || acceptor().between_gateways();
        assert_eq!(matrix("", between), matrix("", acceptor));
    }
}

#[test]
fn a_fin_that_is_owed_is_said_in_the_form_that_turns_out() {
    for (form, expected) in [
        (HalfClose::Unsupported, vec![Write::EndStream]),
        (HalfClose::Response, vec![Write::EndStream]),
        (HalfClose::Explicit, vec![Write::FinFrame, Write::EndStream]),
    ] {
        let mut leg = Leg::opener(FORWARD, None);
        leg.finish();
        assert_eq!(writes(&mut leg), []);
        leg.opened(form);
        assert_eq!(writes(&mut leg), expected);
        assert_eq!(leg.state(), State::HalfClosedLocal);
    }
}

#[test]
fn trailers_that_were_a_fin_leave_only_a_reset_to_abort_with() {
    let mut legacy = Leg::acceptor(BACKWARD, HalfClose::Unsupported);
    legacy.finish();
    assert_eq!(writes(&mut legacy), [Write::Ok]);
    legacy.abort(&reset());
    assert_eq!(writes(&mut legacy), [Write::Reset(Box::new(reset()))]);
}

#[test]
fn a_leg_ends_once() {
    let endings: [fn(&mut Leg); 3] = [
        Leg::complete,
        |leg| leg.abort(&reset()),
        |leg| leg.cut(&reset()),
    ];
    for first in endings {
        for second in endings {
            for mut leg in [Leg::socket(), Leg::opener(BACKWARD, None), Leg::awaited()] {
                first(&mut leg);
                let state = leg.state();
                let _ = writes(&mut leg);
                second(&mut leg);
                leg.finish();
                leg.opened(HalfClose::Explicit);
                leg.keep_alive();
                assert_eq!((leg.state(), writes(&mut leg)), (state, vec![]));
            }
        }
    }
}

#[test]
fn only_a_last_word_that_knew_of_our_fin_concludes() {
    let concluded = |mut leg: Leg, finish_first: bool| {
        if finish_first {
            leg.finish();
        }
        let _ = leg.recv(Arrival::FinFrame);
        let _ = leg.recv(Arrival::End);
        leg.finish();
        leg.has_concluded()
    };
    for form in [
        HalfClose::Unsupported,
        HalfClose::Response,
        HalfClose::Explicit,
    ] {
        assert!(concluded(Leg::opener(FORWARD, Some(form)), true));
        assert!(!concluded(Leg::opener(FORWARD, Some(form)), false));
        assert!(!concluded(Leg::acceptor(FORWARD, form), true));
        let promised = form == HalfClose::Explicit;
        assert_eq!(concluded(Leg::acceptor(BACKWARD, form), true), promised);
        assert!(!concluded(Leg::acceptor(BACKWARD, form), false));
    }
    assert!(!concluded(Leg::socket(), true));
}

/// One block per state that `new` can reach, one line per thing that can happen there.
fn matrix(name: &str, new: impl Fn() -> Leg) -> String {
    let ways: [fn(&mut Leg); 7] = [
        |_| {},
        Leg::finish,
        hear_fin,
        |leg| {
            leg.finish();
            hear_fin(leg);
        },
        |leg| {
            hear_fin(leg);
            let _ = leg.recv(Arrival::End);
        },
        Leg::complete,
        |leg| leg.abort(&reset()),
    ];
    let mut table = String::new();
    let mut seen = Vec::new();
    for way in ways {
        let leg = || {
            let mut leg = new();
            way(&mut leg);
            let _ = writes(&mut leg);
            leg
        };
        let state = describe(&leg());
        if seen.contains(&state) {
            continue;
        }
        let _ = writeln!(table, "{name}: {state}");
        let answers: String = HAPPENINGS
            .iter()
            .map(|happening| answer(leg(), &state, happening))
            .collect();
        let is_deaf = leg().voice.has_ended() && !answers.contains('[');
        table += if is_deaf {
            "  everything      ignored\n"
        } else {
            &answers
        };
        seen.push(state);
    }
    table
}

/// Something that can happen to a leg.
enum Happening {
    Hears(Arrival),
    Does(fn(&mut Leg)),
}

const HAPPENINGS: [(&str, Happening); 13] = [
    ("data", Happening::Hears(Arrival::Data(5))),
    ("no data", Happening::Hears(Arrival::Data(0))),
    ("FIN frame", Happening::Hears(Arrival::FinFrame)),
    ("end", Happening::Hears(Arrival::End)),
    ("init", Happening::Hears(Arrival::Init)),
    ("unknown", Happening::Hears(Arrival::Unknown)),
    (
        "opened",
        Happening::Does(|leg| leg.opened(HalfClose::Explicit)),
    ),
    ("finish", Happening::Does(Leg::finish)),
    ("complete", Happening::Does(Leg::complete)),
    ("abort", Happening::Does(|leg| leg.abort(&reset()))),
    ("cut", Happening::Does(|leg| leg.cut(&reset()))),
    ("keepalive", Happening::Does(Leg::keep_alive)),
    (
        "end, then abort",
        Happening::Does(|leg| {
            let _ = leg.recv(Arrival::End);
            leg.abort(&reset());
        }),
    ),
];

/// What `leg`, in `state`, makes of something, what becomes of it, and what it says.
fn answer(mut leg: Leg, state: &str, (what, happening): &(&str, Happening)) -> String {
    let heard = match happening {
        Happening::Hears(arrival) => hear(&mut leg, *arrival),
        Happening::Does(verb) => {
            verb(&mut leg);
            String::new()
        }
    };
    let mut line = format!("  {what:15} {heard:12}");
    let next = describe(&leg);
    if next != state {
        let _ = write!(line, " -> {next}");
    }
    let said: Vec<_> = writes(&mut leg).iter().map(say).collect();
    if !said.is_empty() {
        let _ = write!(line, " [{}]", said.join(", "));
    }
    format!("{}\n", line.trim_end())
}

fn hear_fin(leg: &mut Leg) {
    if leg.recv(Arrival::FinFrame).is_err() {
        let _ = leg.recv(Arrival::End);
    }
}

fn hear(leg: &mut Leg, arrival: Arrival) -> String {
    match leg.recv(arrival) {
        Ok(heard) => format!("{heard:?}"),
        Err(_) => "violation".to_owned(),
    }
}

/// All that tells one leg from another of its kind.
fn describe(leg: &Leg) -> String {
    let mut words = match leg.state() {
        State::Closed(Cause::Finished) => "Closed(Finished)".to_owned(),
        State::Closed(Cause::Reset { .. }) => "Closed(Reset)".to_owned(),
        open @ (State::AwaitInit
        | State::Open
        | State::HalfClosedLocal
        | State::HalfClosedRemote) => {
            format!("{open:?}")
        }
    };
    let flags = [
        (leg.fin == OurFin::Owed, "FIN owed"),
        (leg.fin == OurFin::Withheld, "FIN withheld"),
        (leg.heard_end, "end heard"),
        (leg.concluded, "concluded"),
        (leg.voice.has_ended(), "ended"),
    ];
    for (is_set, word) in flags {
        if is_set {
            words.push_str(", ");
            words.push_str(word);
        }
    }
    words
}

fn say(write: &Write) -> String {
    match write {
        Write::Status(_) => "Status".to_owned(),
        Write::Reset(_) => "Reset".to_owned(),
        Write::FinFrame | Write::EndStream | Write::Ok | Write::Close | Write::Keepalive => {
            format!("{write:?}")
        }
    }
}

fn word(form: Option<HalfClose>) -> String {
    form.map_or_else(|| "form unknown".to_owned(), |form| format!("{form:?}"))
}

fn writes(leg: &mut Leg) -> Vec<Write> {
    std::iter::from_fn(|| leg.poll_write()).collect()
}

fn reset() -> End {
    End::new(Origin::Target, Reason::TargetReset, "reset")
}
