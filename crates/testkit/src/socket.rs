//! A TCP socket that keeps account of what it read, wrote and met. The client side of most tests,
//! and the inside of every [target](crate::target).

use std::{
    io,
    net::{Shutdown, SocketAddr},
    os::fd::AsFd,
    sync::Arc,
    time::Duration,
};

use rustix::io::Errno;
use socket2::{Domain, SockRef, Type};
use tokio::{
    io::Interest,
    net::{TcpStream, ToSocketAddrs},
};

use crate::{
    content::Content,
    record::{Ended, Record, Seen},
    wait::{self, GENEROUS},
};

const BUFFER: usize = 64 * 1024;

/// One end of a TCP connection.
///
/// Everything takes `&self`, so one future can read while another writes. Dropping it closes the
/// socket as any program's exit would: with a FIN, or with a RST if bytes lie unread.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    /// Reset by the time it was looked at for the first time: the kernel has said so, and will not
    /// again.
    reset_early: bool,
    account: Account,
}

/// Declared after the stream, so it is dropped, and says so, once the socket is closed.
#[derive(Debug)]
struct Account(Arc<Record>);

impl Drop for Account {
    fn drop(&mut self) {
        self.0.closed();
    }
}

impl Socket {
    /// Connects to the first of `address`. A connection that was accepted and reset before this
    /// returns is one that was reset, and not one that failed.
    ///
    /// # Errors
    ///
    /// Whatever the kernel says.
    pub async fn connect(address: impl ToSocketAddrs) -> io::Result<Self> {
        let mut addresses = tokio::net::lookup_host(address).await?;
        let address = addresses.next().ok_or(io::ErrorKind::InvalidInput)?;
        let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        let mut met = socket.connect(&address.into()).err();
        if met.as_ref().and_then(io::Error::raw_os_error) == Some(Errno::INPROGRESS.raw_os_error())
        {
            met = None;
        }
        let stream = TcpStream::from_std(socket.into())?;
        if met.is_none() {
            stream.writable().await?;
            met = stream.take_error()?;
        }
        match met {
            None => Ok(Self::new(stream)),
            Some(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(Self {
                reset_early: true,
                ..Self::new(stream)
            }),
            Some(error) => Err(error),
        }
    }

    /// Takes over a connected socket.
    pub fn new(stream: TcpStream) -> Self {
        Self::recorded(stream, Arc::new(Record::new()))
    }

    pub(crate) fn recorded(stream: TcpStream, record: Arc<Record>) -> Self {
        Self {
            stream,
            reset_early: false,
            account: Account(record),
        }
    }

    /// Returns our own address.
    ///
    /// # Errors
    ///
    /// Whatever the kernel says.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }

    /// Returns the account, which outlives the socket.
    pub fn record(&self) -> Arc<Record> {
        Arc::clone(&self.account.0)
    }

    /// Returns what has been seen up to now.
    pub fn seen(&self) -> Seen {
        self.account.0.seen()
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    ///
    /// How the connection ended, if it did before the kernel took the last byte.
    pub async fn write(&self, mut bytes: &[u8]) -> Result<(), Ended> {
        while !bytes.is_empty() {
            let written = self.write_some(bytes).await?;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Writes all of `content`, which need not fit in memory.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub async fn write_content(&self, content: Content) -> Result<(), Ended> {
        for chunk in content.chunks() {
            self.write(&chunk).await?;
        }
        Ok(())
    }

    /// Writes without end and returns how that failed.
    pub async fn write_until_refused(&self) -> Ended {
        let chunk = vec![0x5a; BUFFER];
        loop {
            if let Err(end) = self.write(&chunk).await {
                return end;
            }
        }
    }

    /// Writes until the kernel has taken nothing for `patience`, and returns how many bytes it took.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub async fn write_until_blocked(&self, patience: Duration) -> Result<u64, Ended> {
        let chunk = vec![0x5a; BUFFER];
        let mut taken = 0;
        while let Ok(written) = tokio::time::timeout(patience, self.write_some(&chunk)).await {
            taken += written? as u64;
        }
        Ok(taken)
    }

    /// Sends FIN; reading goes on.
    ///
    /// # Errors
    ///
    /// Whatever the kernel says, for instance that the connection is gone.
    pub fn shutdown_write(&self) -> io::Result<()> {
        SockRef::from(&self.stream).shutdown(Shutdown::Write)
    }

    /// Reads until it has `wanted` bytes.
    ///
    /// # Panics
    ///
    /// If reading ends before.
    pub async fn read(&self, wanted: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(wanted);
        let mut buffer = vec![0; BUFFER];
        while bytes.len() < wanted {
            let room = (wanted - bytes.len()).min(BUFFER);
            match self.read_some(&mut buffer[..room]).await {
                Ok(read) => bytes.extend_from_slice(&buffer[..read]),
                Err(end) => panic!("{end:?} after {} of {wanted} bytes", bytes.len()),
            }
        }
        bytes
    }

    /// Reads until reading ends, however long that takes, and returns all that was seen.
    pub async fn read_to_end(&self) -> Seen {
        let mut buffer = vec![0; BUFFER];
        while self.read_some(&mut buffer).await.is_ok() {}
        self.seen()
    }

    /// Reads until reading ends.
    ///
    /// # Panics
    ///
    /// If it has not within 30 s.
    pub async fn read_to_end_soon(&self) -> Seen {
        wait::within(GENEROUS, "the end of reading", self.read_to_end()).await
    }

    /// Waits, without reading, until the kernel reports an error, and returns it.
    ///
    /// A FIN is no error, so this may wait for ever.
    pub async fn until_error(&self) -> Ended {
        let ready = self.stream.ready(Interest::ERROR).await.map(|_| ());
        let end = match ready.and_then(|()| self.stream.take_error()) {
            Ok(Some(error)) | Err(error) => error.into(),
            Ok(None) => Ended::Reset, // another call has taken the error already
        };
        self.account.0.read_ended(end)
    }

    /// Closes with a RST: what lies unsent is thrown away.
    pub fn reset(self) {
        reset_on_close(&self.stream);
    }

    /// Reads at most `buffer.len()` bytes, at least one.
    ///
    /// # Errors
    ///
    /// How reading has ended.
    pub async fn read_some(&self, buffer: &mut [u8]) -> Result<usize, Ended> {
        if let Some(end) = self.account.0.read_end() {
            return Err(end);
        }
        let record = &self.account.0;
        match self.try_read_when_ready(buffer).await {
            Ok(0) if self.reset_early => Err(record.read_ended(Ended::Reset)),
            Ok(0) => Err(record.read_ended(Ended::Eof)),
            Ok(read) => {
                record.read_bytes(&buffer[..read]);
                Ok(read)
            }
            Err(error) => Err(record.read_ended(error.into())),
        }
    }

    async fn write_some(&self, bytes: &[u8]) -> Result<usize, Ended> {
        match self.try_write_when_ready(bytes).await {
            Ok(written) => {
                self.account.0.wrote(written);
                Ok(written)
            }
            Err(error) => {
                let end = Ended::from(error);
                self.account.0.write_failed(end);
                Err(end)
            }
        }
    }

    async fn try_read_when_ready(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.stream.readable().await?;
            match self.stream.try_read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
        }
    }

    async fn try_write_when_ready(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.stream.writable().await?;
            match self.stream.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
        }
    }
}

/// Makes the closing of `socket` a RST instead of a FIN.
pub(crate) fn reset_on_close(socket: &impl AsFd) {
    // A socket that is gone already cannot be reset any more, and need not be.
    let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
}
