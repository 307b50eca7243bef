//! The way out of a session that does not answer: `~.` at the start of a line.

use std::str::FromStr;

/// The character that begins an escape, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Escape(Option<u8>);

impl FromStr for Escape {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.as_bytes() {
            _ if text == "none" => Ok(Self(None)),
            [one] if one.is_ascii_graphic() => Ok(Self(Some(*one))),
            [b'^', control @ b'@'..=b'_'] => Ok(Self(Some(control & 0x1f))),
            _ => Err("use one character, a control character such as ^], or none"),
        }
    }
}

/// Looks for the escape in what is typed.
///
/// | state | the escape character | `.` | anything else |
/// |---|---|---|---|
/// | at the start of a line | held back | passed on | passed on |
/// | held back | passed on once | the way out | both passed on |
/// | within a line | passed on | passed on | passed on |
#[derive(Debug)]
pub(super) struct Watch {
    escape: Escape,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    Held,
    Within,
}

/// What becomes of typed bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Typed {
    /// What the command gets.
    pub(super) pass: Vec<u8>,
    /// Whether the way out was typed behind that.
    pub(super) out: bool,
}

impl Watch {
    pub(super) const fn new(escape: Escape) -> Self {
        Self {
            escape,
            state: State::Start,
        }
    }

    /// Takes bytes as they are typed.
    pub(super) fn take(&mut self, typed: &[u8]) -> Typed {
        let mut pass = Vec::with_capacity(typed.len() + 1);
        for &byte in typed {
            let is_escape = self.escape.0 == Some(byte);
            match self.state {
                State::Start if is_escape => {
                    self.state = State::Held;
                    continue;
                }
                State::Held if byte == b'.' => {
                    self.state = State::Start;
                    return Typed { pass, out: true };
                }
                State::Held if !is_escape => pass.extend(self.escape.0),
                State::Start | State::Held | State::Within => {}
            }
            pass.push(byte);
            self.state = match byte {
                b'\r' | b'\n' => State::Start,
                _ => State::Within,
            };
        }
        Typed { pass, out: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(escape: &str) -> Watch {
        Watch::new(escape.parse().unwrap())
    }

    #[track_caller]
    fn check(typed: &str, pass: &str, out: bool) {
        let expected = Typed {
            pass: pass.into(),
            out,
        };
        assert_eq!(watch("~").take(typed.as_bytes()), expected, "{typed:?}");
        // Typed slowly it is the same.
        let mut slow = watch("~");
        let mut seen = Vec::new();
        let found = typed.bytes().any(|byte| {
            let typed = slow.take(&[byte]);
            seen.extend(typed.pass);
            typed.out
        });
        assert_eq!((seen, found), (pass.into(), out), "{typed:?}");
    }

    #[test]
    fn the_way_out_begins_a_line() {
        check("~.", "", true);
        check("ls\r~.", "ls\r", true);
        check("ls\n~.more", "ls\n", true);
        check("a~.", "a~.", false);
        check("\r~", "\r", false);
    }

    #[test]
    fn everything_else_passes() {
        check("~~.", "~.", false);
        check("~~\r~.", "~\r", true);
        check("~a~.", "~a~.", false);
        check("~\r~.", "~\r", true);
        check("", "", false);
    }

    #[test]
    fn the_character_can_be_another_or_none() {
        let typed = watch("^]").take(b"~.\r\x1d.");
        assert_eq!((typed.pass, typed.out), (b"~.\r".to_vec(), true));
        let typed = watch("none").take(b"~.");
        assert_eq!((typed.pass, typed.out), (b"~.".to_vec(), false));
        for bad in ["", "~~", "ä", " ", "^"] {
            assert_eq!(bad.parse::<Escape>().is_ok(), bad == "^", "{bad:?}");
        }
    }
}
