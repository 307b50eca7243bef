//! Aligned columns.

use super::style::Style;

/// How far columns stand apart.
const GAP: &str = "  ";

/// A table for people: a head, rows, columns as wide as they must be.
#[derive(Debug)]
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// A text and how it looks.
#[derive(Debug)]
pub(crate) struct Cell {
    text: String,
    paint: fn(Style, &str) -> String,
}

impl Table {
    /// A table without rows. A name that begins with `>` makes a column flush right.
    pub(crate) fn new(head: impl IntoIterator<Item = &'static str>) -> Self {
        Self {
            head: head.into_iter().collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, with as many cells as there are columns.
    pub(crate) fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The lines, without a last line end.
    pub(crate) fn render(&self, style: Style) -> String {
        let head = self.head.iter().map(|name| Cell {
            text: name.trim_start_matches('>').to_owned(),
            paint: Style::bold,
        });
        let head: Vec<_> = head.collect();
        let lines: Vec<_> = std::iter::once(&head).chain(&self.rows).collect();
        let width = |column: usize| lines.iter().map(|line| width_of(line, column)).max();
        let widths: Vec<_> = (0..self.head.len())
            .map(|column| width(column).unwrap_or(0))
            .collect();
        let lines = lines.iter().map(|line| self.line(line, &widths, style));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn line(&self, cells: &[Cell], widths: &[usize], style: Style) -> String {
        let mut line = String::new();
        let mut pending = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let pad = " ".repeat(widths[column].saturating_sub(cell.text.chars().count()));
            let painted = (cell.paint)(style, &cell.text);
            let right = self.head[column].starts_with('>');
            // Blanks at the end of a line are never written.
            if right {
                pending.push_str(&pad);
            }
            if !painted.is_empty() {
                line.push_str(&std::mem::take(&mut pending));
                line.push_str(&painted);
            }
            if !right {
                pending.push_str(&pad);
            }
            pending.push_str(GAP);
        }
        line
    }
}

fn width_of(line: &[Cell], column: usize) -> usize {
    line.get(column).map_or(0, |cell| cell.text.chars().count())
}

impl Cell {
    /// A cell that looks like something.
    pub(crate) const fn painted(text: String, paint: fn(Style, &str) -> String) -> Self {
        Self { text, paint }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self {
            text,
            paint: |_, text| text.to_owned(),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_end_with_text() {
        let mut table = Table::new(["NAME", ">BYTES", "NOTE"]);
        table.row(["a", "1", "x"]);
        table.row(["longer", "12345", ""]);
        assert_eq!(
            table.render(Style::PLAIN),
            "NAME    BYTES  NOTE\n\
             a           1  x\n\
             longer  12345"
        );
    }
}
