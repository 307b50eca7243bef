//! A whole path in virtual time: a program, three relays, a program, and what lies between them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_lifecycle::id::HopName;
use tidegate_lifecycle::leg::{Arrival, Leg, Orientation, Write};
use tidegate_lifecycle::limits::StreamLimits;
use tidegate_lifecycle::relay::{Rank, Relay, Side};
use tidegate_lifecycle::state::Take;
use tidegate_lifecycle::{Cause, HalfClose};

use crate::app::{Act, App, Last, Plan};
use crate::link::{Frame, Ms, Pipe};

/// The hops, from the client's to the target's.
pub(crate) const CLIENT: usize = 0;
pub(crate) const GATEWAY: usize = 1;
pub(crate) const SUPERVISOR: usize = 2;

const HOPS: [(&str, Origin); 3] = [
    ("client", Origin::Client),
    ("gateway", Origin::Gateway),
    ("supervisor", Origin::Supervisor),
];

/// All that may differ from one path to another.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// How FIN is written on the client's hop and on the supervisor's.
    pub(crate) forms: [HalfClose; 2],
    /// What the client's program does and what the target does.
    pub(crate) plans: [Plan; 2],
    /// How long frames take, on each link and in each direction.
    pub(crate) delays: [[Vec<Ms>; 2]; 2],
    pub(crate) window: usize,
    /// How long a word takes on the control stream.
    pub(crate) control: Ms,
    /// When the supervisor has dialled and claims the relay.
    pub(crate) claim: Ms,
    /// Which link breaks, when, and how long each of its ends takes to notice.
    pub(crate) loss: Option<(usize, Ms, [Ms; 2])>,
    pub(crate) limits: StreamLimits,
}

struct Hop {
    relay: Relay,
    queues: [VecDeque<Item>; 2],
    cause: Option<Cause>,
}

/// What waits to be written on one side of a hop.
enum Item {
    Data { offset: usize, len: usize },
    Command(Write),
}

pub(crate) struct World {
    setting: Setting,
    start: Instant,
    now: Ms,
    apps: [Option<App>; 2],
    hops: [Option<Hop>; 3],
    /// Each link's pipe towards the client, and towards the target.
    links: [[Pipe; 2]; 2],
    /// Typed closes on their way to the gateway and to the supervisor.
    control: [VecDeque<(Ms, End)>; 2],
    claimed: bool,
    noticed: [bool; 2],
}

impl World {
    pub(crate) fn new(setting: Setting) -> Self {
        let pipe = |link: usize, direction: usize| {
            Pipe::new(&setting.delays[link][direction], setting.window)
        };
        let links = [[pipe(0, 0), pipe(0, 1)], [pipe(1, 0), pipe(1, 1)]];
        let mut world = Self {
            start: Instant::now(),
            now: 0,
            apps: [Some(App::new(setting.plans[0].clone(), 0)), None],
            hops: [None, None, None],
            links,
            control: [VecDeque::new(), VecDeque::new()],
            claimed: false,
            noticed: [false; 2],
            setting,
        };
        let [client, _] = world.setting.forms;
        let opener = Leg::opener(Orientation::Forward, None);
        let acceptor = Leg::acceptor(Orientation::Forward, client);
        world.build(CLIENT, Leg::socket(), opener);
        world.build(GATEWAY, acceptor, Leg::awaited());
        world
    }

    /// Lets everything happen that is going to happen.
    pub(crate) fn run(mut self) -> Self {
        for _ in 0..100_000 {
            for hop in CLIENT..=SUPERVISOR {
                self.step(hop);
            }
            let Some(next) = self.next_moment() else {
                let hangs = |hop: &Hop| hop.cause.is_none();
                assert!(
                    !self.hops.iter().flatten().any(hangs),
                    "a relay is open for ever"
                );
                return self;
            };
            self.now = self.now.max(next);
            self.happen();
        }
        panic!("it never comes to rest");
    }

    pub(crate) const fn app(&self, index: usize) -> Option<&App> {
        self.apps[index].as_ref()
    }

