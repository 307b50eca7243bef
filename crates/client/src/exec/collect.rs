//! Output that is kept, up to a limit.

use tidegate_lifecycle::exec::{Output, Summary};

use super::{Chunk, Outcome};

/// What a command wrote, and how it ended.
#[derive(Debug)]
pub struct Collected {
    /// Its stdout, or what it wrote to its terminal.
    pub stdout: Kept,
    /// Its stderr.
    pub stderr: Kept,
    /// How it ended.
    pub outcome: Outcome,
    limit: usize,
}

/// The beginning of one output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The bytes.
    pub data: Vec<u8>,
    /// How many bytes arrived: more than there are in `data` when the limit cut it.
    pub arrived: u64,
}

impl Collected {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            stdout: Kept::default(),
            stderr: Kept::default(),
            outcome: Outcome::CancelledHere,
            limit,
        }
    }

    pub(super) fn take(&mut self, chunk: &Chunk) {
        let limit = self.limit;
        let kept = match chunk.output {
            Output::Stdout => &mut self.stdout,
            Output::Stderr => &mut self.stderr,
        };
        let room = limit.saturating_sub(kept.data.len()).min(chunk.data.len());
        kept.data.extend_from_slice(&chunk.data[..room]);
        kept.arrived += chunk.data.len() as u64;
    }

    /// One of the outputs.
    pub const fn output(&self, output: Output) -> &Kept {
        match output {
            Output::Stdout => &self.stdout,
            Output::Stderr => &self.stderr,
        }
    }

    /// What became of one output: cut in the sandbox by the command's own budget, or here by the
    /// limit.
    pub fn summary(&self, output: Output) -> Summary {
        let kept = self.output(output);
        let told = self.outcome.exit().map(|exit| *exit.summary(output));
        let told = told.unwrap_or_default();
        let here = kept.data.len() as u64;
        Summary {
            total: told.total.max(kept.arrived),
            sent: here,
            truncated: told.truncated || here < kept.arrived,
            held_open: told.held_open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_the_limit_is_counted_and_not_kept() {
        let mut collected = Collected::new(4);
        for data in ["abc", "def"] {
            collected.take(&Chunk {
                output: Output::Stderr,
                data: data.into(),
                sequence: 0,
                order: 0,
            });
        }
        assert_eq!(collected.stderr.data, b"abcd");
        let summary = collected.summary(Output::Stderr);
        assert_eq!(
            (summary.total, summary.sent, summary.truncated),
            (6, 4, true)
        );
        let summary = collected.summary(Output::Stdout);
        assert_eq!((summary.total, summary.truncated), (0, false));
    }
}
