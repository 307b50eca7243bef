//! What a launcher is told.

use std::io;

/// A command in the form in which the kernel takes it, and where to run it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::runner) struct Request {
    /// The program and its arguments.
    pub(in crate::runner) argv: Vec<String>,
    /// `NAME=value`, complete.
    pub(in crate::runner) environment: Vec<String>,
    /// Where it starts.
    pub(in crate::runner) workdir: Option<String>,
    /// The one file is a terminal for all three standard streams; else there are three pipes.
    pub(in crate::runner) terminal: bool,
    /// The command dies with the process that starts it.
    pub(in crate::runner) dies_with_parent: bool,
}

impl Request {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4096);
        let flags = [self.terminal, self.dies_with_parent];
        bytes.extend(flags.map(u8::from));
        put_all(&mut bytes, &self.argv);
        put_all(&mut bytes, &self.environment);
        put_all(&mut bytes, self.workdir.as_slice());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> io::Result<Self> {
        let mut input = Input(bytes);
        let [terminal, dies_with_parent] = input.take()?;
        Ok(Self {
            argv: input.texts()?,
            environment: input.texts()?,
            workdir: input.texts()?.pop(),
            terminal: terminal != 0,
            dies_with_parent: dies_with_parent != 0,
        })
    }
}

fn put_all(bytes: &mut Vec<u8>, texts: &[String]) {
    put_len(bytes, texts.len());
    for text in texts {
        put_len(bytes, text.len());
        bytes.extend_from_slice(text.as_bytes());
    }
}

fn put_len(bytes: &mut Vec<u8>, len: usize) {
    let len = u32::try_from(len).expect("the limits on commands are far below four gigabytes");
    bytes.extend_from_slice(&len.to_le_bytes());
}

/// What is left to read.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let (taken, rest) = self
            .0
            .split_first_chunk()
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn len(&mut self) -> io::Result<usize> {
        Ok(u32::from_le_bytes(self.take()?) as usize)
    }

    fn texts(&mut self) -> io::Result<Vec<String>> {
        (0..self.len()?).map(|_| self.text()).collect()
    }

    fn text(&mut self) -> io::Result<String> {
        let len = self.len()?;
        let (text, rest) = self
            .0
            .split_at_checked(len)
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).map_err(|_| io::ErrorKind::InvalidData.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_the_way() {
        let request = Request {
            argv: vec!["sh".to_owned(), String::new(), "ü\n".to_owned()],
            environment: vec!["A=b=c".to_owned()],
            workdir: Some("/tmp".to_owned()),
            terminal: true,
            dies_with_parent: true,
        };
        let bytes = request.encode();
        assert_eq!(Request::decode(&bytes).unwrap(), request);
        for cut in 0..bytes.len() {
            assert!(Request::decode(&bytes[..cut]).is_err(), "{cut}");
        }
    }
}
