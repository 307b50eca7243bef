//! How far a copy is, on a terminal.

use std::time::{Duration, Instant};

use crate::output::{Console, bytes};

/// How often the line is drawn anew.
const EVERY: Duration = Duration::from_millis(100);
/// The width of the bar.
const WIDTH: usize = 24;

/// Draws one line while bytes move, and takes it away afterwards.
pub(super) struct Progress<'a> {
    console: &'a Console,
    what: String,
    total: Option<u64>,
    done: u64,
    born: Instant,
    drawn: Option<Instant>,
}

impl<'a> Progress<'a> {
    pub(super) fn new(console: &'a Console, what: String, total: Option<u64>) -> Self {
        Self {
            console,
            what,
            total,
            done: 0,
            born: Instant::now(),
            drawn: None,
        }
    }

    /// So many bytes more have moved.
    pub(super) fn moved(&mut self, bytes: usize) {
        self.done += bytes as u64;
        let now = Instant::now();
        let since = now.duration_since(self.drawn.unwrap_or(self.born));
        if self.console.shows_progress() && since >= EVERY {
            self.drawn = Some(now);
            let elapsed = now.duration_since(self.born);
            let line = line(&self.what, self.done, self.total, elapsed);
            self.console.redraw(&line);
        }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.born.elapsed()
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            self.console.redraw("");
        }
    }
}

fn line(what: &str, done: u64, total: Option<u64>, elapsed: Duration) -> String {
    let rate = (done as f64 / elapsed.as_secs_f64().max(0.001)) as u64;
    let rate = bytes(rate);
    match total.filter(|total| *total > 0) {
        Some(total) => {
            let share = (done as f64 / total as f64).min(1.0);
            let full = (share * WIDTH as f64) as usize;
            let bar = format!("{}{}", "#".repeat(full), "-".repeat(WIDTH - full));
            let percent = (share * 100.0) as u64;
            let (done, total) = (bytes(done.min(total)), bytes(total));
            format!("{what}  [{bar}] {percent:>3}%  {done} of {total}  {rate}/s")
        }
        None => format!("{what}  {}  {rate}/s", bytes(done)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_it_is() {
        let second = Duration::from_secs(1);
        assert_eq!(
            line("a", 512, Some(1024), second),
            "a  [############------------]  50%  512 B of 1.0 KiB  512 B/s"
        );
        // The tar around the files is not their size.
        let full = line("a", 2048, Some(1024), second);
        assert!(full.contains("100%  1.0 KiB of 1.0 KiB"), "{full}");
        assert_eq!(line("a", 2048, None, second), "a  2.0 KiB  2.0 KiB/s");
    }
}
