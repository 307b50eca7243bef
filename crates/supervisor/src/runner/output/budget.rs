//! How much of an output is sent on.

use bytes::{Bytes, BytesMut};

/// The bytes of an output that may still be sent, and where the cut goes.
///
/// What it lets through is a beginning of what it is given, in however many pieces that comes. A
/// cut never falls inside a character of UTF-8: up to three bytes less than the limit are sent.
/// That can only be told from what follows, so up to three bytes are held back at the limit.
#[derive(Debug, Default)]
pub(super) struct Budget {
    limit: Option<u64>,
    sent: u64,
    held: Bytes,
    cut: bool,
}

impl Budget {
    /// A budget of `limit` bytes; unlimited if unset.
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Takes what was read, and returns what of it, and of what was held back, goes on.
    pub(super) fn take(&mut self, chunk: Bytes) -> Bytes {
        let Some(limit) = self.limit else {
            return self.send(chunk);
        };
        if self.cut {
            return Bytes::new();
        }
        let mut data = self.join(chunk);
        let room = usize::try_from(limit - self.sent).unwrap_or(usize::MAX);
        if data.len() > room {
            self.cut = true;
            let begun = begun_character(&data[..room]).filter(|_| is_continuation(data[room]));
            data.truncate(begun.map_or(room, |begun| begun.at));
        } else if let Some(begun) = begun_character(&data).filter(|it| it.at + it.len > room) {
            self.held = data.split_off(begun.at);
        }
        self.send(data)
    }

    /// The output has ended: what was held back goes on.
    pub(super) fn finish(&mut self) -> Bytes {
        let held = std::mem::take(&mut self.held);
        self.send(held)
    }

    /// Whether nothing more will go on, and something did not.
    pub(super) const fn is_cut(&self) -> bool {
        self.cut
    }

    /// Bytes that went on.
    pub(super) const fn sent(&self) -> u64 {
        self.sent
    }

    fn join(&mut self, chunk: Bytes) -> Bytes {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return chunk;
        }
        let mut joined = BytesMut::from(held);
        joined.extend_from_slice(&chunk);
        joined.freeze()
    }

    fn send(&mut self, data: Bytes) -> Bytes {
        self.sent += data.len() as u64;
        data
    }
}

/// A character that has begun at `at` and needs `len` bytes, more than there are.
struct Begun {
    at: usize,
    len: usize,
}

/// The character in which `bytes` ends, if it does not end after one.
fn begun_character(bytes: &[u8]) -> Option<Begun> {
    let at = bytes.iter().rposition(|byte| !is_continuation(*byte))?;
    let len = match bytes[at] {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return None,
    };
    (at + len > bytes.len()).then_some(Begun { at, len })
}

const fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What goes on of `text` if it comes in pieces of `piece` bytes, and whether it was cut.
    fn run(text: &[u8], limit: Option<u64>, piece: usize) -> (Vec<u8>, bool) {
        let mut budget = Budget::new(limit);
        let mut sent = Vec::new();
        for piece in text.chunks(piece) {
            sent.extend_from_slice(&budget.take(Bytes::copy_from_slice(piece)));
        }
        sent.extend_from_slice(&budget.finish());
        assert_eq!(budget.sent(), sent.len() as u64);
        (sent, budget.is_cut())
    }

    #[track_caller]
    fn check(text: &[u8], limit: u64, expected: &[u8]) {
        for piece in 1..=text.len() {
            let (sent, cut) = run(text, Some(limit), piece);
            assert_eq!(sent, expected, "in pieces of {piece}");
            assert_eq!(cut, expected.len() < text.len());
        }
    }

    #[test]
    fn the_limit_itself_is_not_a_cut() {
        check(b"abc", 3, b"abc");
        check("aü".as_bytes(), 3, "aü".as_bytes());
        check(b"a\xC3", 2, b"a\xC3");
    }

    #[test]
    fn a_cut_falls_between_characters() {
        check(b"abcd", 3, b"abc");
        check("aüb".as_bytes(), 2, b"a");
        check("aüb".as_bytes(), 3, "aü".as_bytes());
        for limit in 1..5 {
            check("a🦀b".as_bytes(), limit, b"a");
        }
        check("a🦀b".as_bytes(), 5, "a🦀".as_bytes());
        check("🦀".as_bytes(), 0, b"");
    }

    #[test]
    fn what_is_not_text_is_cut_at_the_limit() {
        check(b"a\xC3\xC3\xC3", 2, b"a\xC3");
        check(b"\x80\x80\x80\x80\x80", 3, b"\x80\x80\x80");
        check(b"\xFF\xFF\xFF", 2, b"\xFF\xFF");
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            text in proptest::collection::vec(any::<u8>(), 0..40),
            limit in 0_u64..45,
            piece in 1_usize..40,
        ) {
            let (sent, cut) = run(&text, Some(limit), piece);
            prop_assert_eq!(&run(&text, Some(limit), 64), &(sent.clone(), cut));
            prop_assert!(text.starts_with(&sent));
            let len = text.len() as u64;
            prop_assert_eq!(cut, len > limit);
            let sent = sent.len() as u64;
            prop_assert!(sent <= limit && sent + 3 >= limit.min(len));
            prop_assert!(cut || sent == len);
        }

        #[test]
        fn text_stays_text(text in "\\PC{0,20}", limit in 0_u64..45, piece in 1_usize..40) {
            let (sent, _) = run(text.as_bytes(), Some(limit), piece);
            prop_assert!(std::str::from_utf8(&sent).is_ok());
        }
    }
}
