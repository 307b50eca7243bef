//! Three executions, what joins them, and the two programs at their ends.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tidegate_lifecycle::Capabilities;
use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_lifecycle::exec::{Execution, Hop, Kind, Output, Take};
use tidegate_lifecycle::id::HopName;
use tidegate_lifecycle::leg::{Orientation, Write};
use tidegate_lifecycle::limits::StreamLimits;
use tidegate_lifecycle::relay::{Rank, Side};

/// Virtual time, in milliseconds.
pub(crate) type Ms = u64;

pub(crate) const CLIENT: usize = 0;
pub(crate) const GATEWAY: usize = 1;
pub(crate) const SUPERVISOR: usize = 2;

const DOWN: Side = Side::Downstream;
const UP: Side = Side::Upstream;

/// Whether the runner starts the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Runs,
    Fails,
}

/// What happens, and when.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) stdin_at: Vec<Ms>,
    pub(crate) fin_at: Option<Ms>,
    pub(crate) caller_reads_at: Ms,
    pub(crate) leaves_at: Option<Ms>,
    pub(crate) start: Start,
    pub(crate) starts_after: Ms,
    pub(crate) writes_at: Vec<Ms>,
    pub(crate) exits_at: Ms,
    /// Client and gateway speak everything, or nothing.
    pub(crate) ours: bool,
    /// Each pipe's: towards the process, and back.
    pub(crate) delays: [Ms; 4],
    pub(crate) window: usize,
    /// Which link breaks, and when.
    pub(crate) loss: Option<(usize, Ms)>,
}

#[derive(Clone, Debug)]
enum Frame {
    Headers,
    Says(Kind),
    Refused(End),
    End,
    Status(End),
    Reset,
}

#[derive(Debug, Default)]
struct Pipe {
    flying: VecDeque<(Ms, Frame)>,
    lost: bool,
}

#[derive(Debug)]
pub(crate) struct World {
    plan: Plan,
    epoch: Instant,
    now: Ms,
    hops: Vec<Execution>,
    /// What each hop has queued, by side.
    queues: Vec<[VecDeque<Frame>; 2]>,
    /// Of each link: towards the process, and back.
    pipes: [[Pipe; 2]; 2],
    started_at: Option<Ms>,
    said_started: bool,
    pub(crate) starts: usize,
    pub(crate) caller_said_fin: bool,
    pub(crate) caller_wrote: usize,
    pub(crate) caller_heard: usize,
    pub(crate) heard_exit: Option<i32>,
    pub(crate) runner_heard: usize,
    pub(crate) runner_heard_fin: bool,
    pub(crate) runner_wrote: usize,
    pub(crate) runner_exited: bool,
    /// The runner was told to end the command.
    pub(crate) runner_was_told: bool,
    pub(crate) client_done_at: Option<Ms>,
    pub(crate) exit_codes: Vec<Option<i32>>,
}

impl World {
    pub(crate) fn new(mut plan: Plan) -> Self {
        plan.stdin_at.sort_unstable();
        plan.writes_at.sort_unstable();
        let last = plan.writes_at.last().copied().unwrap_or_default();
        plan.exits_at += last;
        let epoch = Instant::now();
        let agreed = if plan.ours {
            Capabilities::EXEC
        } else {
            Capabilities::NONE
        };
        let session = Capabilities::SESSION;
        let hop = |caller, process, origin, name| {
            let limits = StreamLimits::default();
            Execution::new(caller, process, limits, origin, HopName::new(name), epoch)
        };
        let hops = vec![
            hop(
                Hop::local(),
                Hop::opener(Orientation::Forward, None),
                Origin::Client,
                "client",
            ),
            hop(
                Hop::acceptor(Orientation::Forward, agreed),
                Hop::acceptor(Orientation::Backward, session),
                Origin::Gateway,
                "gateway",
            ),
            hop(
                Hop::opener(Orientation::Backward, Some(session)),
                Hop::local(),
                Origin::Supervisor,
                "supervisor",
            ),
        ];
        Self {
            plan,
            epoch,
            now: 0,
            hops,
            queues: (0..3).map(|_| [VecDeque::new(), VecDeque::new()]).collect(),
            pipes: Default::default(),
            started_at: None,
            said_started: false,
            starts: 0,
            caller_said_fin: false,
            caller_wrote: 0,
            caller_heard: 0,
            heard_exit: None,
            runner_heard: 0,
            runner_heard_fin: false,
            runner_wrote: 0,
            runner_exited: false,
            runner_was_told: false,
            client_done_at: None,
            exit_codes: vec![],
        }
    }

    pub(crate) fn run(mut self) -> Self {
        self.recv(CLIENT, DOWN, Kind::Start { tty: false });
        // Every plan is over long before; what is not, never will be.
        while self.now < 2_000 && (0..3).any(|hop| self.reason(hop).is_none()) {
            self.act();
            for _ in 0..4 {
                self.deliver();
                for hop in [CLIENT, GATEWAY, SUPERVISOR] {
                    self.turn(hop);
                }
            }
            if self.reason(CLIENT).is_some() {
                self.client_done_at.get_or_insert(self.now);
            }
            self.now += 1;
            // A command that nobody ends goes on for ever, which is not what is tried here.
            if self.now == 1_000 && !self.runner_exited && !self.runner_was_told {
                self.plan.exits_at = 0;
            }
        }
        self.exit_codes = (0..3).map(|hop| self.exit_code(hop)).collect();
        self
    }

