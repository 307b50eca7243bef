//! Bytes that a seed determines, and the digest by which two ends compare them.

use std::fmt;

use bytes::{Bytes, BytesMut};
use sha2::{Digest as _, Sha256};

/// The largest piece in which content is produced.
const CHUNK: u64 = 64 * 1024;

/// A SHA-256 digest, printed as hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Computes the digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self::finish(Sha256::new_with_prefix(bytes))
    }

    pub(crate) fn finish(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A given number of pseudo-random bytes; equal seeds give equal bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    bytes: u64,
    seed: u64,
}

impl Content {
    /// Describes `bytes` bytes grown from `seed`.
    pub const fn new(bytes: u64, seed: u64) -> Self {
        Self { bytes, seed }
    }

    /// Tells how many bytes there are.
    pub const fn len(self) -> u64 {
        self.bytes
    }

    /// Tells whether there are none.
    pub const fn is_empty(self) -> bool {
        self.bytes == 0
    }

    /// Computes the digest of all bytes.
    pub fn sha256(self) -> Digest {
        let mut hasher = Sha256::new();
        self.chunks().for_each(|chunk| hasher.update(&chunk));
        Digest::finish(hasher)
    }

    /// Collects all bytes; meant for content that fits in memory.
    pub fn to_vec(self) -> Vec<u8> {
        self.chunks().flatten().collect()
    }

    /// Yields the bytes in pieces of at most 64 KiB.
    pub fn chunks(self) -> Chunks {
        Chunks {
            rest: self.bytes,
            state: self.seed,
        }
    }
}

/// The pieces of a [`Content`], in order.
#[derive(Clone, Debug)]
pub struct Chunks {
    rest: u64,
    state: u64,
}

impl Iterator for Chunks {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.rest == 0 {
            return None;
        }
        let len = self.rest.min(CHUNK);
        self.rest -= len;
        let len = usize::try_from(len).expect("a chunk is at most 64 KiB");
        let mut chunk = BytesMut::with_capacity(len.next_multiple_of(8));
        while chunk.len() < len {
            chunk.extend_from_slice(&split_mix(&mut self.state).to_le_bytes());
        }
        chunk.truncate(len);
        Some(chunk.freeze())
    }
}

/// The next number of the SplitMix64 sequence: quick, and no two seeds look alike.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_determines_the_bytes() {
        let content = Content::new(100_003, 7);
        assert_eq!(content.to_vec().len(), 100_003);
        assert_eq!(Digest::of(&content.to_vec()), content.sha256());
        assert_ne!(Content::new(100_003, 8).sha256(), content.sha256());
    }

    #[test]
    fn a_digest_reads_as_other_tools_print_it() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), empty);
    }
}
