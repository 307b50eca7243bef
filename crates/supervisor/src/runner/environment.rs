//! The variables of a command.

use tidegate_lifecycle::exec::Command;

use super::terminal::DEFAULT_TERM;

/// All variables of a command, as the kernel takes them: of two with the same name the last counts.
pub(super) fn complete(base: &[(String, String)], command: &Command) -> Vec<String> {
    let mut complete: Vec<(&str, &str)> = Vec::new();
    let term = command.terminal.map(|_| DEFAULT_TERM);
    let given = base.iter().chain(&command.environment);
    let given = given.map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in term.into_iter().chain(given) {
        match complete.iter_mut().find(|(it, _)| *it == name) {
            Some((_, old)) => *old = value,
            None => complete.push((name, value)),
        }
    }
    let joined = complete
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"));
    joined.collect()
}

#[cfg(test)]
mod tests {
    use tidegate_lifecycle::exec::TerminalSize;

    use super::*;

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn the_last_of_a_name_counts() {
        let base = [pair("PATH", "/bin"), pair("HOME", "/root")];
        let mut command = Command {
            environment: vec![pair("HOME", "/tmp"), pair("A", "="), pair("A", "")],
            ..Command::default()
        };
        assert_eq!(complete(&base, &command), ["PATH=/bin", "HOME=/tmp", "A="]);
        command.terminal = Some(TerminalSize::default());
        command.environment = Vec::new();
        let expected = ["TERM=xterm", "PATH=/bin", "HOME=/root"];
        assert_eq!(complete(&base, &command), expected);
        command.environment = vec![pair("TERM", "vt100")];
        assert_eq!(complete(&base, &command)[0], "TERM=vt100");
    }
}
