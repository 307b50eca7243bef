//! A gateway's execution against a model of it that knows the contract and nothing of the code:
//! random events, one a step, for callers of every age, must always have the answer the model gives.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_lifecycle::exec::{Execution, Hop, Kind, Output, Take};
use tidegate_lifecycle::id::HopName;
use tidegate_lifecycle::leg::Orientation;
use tidegate_lifecycle::limits::{CLOSE_REASON_GRACE, StreamLimits};
use tidegate_lifecycle::relay::{Rank, Side};
use tidegate_lifecycle::{Capabilities, Capability, Cause};

const CALLER: usize = 0;
const PROCESS: usize = 1;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// That side says something.
    Says(usize, Kind),
    /// The direction of that side ends.
    Ends(usize),
    /// That side is lost without a word.
    Lost(usize),
    /// That side says why it ends.
    Told(usize),
    /// The caller takes nothing, or everything, from now on.
    Stalls(bool),
    /// Nothing happens for so many milliseconds.
    Waits(u64),
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32_768))]

    #[test]
    fn an_execution_answers_as_its_model_does(
        ours in any::<bool>(),
        events in prop::collection::vec(event(), 0..24),
    ) {
        let mut model = Model { ours, ..Model::default() };
        let mut shell = Shell::new(ours);
        for event in events {
            let passed = shell.apply(event);
            prop_assert_eq!(passed, model.apply(event), "{:?}", event);
            prop_assert_eq!(shell.outcome(), model.outcome(), "{:?}", event);
        }
    }
}

/// What the contract says, in the fewest words.
#[derive(Default)]
struct Model {
    ours: bool,
    /// The start was said, and with a terminal.
    started: Option<bool>,
    running: bool,
    stdin_over: bool,
    exit: Option<i32>,
    refused: bool,
    stalled: bool,
    /// Something waits for the caller.
    waits: bool,
    ended: [bool; 2],
    clock: u64,
    lost: Option<u64>,
    over: Option<(&'static str, Option<i32>)>,
}

impl Model {
    /// Whether a message is passed on.
    fn apply(&mut self, event: Event) -> bool {
        let mut passed = false;
        match event {
            Event::Stalls(stalled) => self.stalled = stalled,
            Event::Waits(millis) => self.clock += millis,
            _ if self.over.is_some() => {}
            Event::Says(..) | Event::Ends(_) if self.lost.is_some() => {}
            Event::Says(CALLER, _) if self.exit.is_some() || self.refused => {}
            Event::Says(CALLER, kind) => passed = self.hears_caller(kind),
            Event::Says(_, kind) => passed = self.hears_process(kind),
            Event::Ends(side) if std::mem::replace(&mut self.ended[side], true) => {}
            Event::Ends(_) if self.exit.is_some() => {}
            Event::Ends(PROCESS) => self.loses(),
            Event::Ends(_) if self.started.is_none() => self.fail("lost"),
            Event::Ends(_) if self.stdin_over => {}
            Event::Ends(_) if self.ours => self.fail("lost"),
            Event::Ends(_) => self.stdin_over = true,
            Event::Lost(PROCESS) | Event::Told(PROCESS) if self.exit.is_some() => {}
            Event::Lost(PROCESS) => self.loses(),
            Event::Lost(_) if self.lost.is_some() => {}
            Event::Lost(_) => self.fail("lost"),
            Event::Told(_) => self.fail("told"),
        }
        self.settle();
        passed
    }

    fn hears_caller(&mut self, kind: Kind) -> bool {
        let stdin = self.started.is_some() && !self.stdin_over;
        match (kind, self.started) {
            (Kind::Start { tty }, None) => {
                self.started = Some(tty);
                true
            }
            (Kind::Stdin(len), Some(_)) if stdin => len > 0,
            (Kind::StdinFin, Some(_)) if stdin => {
                self.stdin_over = true;
                false
            }
            (Kind::Resize, Some(true)) => true,
            (Kind::Resize, Some(false)) if !self.ours => false,
            (Kind::Signal(_), Some(_)) if self.ours => true,
            (Kind::Signal(2), Some(true)) if stdin => true,
            (Kind::Signal(_), Some(_)) => {
                self.fail("capability");
                false
            }
            (Kind::Empty, Some(_)) => false,
            _ => {
                self.fail("violation");
                false
            }
        }
    }

    fn hears_process(&mut self, kind: Kind) -> bool {
        let starting = self.started.is_some() && !self.running;
        let running = self.running && self.exit.is_none();
        match kind {
            Kind::Started(true) if starting => {
                self.running = true;
                false
            }
            Kind::Output(_, len) if running => {
                self.waits |= len > 0;
                len > 0
            }
            Kind::Exit(code) if running => {
                (self.exit, self.waits) = (Some(code), true);
                true
            }
            Kind::Empty => false,
            _ => {
                self.fail("violation");
                false
            }
        }
    }