    pub(crate) fn reason(&self, hop: usize) -> Option<Result<(), Reason>> {
        Some(self.hops[hop].outcome()?.map_err(|end| end.reason))
    }

    pub(crate) fn start_failed(&self) -> bool {
        self.plan.start == Start::Fails || self.starts == 0
    }

    fn exit_code(&self, hop: usize) -> Option<i32> {
        self.hops[hop].outcome()?.err()?.exit_code
    }

    fn time(&self) -> Instant {
        self.epoch + Duration::from_millis(self.now)
    }

    /// What the two programs do now, and the links.
    fn act(&mut self) {
        let now = self.now;
        if let Some((link, _)) = self.plan.loss.take_if(|(_, at)| *at <= now) {
            self.break_link(link);
        }
        if self.plan.leaves_at.take_if(|at| *at <= now).is_some() {
            let end = End::new(Origin::Client, Reason::ClientCancelled, "gone");
            self.hops[CLIENT].end(DOWN, Rank::Typed, end);
            return;
        }
        if self.reason(CLIENT).is_none() {
            let due = self
                .plan
                .stdin_at
                .iter()
                .take_while(|at| **at <= now)
                .count();
            for _ in 0..due {
                self.plan.stdin_at.remove(0);
                self.caller_wrote += 1;
                self.recv(CLIENT, DOWN, Kind::Stdin(1));
            }
            let all_said = self.plan.stdin_at.is_empty();
            if all_said && self.plan.fin_at.take_if(|at| *at <= now).is_some() {
                self.caller_said_fin = true;
                self.recv(CLIENT, DOWN, Kind::StdinFin);
            }
        }
        self.run_command();
    }

    fn run_command(&mut self) {
        let now = self.now;
        let starts = self
            .started_at
            .is_some_and(|at| at + self.plan.starts_after <= now);
        if !starts || self.runner_was_told || self.runner_exited {
            return;
        }
        if !std::mem::replace(&mut self.said_started, true) {
            if self.plan.start == Start::Fails {
                self.runner_exited = true;
                let end = End::new(Origin::Supervisor, Reason::ExecNotFound, "no program");
                self.refused(SUPERVISOR, end);
                return;
            }
            self.recv(SUPERVISOR, UP, Kind::Started(true));
        }
        let due = self
            .plan
            .writes_at
            .iter()
            .take_while(|at| **at <= now)
            .count();
        for _ in 0..due {
            self.plan.writes_at.remove(0);
            self.runner_wrote += 1;
            self.recv(SUPERVISOR, UP, Kind::Output(Output::Stdout, 1));
        }
        if self.plan.exits_at <= now {
            self.runner_exited = true;
            self.recv(SUPERVISOR, UP, Kind::Exit(7));
        }
    }

    fn break_link(&mut self, link: usize) {
        for pipe in &mut self.pipes[link] {
            pipe.lost = true;
            pipe.flying.clear();
        }
        let lost = |who| End::new(who, Reason::TransportLost, "broken");
        let below = if link == 0 {
            Origin::Client
        } else {
            Origin::Gateway
        };
        let above = if link == 0 {
            Origin::Gateway
        } else {
            Origin::Supervisor
        };
        self.hops[link].end(UP, Rank::Transport, lost(above));
        self.hops[link + 1].end(DOWN, Rank::Transport, lost(below));
    }

    fn recv(&mut self, hop: usize, side: Side, kind: Kind) {
        let time = self.time();
        let take = self.hops[hop].recv(side, kind, time);
        let frame = match take {
            Take::Deliver => Frame::Says(kind),
            Take::Type(_) => Frame::Says(Kind::Stdin(1)),
            Take::Announce => Frame::Headers,
            Take::Discard => return,
        };
        self.queue(hop, side.other(), frame);
    }

    fn refused(&mut self, hop: usize, end: End) {
        let time = self.time();
        if self.hops[hop].refused(end.clone(), time) == Take::Deliver {
            self.queue(hop, DOWN, Frame::Refused(end));
        }
    }

    fn queue(&mut self, hop: usize, side: Side, frame: Frame) {
        self.queues[hop][index(side)].push_back(frame);
    }

    /// Everything that has arrived by now.
    fn deliver(&mut self) {
        for link in 0..2 {
            for (way, hop, side) in [(0, link + 1, DOWN), (1, link, UP)] {
                while let Some(frame) = self.pipes[link][way].arrival(self.now) {
                    self.hear(hop, side, frame);
                }
            }
        }
    }

