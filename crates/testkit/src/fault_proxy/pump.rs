//! One direction of one connection: a queue of parcels, each with the time it is due.

use std::{collections::VecDeque, io, time::Duration};

use bytes::{Buf, Bytes};
use tokio::{
    net::TcpStream,
    sync::{Notify, watch},
    time::{Instant, sleep_until},
};

use super::settings::{Birth, Ending, Flow, Gate, Settings, Way};

const CHUNK: usize = 64 * 1024;

/// The most bytes on the line: little without a delay, so that backpressure is felt at once, and
/// plenty with one, so that the line is long and not thin.
const SHORT_LINE: usize = 256 * 1024;
const LONG_LINE: usize = 64 * 1024 * 1024;

/// Why a pump ends without having passed on a FIN.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopped(pub(super) Ending);

/// What travels on the line.
#[derive(Debug)]
enum Parcel {
    Bytes(Bytes),
    Fin,
    Reset,
}

pub(super) struct Pump<'a> {
    way: Way,
    from: &'a TcpStream,
    to: &'a TcpStream,
    settings: watch::Receiver<Settings>,
    birth: Birth,
    /// Told when `from` has sent its FIN.
    finished: &'a Notify,
    line: VecDeque<(Instant, Parcel)>,
    on_line: usize,
    source_ended: bool,
    moved: u64,
    /// Not to write before, for the sake of the rate.
    paced_until: Instant,
}

impl<'a> Pump<'a> {
    pub(super) fn new(
        way: Way,
        from: &'a TcpStream,
        to: &'a TcpStream,
        (settings, birth): (watch::Receiver<Settings>, Birth),
        finished: &'a Notify,
    ) -> Self {
        let (line, paced_until) = (VecDeque::new(), Instant::now());
        let (on_line, moved, source_ended) = (0, 0, false);
        Self {
            way,
            from,
            to,
            settings,
            birth,
            finished,
            line,
            on_line,
            source_ended,
            moved,
            paced_until,
        }
    }

    /// Moves bytes until the FIN has been passed on.
    pub(super) async fn run(mut self) -> Result<(), Stopped> {
        loop {
            let flow = self.settings.borrow_and_update().flow(self.way, self.birth);
            let due = self
                .line
                .front()
                .map(|(due, _)| (*due).max(self.paced_until));
            let now = Instant::now();
            let open = flow.gate == Gate::Open;
            tokio::select! {
                changed = self.settings.changed() => {
                    changed.map_err(|_| Stopped(Ending::Reset))?;
                }
                ready = self.from.readable(), if self.may_read(flow) => {
                    self.take_in(flow, ready);
                }
                () = sleep_until(due.unwrap_or(now)), if open && due.is_some_and(|due| due > now) => {}
                ready = self.to.writable(), if open && due.is_some_and(|due| due <= now) => {
                    ready.map_err(|_| Stopped(Ending::Reset))?;
                    if self.put_out(flow)? {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn may_read(&self, flow: Flow) -> bool {
        let room = if flow.delay.is_zero() {
            SHORT_LINE
        } else {
            LONG_LINE
        };
        !self.source_ended && flow.gate != Gate::Held && self.on_line < room
    }

    fn take_in(&mut self, flow: Flow, ready: io::Result<()>) {
        let mut buffer = vec![0; CHUNK];
        let parcel = match ready.and_then(|()| self.from.try_read(&mut buffer)) {
            Ok(0) => Parcel::Fin,
            Ok(read) => {
                buffer.truncate(read);
                Parcel::Bytes(buffer.into())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => Parcel::Reset,
        };
        match &parcel {
            Parcel::Bytes(_) if flow.gate == Gate::Discarding => return,
            Parcel::Bytes(bytes) => self.on_line += bytes.len(),
            Parcel::Fin => {
                self.source_ended = true;
                self.finished.notify_one();
            }
            Parcel::Reset => self.source_ended = true,
        }
        self.line.push_back((Instant::now() + flow.delay, parcel));
    }

    /// Hands on the parcel that is due, or a part of it; true once that was the FIN.
    fn put_out(&mut self, flow: Flow) -> Result<bool, Stopped> {
        let left = flow
            .cut
            .map_or(u64::MAX, |cut| cut.bytes.saturating_sub(self.moved));
        if let (0, Some(cut)) = (left, flow.cut) {
            return Err(Stopped(cut.ending));
        }
        match self.line.front_mut() {
            None => Ok(false),
            Some((_, Parcel::Reset)) => Err(Stopped(Ending::Reset)),
            Some((_, Parcel::Fin)) => {
                let finished = socket2::SockRef::from(self.to).shutdown(std::net::Shutdown::Write);
                finished.map(|()| true).map_err(|_| Stopped(Ending::Reset))
            }
            Some((_, Parcel::Bytes(bytes))) => {
                let most = [bytes.len() as u64, left, burst(flow)]
                    .into_iter()
                    .min()
                    .unwrap_or(0);
                let most = usize::try_from(most).unwrap_or(CHUNK);
                match self.to.try_write(&bytes[..most]) {
                    Ok(written) => {
                        bytes.advance(written);
                        if bytes.is_empty() {
                            self.line.pop_front();
                        }
                        self.written(flow, written);
                        self.cut_if_reached(flow)
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
                    Err(_) => Err(Stopped(Ending::Reset)),
                }
            }
        }
    }

    fn written(&mut self, flow: Flow, written: usize) {
        self.on_line -= written;
        self.moved += written as u64;
        if let Some(rate) = flow.rate {
            let pause = Duration::from_secs_f64(written as f64 / rate.max(1) as f64);
            self.paced_until = self.paced_until.max(Instant::now()) + pause;
        }
    }

    fn cut_if_reached(&self, flow: Flow) -> Result<bool, Stopped> {
        match flow.cut {
            Some(cut) if self.moved >= cut.bytes => Err(Stopped(cut.ending)),
            Some(_) | None => Ok(false),
        }
    }
}

/// The most bytes to write at once: a fiftieth of a second's worth where the rate is limited.
fn burst(flow: Flow) -> u64 {
    flow.rate.map_or(u64::MAX, |rate| (rate / 50).max(1))
}