    fn settle(&mut self) {
        self.waits &= self.stalled;
        if self.over.is_none() {
            if self.lost.is_some_and(|until| until <= self.clock) {
                self.fail("lost");
            } else if self.exit.is_some() && !self.waits && self.lost.is_none() {
                self.over = Some(("finished", None));
            }
        }
    }

    fn loses(&mut self) {
        let until = self.clock + CLOSE_REASON_GRACE.as_millis() as u64;
        self.lost.get_or_insert(until);
    }

    fn fail(&mut self, why: &'static str) {
        self.over.get_or_insert((why, self.exit));
    }

    const fn outcome(&self) -> Option<(&'static str, Option<i32>)> {
        self.over
    }
}

/// The real execution, in the simplest shell.
struct Shell {
    execution: Execution,
    now: Instant,
    stalled: bool,
}

impl Shell {
    fn new(ours: bool) -> Self {
        let agreed = if ours {
            Capabilities::EXEC
        } else {
            Capabilities::NONE
        };
        let now = Instant::now();
        let caller = Hop::acceptor(Orientation::Forward, agreed);
        let process = Hop::acceptor(Orientation::Backward, Capabilities::SESSION);
        assert!(Capabilities::SESSION.has(Capability::ExecResult));
        let (limits, hop) = (StreamLimits::default(), HopName::new("here"));
        Self {
            execution: Execution::new(caller, process, limits, Origin::Gateway, hop, now),
            now,
            stalled: false,
        }
    }

    fn apply(&mut self, event: Event) -> bool {
        let mut take = Take::Discard;
        match event {
            Event::Says(side, kind) => {
                take = self.execution.recv(Side::BOTH[side], kind, self.now);
            }
            Event::Ends(side) => self.execution.recv_end(Side::BOTH[side], self.now),
            Event::Lost(side) => {
                let lost = End::new(Origin::Peer, Reason::TransportLost, "lost");
                self.execution.end(Side::BOTH[side], Rank::Transport, lost);
            }
            Event::Told(side) => {
                let told = End::new(Origin::Peer, Reason::OperatorClosed, "told");
                self.execution.end(Side::BOTH[side], Rank::Typed, told);
            }
            Event::Stalls(stalled) => self.stalled = stalled,
            Event::Waits(millis) => self.now += Duration::from_millis(millis),
        }
        for _ in 0..3 {
            self.execution.settle(self.now);
            for side in Side::BOTH {
                while self.execution.poll_write(side).is_some() {}
                if side == Side::Upstream || !self.stalled {
                    self.execution.flushed(side);
                }
            }
        }
        matches!(take, Take::Deliver | Take::Type(_))
    }

    fn outcome(&self) -> Option<(&'static str, Option<i32>)> {
        let word = match self.execution.cause()? {
            Cause::Finished => "finished",
            Cause::Reset { reason, .. } => match reason {
                Reason::TransportLost => "lost",
                Reason::OperatorClosed => "told",
                Reason::ProtocolViolation | Reason::InvalidRequest => "violation",
                Reason::CapabilityRequired => "capability",
                _ => "something else",
            },
        };
        let code = self
            .execution
            .outcome()?
            .err()
            .and_then(|end| end.exit_code);
        Some((word, code))
    }
}

fn event() -> impl Strategy<Value = Event> {
    let side = || prop::sample::select(vec![CALLER, PROCESS]);
    let said = prop_oneof![
        3 => any::<bool>().prop_map(|tty| Kind::Start { tty }),
        3 => (0..3_usize).prop_map(Kind::Stdin),
        2 => Just(Kind::StdinFin),
        1 => Just(Kind::Resize),
        1 => prop::sample::select(vec![2, 15]).prop_map(Kind::Signal),
        1 => Just(Kind::Empty),
        1 => Just(Kind::Unknown),
    ];
    let heard = prop_oneof![
        4 => Just(Kind::Started(true)),
        4 => (0..3_usize).prop_map(|len| Kind::Output(Output::Stderr, len)),
        2 => (0..3).prop_map(Kind::Exit),
        1 => Just(Kind::Empty),
        1 => Just(Kind::Unknown),
    ];
    prop_oneof![
        12 => said.prop_map(|kind| Event::Says(CALLER, kind)),
        10 => heard.prop_map(|kind| Event::Says(PROCESS, kind)),
        2 => side().prop_map(Event::Ends),
        1 => side().prop_map(Event::Lost),
        1 => side().prop_map(Event::Told),
        3 => any::<bool>().prop_map(Event::Stalls),
        2 => prop::sample::select(vec![0, 1, 99, 100]).prop_map(Event::Waits),
    ]
}
