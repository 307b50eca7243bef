//! Percent-encoding of `grpc-message`, as gRPC's HTTP/2 protocol page defines it.

/// The text with every byte but printable ASCII encoded, and `%` too.
pub(super) fn encode(text: &str) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if matches!(byte, b' '..=b'~') && byte != b'%' {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.push(char::from(HEX[usize::from(byte >> 4)]));
            encoded.push(char::from(HEX[usize::from(byte & 0xf)]));
        }
    }
    encoded
}

/// The text that was encoded. What is not well encoded stays as it is, what is not text is replaced.
pub(super) fn decode(encoded: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((&first, tail)) = rest.split_first() {
        let (byte, next) = match tail {
            [high, low, next @ ..] if first == b'%' => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, next),
                _ => (first, tail),
            },
            _ => (first, tail),
        };
        bytes.push(byte);
        rest = next;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_survives_in_printable_ascii(text in any::<String>()) {
            let encoded = encode(&text);
            prop_assert!(encoded.bytes().all(|byte| matches!(byte, b' '..=b'~')));
            prop_assert_eq!(decode(encoded.as_bytes()), text);
        }

        #[test]
        fn anything_decodes(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            decode(&bytes);
        }
    }

    #[test]
    fn what_is_not_well_encoded_stays() {
        assert_eq!(decode(b"100%"), "100%");
        assert_eq!(decode(b"%zz%4"), "%zz%4");
        assert_eq!(decode(b"%e2%82%ac"), "€");
        assert_eq!(decode(b"%ff"), "\u{fffd}");
    }
}
