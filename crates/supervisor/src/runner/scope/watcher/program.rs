//! The watcher: waits for the supervisor's end, and ends what it has left running.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::process::setsid;

use crate::runner::door;
use crate::runner::scope::cgroup::end_abandoned;

/// Runs until the supervisor is gone and its commands with it.
pub(in crate::runner) fn run(home: Option<&Path>) -> i32 {
    let Some(home) = home else { return 2 };
    // What makes the supervisor stop must not reach its watcher first.
    let detached = door::block_endings().and_then(|()| Ok(setsid()?));
    if detached.is_err() {
        return 1;
    }
    let held = hold_inputs();
    end_abandoned(home);
    // Only now may anybody see the end of an input.
    drop(held);
    0
}

/// Holds what it is given, until the supervisor is gone.
fn hold_inputs() -> HashMap<u64, Vec<OwnedFd>> {
    let mut held = HashMap::new();
    loop {
        let mut id = [0; 8];
        match crate::runner::socket::receive(rustix::stdio::stdin(), &mut id) {
            Ok((0, _)) => return held,
            Ok((_, files)) if files.is_empty() => {
                held.remove(&u64::from_le_bytes(id));
            }
            Ok((_, files)) => {
                held.insert(u64::from_le_bytes(id), files);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return held,
        }
    }
}
