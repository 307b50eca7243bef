//! Several connections to one server, as many as its limit on streams makes necessary.

use std::sync::{Mutex, MutexGuard, PoisonError};

use http::HeaderMap;

use super::{ConnectError, Connection, Endpoint, OpenError, ResponseHead};
use crate::{Lost, SendHalf};

/// How many connections may be lost under one open before it fails.
const MAX_LOSSES: usize = 2;

/// Connections to one endpoint. Opens the first when it is needed, and another when all are full.
#[derive(Debug)]
pub struct Pool {
    endpoint: Endpoint,
    limit: usize,
    open: Mutex<Vec<Connection>>,
    dialling: tokio::sync::Mutex<()>,
}

/// Why the pool could not open a stream.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// Every connection is full, and there may be no more of them.
    #[error("all {0} connections have as many streams as the server allows")]
    Full(usize),
    /// No further connection could be made.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Connections were lost one after the other while a stream was to be opened on them.
    #[error(transparent)]
    Lost(#[from] Lost),
}

impl Pool {
    /// Makes a pool of at most `limit` connections to `endpoint`, none of them open yet.
    pub fn new(endpoint: Endpoint, limit: usize) -> Self {
        Self {
            endpoint,
            limit: limit.max(1),
            open: Mutex::default(),
            dialling: tokio::sync::Mutex::default(),
        }
    }

    /// Opens a stream on a connection that has room, as [`Connection::open`].
    ///
    /// # Errors
    ///
    /// [`PoolError`] says whether the server, the limit or the network refused.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing was sent unless the stream was returned.
    pub async fn open(
        &self,
        path: &str,
        headers: HeaderMap,
    ) -> Result<(SendHalf, ResponseHead), PoolError> {
        let mut losses = 0;
        loop {
            let connection = self.connection().await?;
            match connection.open(path, headers.clone()) {
                Ok(stream) => return Ok(stream),
                // Somebody was faster.
                Err(OpenError::Full) => {}
                // It was told to go in this very moment, and is not offered again.
                Err(OpenError::Lost(lost)) if losses == MAX_LOSSES => return Err(lost.into()),
                Err(OpenError::Lost(_)) => losses += 1,
            }
        }
    }

    /// Returns a connection that has room, dialling one if none has.
    ///
    /// # Errors
    ///
    /// [`PoolError::Full`] and [`PoolError::Connect`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a dial that was begun is given up.
    pub async fn connection(&self) -> Result<Connection, PoolError> {
        if let Some(connection) = self.with_room() {
            return Ok(connection);
        }
        // One dials, the others wait for what it brings.
        let _turn = self.dialling.lock().await;
        if let Some(connection) = self.with_room() {
            return Ok(connection);
        }
        if self.connections() >= self.limit {
            return Err(PoolError::Full(self.limit));
        }
        let connection = self.endpoint.connect().await?;
        self.lock().push(connection.clone());
        Ok(connection)
    }

    /// Tells how many connections are open.
    pub fn connections(&self) -> usize {
        self.lock().len()
    }

    /// Tells how many streams are open on them.
    pub fn active_streams(&self) -> usize {
        self.lock().iter().map(Connection::active_streams).sum()
    }

    /// Lets go of connections without a stream. They end when nobody else holds them.
    pub fn let_go_unused(&self) {
        self.lock()
            .retain(|connection| connection.is_open() && connection.active_streams() > 0);
    }

    /// Ends every connection at once. The pool can be used again.
    pub fn close(&self) {
        for connection in self.lock().drain(..) {
            connection.close();
        }
    }

    /// Finds room, and lets go of connections that take no more streams; their streams live on.
    fn with_room(&self) -> Option<Connection> {
        let mut open = self.lock();
        open.retain(Connection::is_open);
        open.iter()
            .find(|connection| connection.has_room())
            .cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
