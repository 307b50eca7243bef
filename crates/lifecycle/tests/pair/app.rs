//! A program at one end of the path: what it plans to do with its socket, and what it saw there.

use crate::link::Ms;

/// What a program does, whatever it sees.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Sends so many bytes after so many milliseconds, one after the other.
    pub(crate) sends: Vec<(Ms, usize)>,
    /// After all that, and a pause.
    pub(crate) last: (Ms, Last),
    /// How long it takes to read what one frame brought.
    pub(crate) pace: Ms,
}

/// How a program ends its side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    Fin,
    Reset,
}

/// What a program does next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Sends { offset: usize, len: usize },
    Ends(Last),
}

/// One program, and its socket.
#[derive(Debug)]
pub(crate) struct App {
    plan: Plan,
    next: usize,
    since: Ms,
    busy_until: Ms,
    pub(crate) sent: usize,
    pub(crate) received: usize,
    pub(crate) has_finished: bool,
    pub(crate) has_reset: bool,
    pub(crate) saw_fin: bool,
    pub(crate) saw_reset: bool,
    pub(crate) saw_close: bool,
}

impl App {
    /// A program whose socket is connected at `now`.
    pub(crate) const fn new(plan: Plan, now: Ms) -> Self {
        Self {
            plan,
            next: 0,
            since: now,
            busy_until: 0,
            sent: 0,
            received: 0,
            has_finished: false,
            has_reset: false,
            saw_fin: false,
            saw_reset: false,
            saw_close: false,
        }
    }

    /// Whether its socket is no more.
    pub(crate) const fn is_gone(&self) -> bool {
        self.has_reset || self.saw_reset || self.saw_close
    }

    /// When it does something next.
    pub(crate) fn due(&self) -> Option<Ms> {
        let pause = match self.plan.sends.get(self.next) {
            Some((pause, _)) => *pause,
            None => self.plan.last.0,
        };
        (!self.is_gone() && !self.has_finished).then_some(self.since + pause)
    }

    pub(crate) fn act(&mut self, now: Ms) -> Option<Act> {
        self.due().filter(|due| *due <= now)?;
        self.since = now;
        let Some((_, len)) = self.plan.sends.get(self.next).copied() else {
            match self.plan.last.1 {
                Last::Fin => self.has_finished = true,
                Last::Reset => self.has_reset = true,
            }
            return Some(Act::Ends(self.plan.last.1));
        };
        self.next += 1;
        let offset = self.sent;
        self.sent += len;
        Some(Act::Sends { offset, len })
    }

    /// When it reads on.
    pub(crate) const fn reads_at(&self) -> Ms {
        self.busy_until
    }

    pub(crate) fn reads(&mut self, offset: usize, len: usize, now: Ms) {
        assert_eq!(offset, self.received, "bytes are missing, or came twice");
        assert!(!self.saw_fin, "bytes behind FIN");
        self.received += len;
        self.busy_until = now + self.plan.pace;
    }
}
