//! A gateway's relay against a model of it that knows the contract and nothing of the code: random
//! events, one a step, in every pair of forms, must always have the answer the model gives.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_lifecycle::id::HopName;
use tidegate_lifecycle::leg::{Arrival, Leg, Orientation};
use tidegate_lifecycle::limits::{CLOSE_REASON_GRACE, StreamLimits};
use tidegate_lifecycle::relay::{Rank, Relay, Side};
use tidegate_lifecycle::state::Take;
use tidegate_lifecycle::{Cause, HalfClose};

const DOWN: usize = 0;
const UP: usize = 1;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// Something arrives from that side.
    Hears(usize, Arrival),
    /// The neighbour on that side says why it ends, and who began.
    Told(usize, Origin),
    /// The neighbour on that side is lost without a word.
    Lost(usize),
    /// This hop ends it.
    Closed,
    /// From now on that side takes nothing, or everything.
    Stalls(usize, bool),
    /// Nothing happens for so many milliseconds.
    Waits(u64),
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32_768))]

    #[test]
    fn a_relay_answers_as_its_model_does(
        forms in [form(), form()],
        events in prop::collection::vec(event(), 0..24),
    ) {
        let mut model = Model { forms: forms.to_vec(), ..Model::default() };
        let mut shell = Shell::new(forms);
        for event in events {
            let delivered = shell.apply(event);
            prop_assert_eq!(delivered, model.apply(event), "{:?}", event);
            prop_assert_eq!(shell.cause(), model.over, "{:?}", event);
        }
    }
}

/// What the contract says, in the fewest words.
#[derive(Default)]
struct Model {
    forms: Vec<HalfClose>,
    handed_on: usize,
    /// FIN was heard from that side.
    fin: [bool; 2],
    /// END_STREAM was heard from that side.
    end: [bool; 2],
    /// That side has spoken its last word after it had all of ours.
    concluded: [bool; 2],
    /// Something is on its way to that side, which takes nothing.
    waits: [bool; 2],
    stalled: [bool; 2],
    clock: u64,
    moved: u64,
    /// A loss that nobody explained yet, and until when somebody may.
    lost: Option<u64>,
    /// The target has failed what a legacy client may still send.
    refused: bool,
    /// How it ended.
    over: Option<&'static str>,
}

impl Model {
    /// Whether the event brought bytes that are to be handed on.
    fn apply(&mut self, event: Event) -> bool {
        let before = self.handed_on;
        match event {
            _ if self.over.is_some() => {}
            Event::Hears(..) if self.lost.is_some() || self.refused => {}
            Event::Hears(side, arrival) => self.hear(side, arrival),
            Event::Told(side, _) | Event::Lost(side) if self.is_done_with(side) => {}
            Event::Told(UP, Origin::Target) if self.withholds() => {
                (self.refused, self.lost) = (true, None);
            }
            Event::Told(..) => self.over = Some("told"),
            Event::Lost(UP) => self.loses(),
            Event::Lost(_) => self.over = self.lost.is_none().then_some("lost"),
            Event::Closed => self.over = Some("closed"),
            Event::Stalls(side, stalled) => self.stalled[side] = stalled,
            Event::Waits(millis) => self.clock += millis,
        }
        self.settle();
        self.handed_on > before
    }

    fn hear(&mut self, side: usize, arrival: Arrival) {
        let explicit = self.forms[side] == HalfClose::Explicit;
        let hears_fin = side == UP || self.forms[DOWN] != HalfClose::Unsupported;
        match arrival {
            Arrival::End if self.end[side] => {}
            Arrival::End => {
                self.end[side] = true;
                self.concluded[side] = side == UP && explicit && self.fin == [true; 2];
                match (self.fin[side], explicit) {
                    (true, _) => {}
                    (false, false) => self.finishes(side),
                    (false, true) if side == UP => self.loses(),
                    (false, true) => self.over = Some("lost"),
                }
            }
            _ if self.fin == [true; 2] && hears_fin => {}
            Arrival::Data(0) if !self.fin[side] => {}
            Arrival::Data(len) if !self.fin[side] => {
                self.handed_on += len;
                self.moves_towards(1 - side);
            }
            Arrival::FinFrame if explicit && !self.fin[side] => self.finishes(side),
            _ => self.over = Some("violation"),
        }
    }

    fn settle(&mut self) {
        let waits = |side: usize| self.waits[side] && self.stalled[side];
        self.waits = [waits(DOWN), waits(UP)];
        let all_written = self.waits == [false; 2];
        let complete = self.fin == [true; 2] && self.end[UP];
        let silent = self.withholds() && self.clock >= self.moved + 500;
        if self.over.is_none() {
            self.over = match self.lost {
                Some(until) => (until <= self.clock).then_some("lost"),
                None if self.refused => (!self.waits[DOWN]).then_some("finished"),
                None => (all_written && (complete || silent)).then_some("finished"),
            };
        }
    }

