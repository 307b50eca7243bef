//! Read buffers: small while little flows, large while much does, none while nothing does.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

/// One read of a busy socket: several full frames.
const LARGE: usize = 256 * 1024;
/// One read of a quiet socket.
const SMALL: usize = 4 * 1024;
/// Large buffers kept for the next read of any socket.
const KEPT: usize = 16;

static POOL: Mutex<Vec<Box<[u8]>>> = Mutex::new(Vec::new());

/// A large buffer that returns to the pool when the last slice of it was written.
struct Large(Option<Box<[u8]>>);

impl AsRef<[u8]> for Large {
    fn as_ref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl Drop for Large {
    fn drop(&mut self) {
        if let Some(buffer) = self.0.take() {
            let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
            if pool.len() < KEPT {
                pool.push(buffer);
            }
        }
    }
}

impl Large {
    fn take() -> Self {
        let pooled = POOL.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Self(Some(
            pooled.unwrap_or_else(|| vec![0; LARGE].into_boxed_slice()),
        ))
    }
}

/// How much the next read of one socket may bring.
#[derive(Debug, Default)]
pub(crate) struct Appetite {
    large: bool,
}

impl Appetite {
    /// Reads once with `read`, which fills the slice it is given and says how much of it.
    ///
    /// A read that fills a small buffer makes the next one large; a large one that brings little
    /// makes the next one small, and what it brought is copied out, so that a few bytes that wait
    /// for a slow reader never hold a large buffer.
    pub(crate) fn read<E>(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Bytes, E> {
        if self.large {
            self.read_large(read)
        } else {
            self.read_small(read)
        }
    }

    fn read_small<E>(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Bytes, E> {
        let mut buffer = [0; SMALL];
        let len = read(&mut buffer)?;
        self.large = len == SMALL;
        Ok(Bytes::copy_from_slice(&buffer[..len]))
    }

    fn read_large<E>(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Bytes, E> {
        let mut large = Large::take();
        let len = read(large.0.as_deref_mut().unwrap_or_default())?;
        if len < LARGE / 8 {
            self.large = len > SMALL;
            return Ok(Bytes::copy_from_slice(&large.as_ref()[..len]));
        }
        Ok(Bytes::from_owner(large).slice(..len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(appetite: &mut Appetite, len: usize) -> usize {
        let read = |buffer: &mut [u8]| {
            let len = len.min(buffer.len());
            buffer[..len].fill(7);
            Ok::<_, ()>(len)
        };
        let data = appetite.read(read).unwrap();
        assert!(data.iter().all(|byte| *byte == 7));
        data.len()
    }

    #[test]
    fn a_busy_socket_gets_a_large_buffer_and_a_quiet_one_gives_it_back() {
        let mut appetite = Appetite::default();
        assert_eq!(feed(&mut appetite, 1_000_000), SMALL);
        assert_eq!(feed(&mut appetite, 1_000_000), LARGE);
        assert_eq!(feed(&mut appetite, 10), 10);
        assert_eq!(feed(&mut appetite, 1_000_000), SMALL);
    }
}
