//! The answer to a stream that has not begun yet.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use h2::Reason;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue, Response, header};

use crate::life::Life;
use crate::stream::Outgoing;
use crate::{Lost, Payload, SendHalf};

/// The right to answer one RPC. Dropped without an answer, it resets the stream with CANCEL.
#[derive(Debug)]
pub struct Respond {
    response: SendResponse<Payload>,
    life: Arc<Life>,
    answered: bool,
}

impl Respond {
    pub(crate) fn new(response: SendResponse<Payload>, life: Arc<Life>) -> Self {
        Self {
            response,
            life,
            answered: false,
        }
    }

    /// Begins the response: status 200, gRPC's content type, and `headers`.
    ///
    /// # Errors
    ///
    /// [`Lost`] when the stream ended in the meantime.
    pub fn headers(self, headers: HeaderMap) -> Result<SendHalf, Lost> {
        self.begin(grpc(headers))
    }

    /// Answers with headers only, which carry the status: `grpc-status` and what goes with it.
    ///
    /// # Errors
    ///
    /// [`Lost`] when the stream ended in the meantime.
    pub fn trailers_only(mut self, headers: HeaderMap) -> Result<(), Lost> {
        self.answer(grpc(headers), true).map(drop)
    }

    /// Begins `response`, whatever it is.
    pub(crate) fn begin(mut self, response: Response<()>) -> Result<SendHalf, Lost> {
        let stream = self.answer(response, false)?;
        Ok(SendHalf::new(Outgoing::at_server(
            stream,
            Arc::clone(&self.life),
        )))
    }

    /// Answers with a response that has no body.
    pub(crate) fn finish(mut self, response: Response<()>) -> Result<(), Lost> {
        self.answer(response, true).map(drop)
    }

    fn answer(
        &mut self,
        response: Response<()>,
        end: bool,
    ) -> Result<h2::SendStream<Payload>, Lost> {
        self.answered = true;
        self.response
            .send_response(response, end)
            .map_err(|error| self.why(&error))
    }

    /// Resets the stream.
    pub fn reset(mut self, reason: Reason) {
        self.answered = true;
        self.response.send_reset(reason);
    }

    /// Waits for a reset or a loss before the answer.
    pub fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<Lost> {
        self.response.poll_reset(cx).map(|reset| match reset {
            Ok(reason) => Lost::Reset(reason),
            Err(error) => self.life.lost(&error),
        })
    }

    /// Waits for a reset or a loss, as [`Respond::poll_reset`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn closed(&mut self) -> Lost {
        poll_fn(|cx| self.poll_reset(cx)).await
    }

    /// Finds out why the library refused an answer.
    fn why(&mut self, error: &h2::Error) -> Lost {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        match self.poll_reset(&mut cx) {
            Poll::Ready(lost) => lost,
            Poll::Pending => self.life.lost(error),
        }
    }
}

fn grpc(headers: HeaderMap) -> Response<()> {
    let mut response = Response::new(());
    *response.headers_mut() = headers;
    let content_type = HeaderValue::from_static("application/grpc");
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}

impl Drop for Respond {
    fn drop(&mut self) {
        if !self.answered {
            self.response.send_reset(Reason::CANCEL);
        }
    }
}