    /// How a hop's relay ended; `None` where there was none.
    pub(crate) fn outcome(&self, hop: usize) -> Option<Result<(), &End>> {
        self.hops[hop].as_ref()?.relay.outcome()
    }

    fn next_moment(&self) -> Option<Ms> {
        let pipes = self.links.iter().flatten().map(Pipe::due);
        let words = self
            .control
            .iter()
            .map(|words| words.front().map(|(due, _)| *due));
        let acts = self.apps.iter().flatten().map(App::due);
        let reads = [CLIENT, SUPERVISOR].map(|hop| self.waits_for_reader(hop));
        let timeouts = self.hops.iter().flatten().map(|hop| {
            let at = hop.relay.poll_timeout()?.duration_since(self.start);
            Some(at.as_micros().div_ceil(1000) as Ms)
        });
        let claim = (!self.claimed).then_some(self.setting.claim);
        let losses = [0, 1].map(|end| self.notices_loss(end));
        pipes
            .chain(words)
            .chain(acts)
            .chain(reads)
            .chain(timeouts)
            .chain([claim])
            .chain(losses)
            .flatten()
            .min()
    }

    fn waits_for_reader(&self, hop: usize) -> Option<Ms> {
        let side = outer_side(hop);
        let waits = !self.hops[hop].as_ref()?.queues[side].is_empty();
        let app = self.apps[side].as_ref()?;
        (waits && app.reads_at() > self.now).then(|| app.reads_at())
    }

    fn notices_loss(&self, end: usize) -> Option<Ms> {
        let (_, at, delays) = self.setting.loss?;
        (!self.noticed[end]).then_some(at + delays[end])
    }

    fn happen(&mut self) {
        self.lose();
        if !self.claimed && self.setting.claim <= self.now {
            self.claim();
        }
        for link in [0, 1] {
            for direction in [0, 1] {
                while let Some(frame) = self.links[link][direction].arrival(self.now) {
                    // Down a link is up from the hop that hears it, and the other way round.
                    self.deliver(link + direction, 1 - direction, frame);
                }
            }
        }
        for (index, hop, side) in [
            (0, GATEWAY, Side::Upstream),
            (1, SUPERVISOR, Side::Downstream),
        ] {
            while self.control[index]
                .front()
                .is_some_and(|(due, _)| *due <= self.now)
            {
                if let Some((_, end)) = self.control[index].pop_front() {
                    self.ends(hop, side, Rank::Typed, end);
                }
            }
        }
        for (index, hop) in [(0, CLIENT), (1, SUPERVISOR)] {
            while let Some(act) = self.apps[index].as_mut().and_then(|app| app.act(self.now)) {
                self.act(hop, act);
            }
        }
    }

    fn lose(&mut self) {
        let Some((link, at, _)) = self.setting.loss else {
            return;
        };
        if at <= self.now {
            self.links[link].iter_mut().for_each(Pipe::lose);
            self.claimed |= link == 1;
        }
        for (end, side) in [(0, Side::Upstream), (1, Side::Downstream)] {
            if self.notices_loss(end).is_some_and(|at| at <= self.now) {
                self.noticed[end] = true;
                let hop = link + end;
                self.ends(hop, side, Rank::Transport, lost(hop, side));
            }
        }
    }

    /// The supervisor has connected its target and opens the relay's RPC.
    fn claim(&mut self) {
        self.claimed = true;
        let [client, form] = self.setting.forms;
        let opener = Leg::opener(Orientation::Backward, Some(form));
        self.build(SUPERVISOR, opener, Leg::socket());
        self.apps[1] = Some(App::new(self.setting.plans[1].clone(), self.now));
        let gateway = self.hops[GATEWAY]
            .as_mut()
            .expect("it is there from the start");
        if gateway.relay.outcome().is_some() {
            let unknown = End::new(Origin::Gateway, Reason::ChannelUnknown, "it has ended");
            self.links[1][1].send(Frame::Status(unknown), self.now);
        } else {
            gateway.relay.opened(Side::Upstream, form);
            self.links[0][0].send(Frame::Headers(client), self.now);
        }
    }

