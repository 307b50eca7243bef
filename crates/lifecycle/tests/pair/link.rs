//! One RPC between two hops: two pipes that keep order, take time, and may be lost.

use std::collections::VecDeque;

use tidegate_lifecycle::HalfClose;
use tidegate_lifecycle::cause::End;

/// Virtual time, in milliseconds.
pub(crate) type Ms = u64;

/// What travels in a pipe.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    /// Response headers: the path is open, and this is how FIN is written on the hop.
    Headers(HalfClose),
    /// These bytes of the sender's.
    Data {
        offset: usize,
        len: usize,
    },
    Keepalive,
    HalfClose,
    /// END_STREAM, or trailers with OK.
    End,
    /// Trailers with a status.
    Status(End),
    /// RST_STREAM, which carries no reason.
    Reset,
}

/// One direction of a link.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    /// How long each frame takes, in turn.
    delays: Vec<Ms>,
    /// How many data frames it holds before the sender has to wait.
    window: usize,
    sent: usize,
    flying: VecDeque<(Ms, Frame)>,
    said: Said,
    lost: bool,
}

/// How far the sender of a pipe is: nothing but what is behind it in this list may follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    #[default]
    Nothing,
    Fin,
    End,
    Reset,
}

impl Pipe {
    pub(crate) fn new(delays: &[Ms], window: usize) -> Self {
        Self {
            delays: delays.to_vec(),
            window,
            ..Self::default()
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        let is_data = |frame: &Frame| matches!(frame, Frame::Data { .. } | Frame::Keepalive);
        self.lost
            || self
                .flying
                .iter()
                .filter(|(_, frame)| is_data(frame))
                .count()
                < self.window
    }

    /// Sends `frame`, which arrives behind all that was sent before.
    pub(crate) fn send(&mut self, frame: Frame, now: Ms) {
        let says = match frame {
            Frame::Headers(_) | Frame::Data { .. } | Frame::Keepalive => Said::Nothing,
            Frame::HalfClose => Said::Fin,
            Frame::End | Frame::Status(_) => Said::End,
            Frame::Reset => Said::Reset,
        };
        let is_news = says > self.said || (says, self.said) == (Said::Nothing, Said::Nothing);
        assert!(is_news, "{frame:?} behind {:?}", self.said);
        self.said = says;
        let delay = self
            .delays
            .get(self.sent % self.delays.len().max(1))
            .unwrap_or(&0);
        let behind = self.flying.back().map_or(0, |(due, _)| *due);
        self.sent += 1;
        if !self.lost {
            self.flying.push_back((behind.max(now + delay), frame));
        }
    }

    /// When the next frame arrives.
    pub(crate) fn due(&self) -> Option<Ms> {
        self.flying.front().map(|(due, _)| *due)
    }

    /// The next frame that has arrived.
    pub(crate) fn arrival(&mut self, now: Ms) -> Option<Frame> {
        self.due().filter(|due| *due <= now)?;
        self.flying.pop_front().map(|(_, frame)| frame)
    }

    /// Cuts the pipe: what is in it, and what is sent later, never arrives.
    pub(crate) fn lose(&mut self) {
        self.lost = true;
        self.flying.clear();
    }
}
