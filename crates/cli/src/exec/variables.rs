//! The command's variables, out of options and files.

use std::path::Path;

use super::Args;
use crate::failure::Failure;

/// Reads KEY=VALUE.
pub(super) fn parse(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some(("", _)) | None => Err("use KEY=VALUE".to_owned()),
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
    }
}

/// All of them, those that win last. A terminal's program is told which one is here.
pub(super) fn all(args: &Args) -> Result<Vec<(String, String)>, Failure> {
    let mut all = Vec::new();
    let term = std::env::var("TERM").ok().filter(|term| !term.is_empty());
    if let Some(term) = term.filter(|_| args.tty) {
        all.push(("TERM".to_owned(), term));
    }
    for path in &args.env_file {
        all.extend(read(path)?);
    }
    all.extend(args.env.iter().cloned());
    Ok(all)
}

fn read(path: &Path) -> Result<Vec<(String, String)>, Failure> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| Failure::io(format!("read {}", path.display()), error))?;
    parse_file(&text).map_err(|line| {
        let sentence = format!("line {line} of {} is no variable", path.display());
        Failure::settings(sentence, "Write KEY=VALUE, or begin the line with #.")
    })
}

/// Reads KEY=VALUE lines as they are: quotes belong to the value. An error is the line's number.
fn parse_file(text: &str) -> Result<Vec<(String, String)>, usize> {
    let lines = text.lines().enumerate();
    let meant = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    meant
        .map(|(index, line)| parse(line).map_err(|_| index + 1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn variables_are_taken_as_they_are() {
        assert_eq!(parse("A=b=c"), Ok(pair("A", "b=c")));
        assert_eq!(parse("A="), Ok(pair("A", "")));
        assert!(parse("A").is_err() && parse("=x").is_err());
        let file = "# first\nA=1\r\n\nB=\"two words\"\n";
        let read = parse_file(file).unwrap();
        assert_eq!(read, [pair("A", "1"), pair("B", "\"two words\"")]);
        assert_eq!(parse_file("A=1\nexport B\n"), Err(2));
    }
}
