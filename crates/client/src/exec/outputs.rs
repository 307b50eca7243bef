//! Stdout and stderr as two readers.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;
use tidegate_lifecycle::exec::Output;
use tokio::io::{AsyncRead, ReadBuf};

use super::{Chunk, Events, Outcome};

/// One output of a command as bytes.
///
/// It ends where the output does. When the way to the command was lost, the end is an error that
/// carries the [`End`](crate::End): never a short end of file.
#[derive(Debug)]
pub struct OutputReader {
    output: Output,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    wakers: Arc<Wakers>,
}

#[derive(Debug)]
struct State {
    events: Events,
    /// What was read and not yet taken by the reader whose output it is.
    front: Option<Chunk>,
    /// Outputs whose reader was dropped: theirs is thrown away.
    unwanted: [bool; 2],
}

/// Wakes both readers: the command knows one waker.
#[derive(Debug, Default)]
struct Wakers([AtomicWaker; 2]);

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        self.0.iter().for_each(AtomicWaker::wake);
    }
}

pub(super) fn of(events: Events) -> (OutputReader, OutputReader) {
    let state = State {
        events,
        front: None,
        unwanted: [false; 2],
    };
    let shared = Arc::new(Shared {
        state: Mutex::new(state),
        wakers: Arc::default(),
    });
    let reader = |output, shared| OutputReader { output, shared };
    (
        reader(Output::Stdout, Arc::clone(&shared)),
        reader(Output::Stderr, shared),
    )
}

const fn index(output: Output) -> usize {
    match output {
        Output::Stdout => 0,
        Output::Stderr => 1,
    }
}

impl OutputReader {
    /// How the command ended, once this output was read to its end.
    pub fn outcome(&self) -> Option<Outcome> {
        let state = self.shared.state.lock();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        state.events.outcome().cloned()
    }
}

impl State {
    /// The chunk in front, whose output is `output`; none when nothing follows.
    fn poll_front(&mut self, output: Output, cx: &mut Context<'_>) -> Poll<Option<&mut Chunk>> {
        loop {
            if self.front.is_none() {
                self.front = std::task::ready!(self.events.poll_next(cx));
            }
            match &self.front {
                None => return Poll::Ready(None),
                Some(chunk) if self.unwanted[index(chunk.output)] => self.front = None,
                Some(chunk) if chunk.output == output => return Poll::Ready(self.front.as_mut()),
                Some(_) => return Poll::Pending,
            }
        }
    }
}

impl AsyncRead for OutputReader {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let shared = &self.shared;
        shared.wakers.0[index(self.output)].register(cx.waker());
        let both = Waker::from(Arc::clone(&shared.wakers));
        let mut cx = Context::from_waker(&both);
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let front = state.poll_front(self.output, &mut cx);
        let Poll::Ready(front) = front else {
            let other_is_next = state.front.is_some();
            drop(state);
            if other_is_next {
                let other = &shared.wakers.0[1 - index(self.output)];
                other.wake();
            }
            return Poll::Pending;
        };
        let Some(chunk) = front else {
            let end = state.events.outcome().and_then(Outcome::end).cloned();
            drop(state);
            // The other one has reached its end too.
            shared.wakers.0[1 - index(self.output)].wake();
            return Poll::Ready(end.map_or(Ok(()), |end| {
                Err(io::Error::new(io::ErrorKind::ConnectionReset, end))
            }));
        };
        let len = chunk.data.len().min(buffer.remaining());
        buffer.put_slice(&chunk.data.split_to(len));
        if chunk.data.is_empty() {
            state.front = None;
            drop(state);
            // It may wait for what comes behind.
            shared.wakers.0[1 - index(self.output)].wake();
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for OutputReader {
    fn drop(&mut self) {
        let state = self.shared.state.lock();
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.unwanted[index(self.output)] = true;
        drop(state);
        self.shared.wakers.0[1 - index(self.output)].wake();
    }
}
