//! Where a user's configuration lies on each system.

use std::env;
use std::path::PathBuf;

/// `tidegate/config.toml` in the user's configuration folder; none if the system has no user's home.
pub(super) fn config_file() -> Option<PathBuf> {
    // The rule of the XDG base directories: a relative path counts as unset.
    let xdg = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let folder = xdg.filter(|path| path.is_absolute()).or_else(native)?;
    Some(folder.join("tidegate").join("config.toml"))
}

#[cfg(target_os = "macos")]
fn native() -> Option<PathBuf> {
    Some(env::home_dir()?.join("Library").join("Application Support"))
}

#[cfg(windows)]
fn native() -> Option<PathBuf> {
    env::var_os("APPDATA").map(PathBuf::from)
}

#[cfg(not(any(target_os = "macos", windows)))]
fn native() -> Option<PathBuf> {
    Some(env::home_dir()?.join(".config"))
}
