//! Values that only a gateway takes.

use tidegate_daemon::choice;
use tidegate_daemon::settings::{Remedy, Value, quoted};
use tidegate_lifecycle::id::GatewayId;

choice! {
    /// What becomes of an open for a sandbox that nobody knows.
    pub enum UnknownSandboxes {
        /// It is refused at once.
        Refuse = "refuse",
        /// It waits for a session as that of a known one does.
        Wait = "wait",
    }
}

/// How a gateway is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayName(pub GatewayId);

impl GatewayName {
    const MAX_LEN: usize = 64;

    fn of_host() -> Self {
        let host = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        let name: String = host
            .chars()
            .filter(|c| Self::allows(*c))
            .take(Self::MAX_LEN)
            .collect();
        Self(GatewayId::new(if name.is_empty() {
            "gateway".to_owned()
        } else {
            name
        }))
    }

    const fn allows(c: char) -> bool {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
    }
}

impl Value for GatewayName {
    const KIND: &'static str = "NAME";

    fn read(text: &str) -> Result<Self, Remedy> {
        if text == "auto" {
            return Ok(Self::of_host());
        }
        if (1..=Self::MAX_LEN).contains(&text.len()) && text.chars().all(Self::allows) {
            Ok(Self(GatewayId::new(text)))
        } else {
            Err(Remedy::new(
                "write 1 to 64 letters, digits, '-', '_' or '.'",
            ))
        }
    }

    fn show(&self) -> String {
        quoted(self.0.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_confuse_a_path_is_refused() {
        assert!(GatewayName::read("gw/0").is_err());
        assert!(GatewayName::read("gw-0.example").is_ok());
    }
}