    fn hear(&mut self, hop: usize, side: Side, frame: Frame) {
        let who = match (hop, side) {
            (GATEWAY, Side::Downstream) => Origin::Client,
            (GATEWAY, Side::Upstream) => Origin::Supervisor,
            _ => Origin::Gateway,
        };
        match frame {
            Frame::Says(kind) => self.recv(hop, side, kind),
            Frame::Refused(end) => self.refused(hop, end),
            Frame::Headers => {
                let agreed = if self.plan.ours {
                    Capabilities::EXEC
                } else {
                    Capabilities::NONE
                };
                self.hops[hop].opened(side, agreed.half_close(), self.plan.ours);
            }
            Frame::End => {
                let time = self.time();
                self.hops[hop].recv_end(side, time);
            }
            Frame::Status(end) => self.hops[hop].end(side, Rank::Typed, end),
            Frame::Reset => {
                let (rank, reason) = if (hop, side) == (GATEWAY, DOWN) {
                    (Rank::Typed, Reason::ClientCancelled)
                } else {
                    (Rank::Transport, Reason::TransportLost)
                };
                self.hops[hop].end(side, rank, End::new(who, reason, "reset"));
            }
        }
    }

    /// One turn of one hop's shell.
    fn turn(&mut self, hop: usize) {
        let time = self.time();
        self.hops[hop].settle(time);
        for side in Side::BOTH {
            while let Some(write) = self.hops[hop].poll_write(side) {
                self.write(hop, side, write);
            }
            self.flush(hop, side);
            if self.queues[hop][index(side)].is_empty() {
                self.hops[hop].flushed(side);
            }
        }
        self.hops[hop].settle(time);
    }

    fn write(&mut self, hop: usize, side: Side, write: Write) {
        let frame = match write {
            Write::FinFrame => Frame::Says(Kind::StdinFin),
            Write::EndStream | Write::Ok | Write::Close => Frame::End,
            Write::Status(end) => Frame::Status(*end),
            Write::Reset(_) if (hop, side) == (SUPERVISOR, UP) => {
                self.runner_was_told = true;
                return self.queues[hop][index(side)].clear();
            }
            Write::Reset(_) => Frame::Reset,
            Write::Keepalive => return,
        };
        if matches!(frame, Frame::Status(_) | Frame::Reset) {
            self.queues[hop][index(side)].clear();
        }
        self.queue(hop, side, frame);
    }

    fn flush(&mut self, hop: usize, side: Side) {
        let at = index(side);
        match (hop, side) {
            (CLIENT, Side::Downstream) => {
                if self.now >= self.plan.caller_reads_at {
                    while let Some(frame) = self.queues[hop][at].pop_front() {
                        self.caller_hears(&frame);
                    }
                }
            }
            (SUPERVISOR, Side::Upstream) => {
                while let Some(frame) = self.queues[hop][at].pop_front() {
                    self.runner_hears(&frame);
                }
            }
            _ => {
                let (link, way) = if side == UP { (hop, 0) } else { (hop - 1, 1) };
                let delay = self.plan.delays[2 * link + way];
                let window = self.plan.window;
                while let Some(frame) = self.queues[hop][at].front() {
                    let pipe = &mut self.pipes[link][way];
                    let bulk = matches!(frame, Frame::Says(kind) if !kind.is_empty());
                    if bulk && !pipe.has_room(window) {
                        break;
                    }
                    if let Some(frame) = self.queues[hop][at].pop_front() {
                        pipe.send(frame, self.now + delay);
                    }
                }
            }
        }
    }

    fn caller_hears(&mut self, frame: &Frame) {
        match frame {
            Frame::Says(Kind::Output(..)) => {
                assert_eq!(self.heard_exit, None, "output behind the exit");
                self.caller_heard += 1;
            }
            Frame::Says(Kind::Exit(code)) => {
                assert_eq!(self.heard_exit.replace(*code), None, "a second exit");
            }
            Frame::Says(_) | Frame::Headers | Frame::Refused(_) => {}
            Frame::End | Frame::Status(_) | Frame::Reset => {}
        }
    }

    fn runner_hears(&mut self, frame: &Frame) {
        match frame {
            Frame::Says(Kind::Start { .. }) => {
                self.starts += 1;
                self.started_at = Some(self.now);
            }
            Frame::Says(Kind::Stdin(_)) => {
                assert!(!self.runner_heard_fin, "stdin behind its end");
                self.runner_heard += 1;
            }
            Frame::Says(Kind::StdinFin) => self.runner_heard_fin = true,
            Frame::Says(_) | Frame::Headers | Frame::Refused(_) => {}
            Frame::End | Frame::Status(_) | Frame::Reset => {}
        }
    }
}

impl Pipe {
    fn has_room(&self, window: usize) -> bool {
        self.lost || self.flying.len() < window
    }

    fn send(&mut self, frame: Frame, due: Ms) {
        if !self.lost {
            self.flying.push_back((due, frame));
        }
    }

    fn arrival(&mut self, now: Ms) -> Option<Frame> {
        self.flying.front().filter(|(due, _)| *due <= now)?;
        self.flying.pop_front().map(|(_, frame)| frame)
    }
}

const fn index(side: Side) -> usize {
    match side {
        Side::Downstream => 0,
        Side::Upstream => 1,
    }
}
