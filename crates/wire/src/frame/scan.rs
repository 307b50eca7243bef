//! The few bytes that decide how a message is read.

use super::header::DATA_KEY;
use super::{FrameError, FrameLimit};
use crate::message::{self, PREFIX_LEN};

/// What the beginning of a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scan {
    /// Too little is there to tell.
    More,
    /// A data frame in the form that everybody writes, so its payload needs no decoding.
    Data {
        /// How many bytes precede the payload.
        header: usize,
        /// How many bytes the payload has.
        payload: usize,
    },
    /// Anything else, to be decoded as a whole.
    Other {
        /// How many bytes follow the prefix.
        len: usize,
    },
}

/// The longest beginning that leaves [`Scan::More`] undecided, and one byte.
pub(crate) const MAX_HEAD: usize = PREFIX_LEN + 1 + MAX_VARINT;

/// The longest length in canonical form: 32 bits, seven in each byte.
const MAX_VARINT: usize = 5;

/// Reads the beginning of a message, and refuses it when it is too large.
pub(crate) fn scan(bytes: &[u8], limit: FrameLimit) -> Result<Scan, FrameError> {
    let Some((prefix, rest)) = bytes.split_first_chunk::<PREFIX_LEN>() else {
        return Ok(Scan::More);
    };
    let len = message::announced(*prefix)?;
    limit.check_message(len)?;
    let body = &rest[..rest.len().min(len)];
    let whole = body.len() == len;
    let Some((&key, rest)) = body.split_first() else {
        return Ok(if whole {
            Scan::Other { len }
        } else {
            Scan::More
        });
    };
    if key != DATA_KEY {
        return Ok(Scan::Other { len });
    }
    match varint(rest) {
        Varint::More if !whole => Ok(Scan::More),
        Varint::Canonical { value, width } if 1 + width + value == len => {
            limit.check_payload(value)?;
            Ok(Scan::Data {
                header: PREFIX_LEN + 1 + width,
                payload: value,
            })
        }
        Varint::More | Varint::Padded | Varint::Canonical { .. } => Ok(Scan::Other { len }),
    }
}

enum Varint {
    More,
    /// Longer than it needs to be, or longer than a length can be.
    Padded,
    Canonical {
        value: usize,
        width: usize,
    },
}

fn varint(bytes: &[u8]) -> Varint {
    let mut value = 0;
    for (at, byte) in bytes.iter().take(MAX_VARINT).enumerate() {
        value |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            let padded = at > 0 && *byte == 0;
            return if padded {
                Varint::Padded
            } else {
                Varint::Canonical {
                    value,
                    width: at + 1,
                }
            };
        }
    }
    if bytes.len() < MAX_VARINT {
        Varint::More
    } else {
        Varint::Padded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: Result<Scan, FrameError>) {
        assert_eq!(scan(bytes, FrameLimit::Legacy), expected, "{bytes:?}");
    }

    #[test]
    fn the_form_that_everybody_writes_is_recognised() {
        check(
            &[0, 0, 0, 0, 4, 0x12, 2],
            Ok(Scan::Data {
                header: 7,
                payload: 2,
            }),
        );
        check(
            &[0, 0, 0, 0, 2, 0x12, 0],
            Ok(Scan::Data {
                header: 7,
                payload: 0,
            }),
        );
        check(
            &[0, 0, 0, 0, 131, 0x12, 0x80, 1],
            Ok(Scan::Data {
                header: 8,
                payload: 128,
            }),
        );
    }

    #[test]
    fn too_little_is_told_from_too_short() {
        check(&[0, 0, 0, 0], Ok(Scan::More));
        check(&[0, 0, 0, 0, 4], Ok(Scan::More));
        check(&[0, 0, 0, 0, 4, 0x12], Ok(Scan::More));
        check(&[0, 0, 0, 0, 131, 0x12, 0x80], Ok(Scan::More));
        check(&[0, 0, 0, 0, 1, 0x12], Ok(Scan::Other { len: 1 }));
        check(&[0, 0, 0, 0, 2, 0x12, 0x80], Ok(Scan::Other { len: 2 }));
        check(&[0, 0, 0, 0, 0], Ok(Scan::Other { len: 0 }));
        check(&[0, 0, 0, 0, 0, 0x12, 0], Ok(Scan::Other { len: 0 }));
    }

    #[test]
    fn every_other_form_is_decoded_as_a_whole() {
        check(&[0, 0, 0, 0, 3, 0x12, 0x80, 0], Ok(Scan::Other { len: 3 })); // padded length
        check(&[0, 0, 0, 0, 9, 0x12, 2], Ok(Scan::Other { len: 9 })); // more fields follow
        check(&[0, 0, 0, 0, 4, 0x12, 9], Ok(Scan::Other { len: 4 })); // longer than its message
        check(&[0, 0, 0, 0, 2, 0x1a, 0], Ok(Scan::Other { len: 2 }));
        check(
            &[0, 0, 0, 0, 20, 0x12, 255, 255, 255, 255, 255],
            Ok(Scan::Other { len: 20 }),
        );
    }

    #[test]
    fn the_limit_comes_before_the_payload() {
        let header = super::super::data_header(65_537);
        let too_large = FrameError::TooLarge {
            len: 65_537,
            limit: 65_536,
        };
        assert_eq!(scan(&header, FrameLimit::Strict), Err(too_large));
        assert_eq!(
            scan(&header, FrameLimit::Legacy),
            Ok(Scan::Data {
                header: 9,
                payload: 65_537
            })
        );
        let full = super::super::data_header(65_536);
        assert_eq!(
            scan(&full, FrameLimit::Strict),
            Ok(Scan::Data {
                header: 9,
                payload: 65_536
            })
        );
        let len = 1_048_577;
        check(
            &[0, 0, 16, 0, 1],
            Err(FrameError::TooLarge {
                len,
                limit: 1_048_576,
            }),
        );
    }
}
