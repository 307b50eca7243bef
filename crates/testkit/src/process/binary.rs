//! Where the program under test lies.

use std::{env, path::PathBuf};

/// There is no such program among those that were built.
#[derive(Debug, thiserror::Error)]
#[error(
    "no program {name:?}: neither CARGO_BIN_EXE_{name} nor {looked_at:?} leads to one; build it first"
)]
pub struct BinaryNotFound {
    /// The program's name.
    pub name: String,
    /// Where it was looked for.
    pub looked_at: PathBuf,
}

/// Finds a program of this workspace: by `CARGO_BIN_EXE_<name>` in the environment, else beside the
/// running test in the target directory.
///
/// # Errors
///
/// [`BinaryNotFound`] if there is none.
pub fn binary(name: &str) -> Result<PathBuf, BinaryNotFound> {
    if let Some(path) = env::var_os(format!("CARGO_BIN_EXE_{name}")) {
        return Ok(path.into());
    }
    // target/debug/deps/test-0123 or target/debug/examples/x, seen from which it is one up
    let test = env::current_exe().unwrap_or_default();
    let looked_at: PathBuf = test
        .ancestors()
        .skip(2)
        .take(1)
        .map(|up| up.join(name))
        .collect();
    if looked_at.is_file() {
        Ok(looked_at)
    } else {
        Err(BinaryNotFound {
            name: name.into(),
            looked_at,
        })
    }
}
