//! Colours, where they are wanted.

use std::env;
use std::io::IsTerminal;

use clap::ValueEnum;

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// In pipes too
    Always,
    /// Nowhere
    Never,
}

impl Colour {
    /// What it means for one output.
    pub(crate) fn on(self, stream: &impl IsTerminal) -> Style {
        let unwanted = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = || env::var_os("TERM").is_some_and(|term| term == "dumb");
        Style(match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => stream.is_terminal() && !unwanted("NO_COLOR") && !dumb(),
        })
    }
}

/// Paints text, or leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style(bool);

impl Style {
    /// Never paints.
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self(false);

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.0 && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paint_is_put_on_only_where_it_is_wanted() {
        assert_eq!(Style::PLAIN.red("x"), "x");
        assert_eq!(Style(true).green("x"), "\u{1b}[32mx\u{1b}[0m");
        assert_eq!(Style(true).dim(""), "");
    }
}