    /// The client cannot hear its target's FIN while it sends, and it may.
    fn withholds(&self) -> bool {
        self.forms[DOWN] == HalfClose::Unsupported && self.fin == [false, true]
    }

    fn is_done_with(&self, side: usize) -> bool {
        (self.concluded[side] && !self.waits[side]) || (self.refused && side == UP)
    }

    fn finishes(&mut self, side: usize) {
        self.fin[side] = true;
        self.moves_towards(1 - side);
    }

    fn moves_towards(&mut self, side: usize) {
        (self.waits[side], self.moved) = (true, self.clock);
    }

    fn loses(&mut self) {
        let until = self.clock + CLOSE_REASON_GRACE.as_millis() as u64;
        self.lost.get_or_insert(until);
    }
}

/// The real relay, in the simplest shell.
struct Shell {
    relay: Relay,
    now: Instant,
    stalled: [bool; 2],
}

impl Shell {
    fn new(forms: [HalfClose; 2]) -> Self {
        let now = Instant::now();
        let downstream = Leg::acceptor(Orientation::Forward, forms[DOWN]);
        let upstream = Leg::acceptor(Orientation::Backward, forms[UP]);
        let (limits, hop) = (StreamLimits::default(), HopName::new("here"));
        let relay = Relay::new(downstream, upstream, limits, Origin::Gateway, hop, now);
        Self {
            relay,
            now,
            stalled: [false; 2],
        }
    }

    fn apply(&mut self, event: Event) -> bool {
        let mut take = Take::Discard;
        match event {
            Event::Hears(side, arrival) => {
                take = self.relay.recv(Side::BOTH[side], arrival, self.now);
            }
            Event::Told(side, origin) => {
                let told = End::new(origin, Reason::TargetReset, "told");
                self.relay.end(Side::BOTH[side], Rank::Typed, told);
            }
            Event::Lost(side) => {
                let lost = End::new(Origin::Peer, Reason::TransportLost, "lost");
                self.relay.end(Side::BOTH[side], Rank::Transport, lost);
            }
            Event::Closed => {
                self.relay
                    .close(End::new(Origin::Gateway, Reason::OperatorClosed, "closed"));
            }
            Event::Stalls(side, stalled) => self.stalled[side] = stalled,
            Event::Waits(millis) => self.now += Duration::from_millis(millis),
        }
        for _ in 0..3 {
            self.relay.settle(self.now);
            for side in [DOWN, UP] {
                while self.relay.poll_write(Side::BOTH[side]).is_some() {}
                if !self.stalled[side] {
                    self.relay.flushed(Side::BOTH[side]);
                }
            }
        }
        take == Take::Deliver
    }

    fn cause(&self) -> Option<&'static str> {
        match self.relay.cause()? {
            Cause::Finished => Some("finished"),
            Cause::Reset {
                reason: Reason::TargetReset,
                ..
            } => Some("told"),
            Cause::Reset {
                reason: Reason::TransportLost,
                ..
            } => Some("lost"),
            Cause::Reset {
                reason: Reason::OperatorClosed,
                ..
            } => Some("closed"),
            Cause::Reset {
                reason: Reason::ProtocolViolation,
                ..
            } => Some("violation"),
            Cause::Reset { .. } => Some("something else"),
        }
    }
}

fn form() -> impl Strategy<Value = HalfClose> {
    prop::sample::select(vec![
        HalfClose::Unsupported,
        HalfClose::Response,
        HalfClose::Explicit,
    ])
}

fn event() -> impl Strategy<Value = Event> {
    let side = || prop::sample::select(vec![DOWN, UP]);
    let origin = prop::sample::select(vec![Origin::Client, Origin::Supervisor, Origin::Target]);
    let arrival = prop_oneof![
        4 => (0..3_usize).prop_map(Arrival::Data),
        4 => Just(Arrival::FinFrame),
        4 => Just(Arrival::End),
        1 => Just(Arrival::Init),
        1 => Just(Arrival::Unknown),
    ];
    prop_oneof![
        20 => (side(), arrival).prop_map(|(side, arrival)| Event::Hears(side, arrival)),
        2 => (side(), origin).prop_map(|(side, origin)| Event::Told(side, origin)),
        2 => side().prop_map(Event::Lost),
        1 => Just(Event::Closed),
        3 => (side(), any::<bool>()).prop_map(|(side, stalled)| Event::Stalls(side, stalled)),
        4 => prop::sample::select(vec![0, 1, 99, 100, 499, 500]).prop_map(Event::Waits),
    ]
}
