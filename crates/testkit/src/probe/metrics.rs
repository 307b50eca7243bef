//! A very small HTTP/1 client, and the Prometheus text format as far as tests need it.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(5);

/// Why a page could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum ScrapeError {
    /// The URL is not `http://HOST:PORT/path`.
    #[error("{0:?} is not http://HOST:PORT/path")]
    Url(String),
    /// The connection failed.
    #[error("no answer")]
    Io(#[from] io::Error),
    /// The answer is not HTTP/1.
    #[error("the answer is not HTTP: {0:?}")]
    Malformed(String),
    /// The server refused.
    #[error("the server answered {0}")]
    Status(u16),
}

/// Fetches `http://HOST:PORT/path` and returns the body of a 200; blocks for at most 5 s.
///
/// # Errors
///
/// [`ScrapeError`], a status other than 200 included.
pub fn get(url: &str) -> Result<String, ScrapeError> {
    let (host, path) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .ok_or_else(|| ScrapeError::Url(url.to_owned()))?;
    let address = host
        .to_socket_addrs()?
        .next()
        .ok_or_else(|| ScrapeError::Url(url.to_owned()))?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    body(&answer)
}

fn body(answer: &str) -> Result<String, ScrapeError> {
    let malformed = || ScrapeError::Malformed(answer.chars().take(200).collect());
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(malformed)?;
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .ok_or_else(malformed)?;
    if status != 200 {
        return Err(ScrapeError::Status(status));
    }
    let chunked = head
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked");
    if chunked {
        unchunk(body).ok_or_else(malformed)
    } else {
        Ok(body.to_owned())
    }
}

fn unchunk(mut rest: &str) -> Option<String> {
    let mut body = String::new();
    loop {
        let (size, after) = rest.split_once("\r\n")?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.push_str(after.get(..size)?);
        rest = after.get(size..)?.strip_prefix("\r\n")?;
    }
}

/// The samples of one scrape, by name with labels as written, for instance
/// `tidegate_streams{kind="forward",state="open"}`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Samples of type gauge.
    pub gauges: BTreeMap<String, f64>,
    /// All others: counters and what belongs to histograms.
    pub others: BTreeMap<String, f64>,
}

impl Metrics {
    /// Sums up every sample of the metric `name`, whatever its labels.
    pub fn sum(&self, name: &str) -> f64 {
        let samples = self.gauges.iter().chain(&self.others);
        samples
            .filter(|(sample, _)| metric_of(sample) == name)
            .map(|(_, value)| value)
            .sum()
    }

    fn parse(text: &str) -> Self {
        let mut metrics = Self::default();
        let gauges: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" gauge"))
            .collect();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((sample, value)) = parse_sample(line) else {
                continue;
            };
            let is_gauge = gauges.contains(&metric_of(sample));
            let samples = if is_gauge {
                &mut metrics.gauges
            } else {
                &mut metrics.others
            };
            samples.insert(sample.to_owned(), value);
        }
        metrics
    }
}

/// Fetches and reads a `/metrics` page.
///
/// # Errors
///
/// As [`get`].
pub fn scrape(url: &str) -> Result<Metrics, ScrapeError> {
    get(url).map(|text| Metrics::parse(&text))
}

/// Splits `name{labels} value [timestamp]`; labels may hold spaces.
fn parse_sample(line: &str) -> Option<(&str, f64)> {
    let name_end = line
        .rfind('}')
        .map(|brace| brace + 1)
        .or_else(|| line.find(' '))?;
    let (sample, rest) = line.split_at(name_end);
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some((sample, value))
}

fn metric_of(sample: &str) -> &str {
    sample.split('{').next().unwrap_or(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# TYPE a_sessions gauge\na_sessions{state=\"live }\"} 2\na_sessions{state=\"x\"} 1\n\
        # TYPE a_opened counter\na_opened_total 7 1700000000\n# EOF\n";

    #[test]
    fn gauges_are_told_from_counters() {
        let metrics = Metrics::parse(PAGE);
        assert_eq!(metrics.gauges.len(), 2);
        assert_eq!(metrics.sum("a_sessions"), 3.0);
        assert_eq!(metrics.others["a_opened_total"], 7.0);
    }

    #[test]
    fn bodies_come_whole_or_in_chunks() {
        let check = |answer, text: &str| assert_eq!(body(answer).unwrap(), text);
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "hi");
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n1\r\n!\r\n0\r\n\r\n",
            "hi!",
        );
        assert!(matches!(
            body("HTTP/1.1 503 No\r\n\r\n"),
            Err(ScrapeError::Status(503))
        ));
        assert!(matches!(body("SSH-2.0"), Err(ScrapeError::Malformed(_))));
    }
}