    fn build(&mut self, hop: usize, downstream: Leg, upstream: Leg) {
        let (name, origin) = HOPS[hop];
        let (limits, at) = (self.setting.limits, self.instant());
        let relay = Relay::new(downstream, upstream, limits, origin, HopName::new(name), at);
        let queues = [VecDeque::new(), VecDeque::new()];
        self.hops[hop] = Some(Hop {
            relay,
            queues,
            cause: None,
        });
    }

    fn deliver(&mut self, hop: usize, side: usize, frame: Frame) {
        let from = Side::BOTH[side];
        match frame {
            Frame::Headers(form) => {
                if let Some(hop) = &mut self.hops[hop] {
                    hop.relay.opened(from, form);
                }
            }
            Frame::Data { offset, len } => self.hears_data(hop, from, offset, len),
            Frame::Keepalive => self.hears(hop, from, Arrival::Data(0)),
            Frame::HalfClose => self.hears(hop, from, Arrival::FinFrame),
            Frame::End => self.hears(hop, from, Arrival::End),
            Frame::Status(end) => self.ends(hop, from, Rank::Typed, end),
            Frame::Reset if (hop, from) == (GATEWAY, Side::Downstream) => {
                let cancelled = End::new(Origin::Client, Reason::ClientCancelled, "cancelled");
                self.ends(hop, from, Rank::Typed, cancelled);
            }
            Frame::Reset => self.ends(hop, from, Rank::Transport, lost(hop, from)),
        }
    }

    fn act(&mut self, hop: usize, act: Act) {
        let side = Side::BOTH[outer_side(hop)];
        match act {
            Act::Sends { offset, len } => self.hears_data(hop, side, offset, len),
            Act::Ends(Last::Fin) => self.hears(hop, side, Arrival::End),
            Act::Ends(Last::Reset) => {
                let (origin, reason) = match side {
                    Side::Downstream => (Origin::Client, Reason::ClientReset),
                    Side::Upstream => (Origin::Target, Reason::TargetReset),
                };
                self.ends(hop, side, Rank::Typed, End::new(origin, reason, "reset"));
            }
        }
    }

    fn hears(&mut self, hop: usize, side: Side, arrival: Arrival) {
        let now = self.instant();
        if let Some(hop) = &mut self.hops[hop] {
            hop.relay.recv(side, arrival, now);
        }
    }

    fn hears_data(&mut self, hop: usize, side: Side, offset: usize, len: usize) {
        let now = self.instant();
        if let Some(hop) = &mut self.hops[hop]
            && hop.relay.recv(side, Arrival::Data(len), now) == Take::Deliver
        {
            hop.queues[side_index(side.other())].push_back(Item::Data { offset, len });
        }
    }

    fn ends(&mut self, hop: usize, side: Side, rank: Rank, end: End) {
        if let Some(hop) = &mut self.hops[hop] {
            hop.relay.end(side, rank, end);
        }
    }

    /// Ends a step of one hop: settles, and writes, until nothing moves.
    fn step(&mut self, index: usize) {
        let Some(mut hop) = self.hops[index].take() else {
            return;
        };
        loop {
            for side in Side::BOTH {
                self.flush(index, &mut hop, side);
            }
            hop.relay.settle(self.instant());
            let cause = hop.relay.cause();
            assert!(
                hop.cause.is_none() || hop.cause == cause,
                "the first cause stays"
            );
            hop.cause = cause;
            if !hop.take_commands() {
                break;
            }
        }
        self.hops[index] = Some(hop);
    }

    fn flush(&mut self, index: usize, hop: &mut Hop, side: Side) {
        let now = self.instant();
        let queue = &mut hop.queues[side_index(side)];
        while let Some(item) = queue.pop_front() {
            if !self.has_room(index, side, &item) {
                queue.push_front(item);
                return hop.relay.blocked(side, now);
            }
            if matches!(item, Item::Data { .. }) {
                hop.relay.progressed(side, now);
            }
            self.write(index, side, item);
        }
        hop.relay.flushed(side);
    }

