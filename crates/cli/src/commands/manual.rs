//! `tidegate man`

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap_mangen::Man;

use crate::args;
use crate::failure::Failure;
use crate::output::Console;

/// Write the manual pages: one for each command into a folder, or the first one to stdout
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tidegate man | man -l -\n  \
    tidegate man ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// Where to put them; it is made if it is not there
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let mut command = args::command().disable_help_subcommand(true);
    command.build();
    let Some(folder) = &args.folder else {
        let page = page(command).map_err(|error| Failure::io("write the manual", error))?;
        return console.line(String::from_utf8_lossy(&page).trim_end());
    };
    let failed = |error| Failure::io(format!("write the manual to {}", folder.display()), error);
    std::fs::create_dir_all(folder).map_err(failed)?;
    pages(command, folder).map_err(failed)
}

/// Writes a command's page and those of the commands below it, which were built.
fn pages(command: clap::Command, folder: &Path) -> io::Result<()> {
    let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
    for below in shown.cloned() {
        pages(below, folder)?;
    }
    let name = Man::new(command.clone()).get_filename();
    std::fs::write(folder.join(name), page(command)?)
}

/// The page of a command that was built.
fn page(command: clap::Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let man = Man::new(command.clone());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    synopsis(command.clone(), &mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().any(|one| !one.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    let after = command.get_after_help();
    notes(
        &after.map(ToString::to_string).unwrap_or_default(),
        &mut page,
    )?;
    Ok(page)
}

/// How the command is called, with the dots of what can be repeated.
fn synopsis(mut command: clap::Command, page: &mut impl Write) -> io::Result<()> {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").lines().map(str::trim);
    writeln!(page, ".SH SYNOPSIS")?;
    as_it_stands(usage, page)
}

/// What `--help` says at its end: examples, which keep their lines, and what is to be known.
fn notes(text: &str, page: &mut impl Write) -> io::Result<()> {
    for paragraph in text.split("\n\n") {
        let mut lines = paragraph.lines().peekable();
        match lines.next_if(|line| line.starts_with("Example")) {
            Some(_) => {
                writeln!(page, ".SH EXAMPLES")?;
                as_it_stands(
                    lines.map(|line| line.strip_prefix("  ").unwrap_or(line)),
                    page,
                )?;
            }
            None if paragraph.is_empty() => {}
            None => {
                writeln!(page, ".SH NOTES")?;
                for line in lines {
                    writeln!(page, "{}", escaped(line))?;
                }
            }
        }
    }
    Ok(())
}

/// Lines that must not be filled.
fn as_it_stands<'a>(lines: impl Iterator<Item = &'a str>, page: &mut impl Write) -> io::Result<()> {
    writeln!(page, ".nf")?;
    for line in lines {
        writeln!(page, "{}", escaped(line))?;
    }
    writeln!(page, ".fi")
}

/// A line that roff shows as it is.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(name: &str) -> String {
        let mut command = args::command();
        command.build();
        let below = command.find_subcommand(name).unwrap().clone();
        String::from_utf8(page(below).unwrap()).unwrap()
    }

    #[test]
    fn examples_keep_their_lines_and_what_repeats_has_its_dots() {
        let page = page_of("port-forward");
        for part in [
            ".SH SYNOPSIS\n.nf\ntidegate port\\-forward [OPTIONS] <SANDBOX> <SPEC>...\n.fi\n",
            ".SH EXAMPLES\n.nf\ntidegate port\\-forward local 8080:80 ",
            ".fi\n.SH NOTES\nIt stays when",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(!page.contains("EXTRA"), "{page}");
    }

    #[test]
    fn a_line_is_no_request_to_roff() {
        assert_eq!(escaped(".x"), "\\&.x");
        assert_eq!(escaped("a \\ -b"), "a \\e \\-b");
    }
}
