//! The lines a program writes, collected while it runs.

use std::{
    fmt,
    io::{BufRead, BufReader, Read},
    net::SocketAddr,
    sync::Arc,
    thread,
};

use tokio::sync::watch;

/// What a program has written to one of its outputs.
#[derive(Clone, Debug)]
pub struct Output(watch::Receiver<Written>);

#[derive(Debug, Default)]
struct Written {
    lines: Vec<Arc<str>>,
    ended: bool,
}

impl Output {
    /// Collects lines on a thread that ends with the pipe.
    pub(super) fn collect(pipe: impl Read + Send + 'static) -> Self {
        let (written, output) = watch::channel(Written::default());
        thread::spawn(move || {
            let lines = BufReader::new(pipe).split(b'\n').map_while(Result::ok);
            for line in lines {
                let line = String::from_utf8_lossy(&line).into();
                written.send_modify(|written| written.lines.push(line));
            }
            written.send_modify(|written| written.ended = true);
        });
        Self(output)
    }

    /// Returns the complete lines so far, without their line ends.
    pub fn lines(&self) -> Vec<Arc<str>> {
        self.0.borrow().lines.clone()
    }

    /// Waits until there are more than `known` lines and returns those beyond; `None` if the output
    /// ends without.
    ///
    /// # Cancel safety
    ///
    /// Safe: lines stay.
    pub async fn beyond(&self, known: usize) -> Option<Vec<Arc<str>>> {
        let mut output = self.0.clone();
        let written = output.wait_for(|written| written.ended || written.lines.len() > known);
        let written = written.await.ok()?;
        let lines = written.lines.get(known..).unwrap_or_default();
        (!lines.is_empty()).then(|| lines.to_vec())
    }

    /// Waits for the first line, past ones included, that `wanted` accepts; `None` if the output
    /// ends without one.
    ///
    /// # Cancel safety
    ///
    /// Safe: lines stay.
    pub async fn line(&self, wanted: impl Fn(&str) -> bool) -> Option<String> {
        let mut output = self.0.clone();
        let find = |written: &Written| {
            written
                .lines
                .iter()
                .find(|line| wanted(line))
                .map(|line| line.to_string())
        };
        let written = output
            .wait_for(|written| written.ended || find(written).is_some())
            .await;
        written.ok().and_then(|written| find(&written))
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .borrow()
            .lines
            .iter()
            .try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Finds the first `HOST:PORT`, the host an IP address, bare or in a URL.
pub(super) fn first_address(text: &str) -> Option<SocketAddr> {
    let breaks =
        |c: char| c.is_whitespace() || matches!(c, '/' | '=' | '"' | ',' | ';' | '(' | ')');
    text.split(breaks)
        .find_map(|word| word.trim_end_matches('.').parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_prose_and_in_fields() {
        let check = |text, address: &str| {
            assert_eq!(
                first_address(text),
                Some(address.parse().unwrap()),
                "{text}"
            );
        };
        check("on http://127.0.0.1:80/.", "127.0.0.1:80");
        check("Forwarding [::1]:8080 -> local localhost:80", "[::1]:8080");
        check("address=127.0.0.1:7070, admin", "127.0.0.1:7070");
        check("{\"local\":\"127.0.0.1:40001\"}", "127.0.0.1:40001");
        assert_eq!(first_address("localhost:80"), None);
    }
}