    fn has_room(&self, hop: usize, side: Side, item: &Item) -> bool {
        let is_abort = matches!(item, Item::Command(Write::Status(_) | Write::Reset(_)));
        if is_abort {
            return true;
        }
        let side = side_index(side);
        match pipe_of(hop, side) {
            None => self.apps[side]
                .as_ref()
                .is_some_and(|app| app.reads_at() <= self.now),
            Some((1, _)) if !self.claimed => false,
            Some((link, direction)) => match item {
                Item::Data { .. } => self.links[link][direction].has_room(),
                Item::Command(_) => true,
            },
        }
    }

    fn write(&mut self, hop: usize, side: Side, item: Item) {
        let side = side_index(side);
        let Some((link, direction)) = pipe_of(hop, side) else {
            return self.write_to_app(side, item);
        };
        if link == 1 && !self.claimed {
            return;
        }
        let frame = match item {
            Item::Data { offset, len } => Frame::Data { offset, len },
            Item::Command(Write::FinFrame) => Frame::HalfClose,
            Item::Command(Write::EndStream | Write::Ok) => Frame::End,
            Item::Command(Write::Status(end)) => Frame::Status(*end),
            Item::Command(Write::Keepalive) => Frame::Keepalive,
            Item::Command(Write::Close) => panic!("an RPC is not closed"),
            Item::Command(Write::Reset(end)) => {
                if link == 1 {
                    self.control[direction].push_back((self.now + self.setting.control, *end));
                }
                Frame::Reset
            }
        };
        self.links[link][direction].send(frame, self.now);
    }

    fn write_to_app(&mut self, index: usize, item: Item) {
        let Some(app) = self.apps[index].as_mut().filter(|app| !app.has_reset) else {
            return;
        };
        assert!(!app.is_gone(), "the socket is closed once");
        match item {
            Item::Data { offset, len } => app.reads(offset, len, self.now),
            Item::Command(Write::EndStream) => {
                assert!(!std::mem::replace(&mut app.saw_fin, true), "FIN comes once");
            }
            Item::Command(Write::Close) => app.saw_close = true,
            Item::Command(Write::Reset(_)) => app.saw_reset = true,
            Item::Command(
                odd @ (Write::FinFrame | Write::Ok | Write::Status(_) | Write::Keepalive),
            ) => panic!("{odd:?} on a socket"),
        }
    }

    fn instant(&self) -> Instant {
        self.start + Duration::from_millis(self.now)
    }
}

impl Hop {
    /// Queues what the relay tells to write; an abort drops what waits. Whether there was anything.
    fn take_commands(&mut self) -> bool {
        let mut any = false;
        for side in Side::BOTH {
            while let Some(write) = self.relay.poll_write(side) {
                any = true;
                let queue = &mut self.queues[side_index(side)];
                if matches!(write, Write::Status(_) | Write::Reset(_)) {
                    queue.clear();
                }
                queue.push_back(Item::Command(write));
            }
        }
        any
    }
}

/// The link and the direction that a hop writes to on one side; none where its program is.
const fn pipe_of(hop: usize, side: usize) -> Option<(usize, usize)> {
    match (hop, side) {
        (CLIENT, 0) | (SUPERVISOR, 1) => None,
        (_, 0) => Some((hop - 1, 0)),
        (_, _) => Some((hop, 1)),
    }
}

/// The side of the first and of the last hop where its program is, which is the program's index.
const fn outer_side(hop: usize) -> usize {
    if hop == CLIENT { 0 } else { 1 }
}

fn side_index(side: Side) -> usize {
    usize::from(side == Side::Upstream)
}

/// What a hop makes of a neighbour that was lost without a word.
fn lost(hop: usize, side: Side) -> End {
    let who = match (hop, side) {
        (GATEWAY, Side::Downstream) => Origin::Client,
        (GATEWAY, Side::Upstream) => Origin::Supervisor,
        (_, _) => Origin::Gateway,
    };
    End::new(who, Reason::TransportLost, "lost")
}
