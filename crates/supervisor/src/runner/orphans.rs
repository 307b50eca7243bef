//! Reaps orphans where nobody else does: as process 1.
//!
//! Process 1 becomes the parent of whoever loses its own. Among its children are also those that
//! somebody here waits for, or a library; whoever reaps one of those steals its status. So it is
//! asked which ones are dead, and only those are reaped that are nobody's, and that nobody has
//! reaped within a while.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, WaitOptions, getpid, waitpid};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use super::child::Children;
use super::inner::Inner;

/// How long a dead child may wait for whoever it belongs to.
const OWNED: Duration = Duration::from_secs(1);

/// Begins to reap orphans if this is process 1, unless somebody has begun.
pub(super) fn adopt(inner: &Arc<Inner>) {
    if getpid().is_init() && inner.adopts.set(()).is_ok() {
        let stop = inner.stop.clone();
        let orphans = reap_all(inner.children.clone());
        inner.minders.spawn(async move {
            stop.run_until_cancelled(orphans).await;
        });
    }
}

async fn reap_all(children: Children) {
    let Ok(mut ended) = signal(SignalKind::child()) else {
        tracing::warn!("orphans are not reaped: the signal of their end cannot be had");
        return;
    };
    let mut suspects = HashMap::new();
    loop {
        if suspects.is_empty() {
            ended.recv().await;
        } else {
            sleep(OWNED).await;
        }
        suspects = reap(&children, &suspects);
    }
}

/// Reaps dead children that were `suspects` before, and returns the others.
///
/// Each is kept with the number of the birth that was the next when it was found: it may be the
/// child of one that had begun.
fn reap(children: &Children, suspects: &HashMap<i32, u64>) -> HashMap<i32, u64> {
    let ours = children.lock();
    let mut left = HashMap::new();
    for pid in dead_children().filter(|pid| !ours.contains(*pid)) {
        match suspects.get(&pid) {
            Some(found) if ours.are_over(*found) => {
                let _ = waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
            }
            found => {
                left.insert(pid, found.copied().unwrap_or_else(|| ours.now()));
            }
        }
    }
    left
}

fn dead_children() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("stat")).ok()?;
        let line = String::from_utf8_lossy(&line);
        let (_, rest) = line.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        let is_dead = fields.next() == Some("Z") && fields.next() == Some("1");
        is_dead.then_some(pid)
    })
}
