//! Tables that look like kubectl's: columns, no boxes.

use std::fmt::{self, Display};

use anstyle::Style;
use kube::core::ObjectMeta;

use crate::{output::Format, style, text::printable};

/// What stands in a column of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) const fn style(&self) -> Style {
        self.style
    }

    /// A text in a style.
    pub(crate) fn painted(style: Style, text: impl Into<String>) -> Self {
        Self { text: one_line(&text.into()), style }
    }
}

/// What stands in a table takes one line, and gives a terminal no orders.
fn one_line(text: &str) -> String {
    printable(text).replace('\n', " ")
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::painted(Style::new(), text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// Nothing to say is a dash, as in kubectl's own wide columns.
impl<T: Display> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or_else(|| "-".into(), |value| value.to_string().into())
    }
}

/// Rows under headings.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<Cell>>,
    wide: bool,
}

impl Table {
    /// A table with the same columns always.
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|heading| Cell::from(*heading)).collect()], wide: false }
    }

    /// A table with more columns if it is to be wide.
    pub(crate) fn with_wide(headings: &[&str], more: &[&str], format: Format) -> Self {
        let wide = format == Format::Wide;
        let mut table = Self::new(&if wide { [headings, more].concat() } else { headings.to_vec() });
        table.wide = wide;
        table
    }

    pub(crate) fn row<const N: usize, C: Into<Cell>>(&mut self, cells: [C; N]) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// A row of a table that may be wide.
    pub(crate) fn row_with_wide<const N: usize, const M: usize>(
        &mut self,
        cells: [Cell; N],
        more: [Cell; M],
    ) {
        let more = more.into_iter().filter(|_| self.wide);
        self.rows.push(cells.into_iter().chain(more).collect());
    }

    /// Puts a column before all others; `cells` has one for each row.
    fn insert_first(&mut self, heading: &str, cells: impl IntoIterator<Item = Cell>) {
        let column = std::iter::once(Cell::from(heading)).chain(cells);
        for (row, cell) in self.rows.iter_mut().zip(column) {
            row.insert(0, cell);
        }
    }

    /// Says the namespace first, if that is wanted, of the object of each row.
    pub(crate) fn by_namespace<'a>(
        mut self,
        wanted: bool,
        objects: impl IntoIterator<Item = &'a ObjectMeta>,
    ) -> Self {
        if wanted {
            let spaces = objects.into_iter().map(|meta| Cell::from(meta.namespace.clone()));
            self.insert_first("NAMESPACE", spaces);
        }
        self
    }

    /// The headings, and the rows below them.
    pub(crate) fn split(&self) -> (&[Cell], &[Vec<Cell>]) {
        self.rows.split_first().map_or((&[], &[]), |(head, rows)| (head.as_slice(), rows))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many rows are below the headings.
    pub(crate) fn len(&self) -> usize {
        self.rows.len().saturating_sub(1)
    }

    /// The headings, and these rows.
    pub(crate) fn part(&self, rows: std::ops::Range<usize>) -> Self {
        let below = self.rows.iter().skip(1).skip(rows.start).take(rows.len());
        Self { rows: self.rows.iter().take(1).chain(below).cloned().collect(), wide: self.wide }
    }
}

impl Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.text.chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let end = row.iter().rposition(|cell| !cell.text.is_empty()).map_or(0, |last| last + 1);
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate().take(end) {
                let padding = if at + 1 == end { 0 } else { width + 3 - cell.text.chars().count() };
                let text = if cell.style.is_plain() {
                    cell.text.clone()
                } else {
                    style::paint(cell.style, &cell.text)
                };
                write!(out, "{text}{:padding$}", "")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_end_where_they_end() {
        let mut table = Table::new(&["WHO", "WHERE"]);
        table.row(["user ann", "shop"]);
        table.row(["é", ""]);
        assert_eq!(table.to_string(), "WHO        WHERE\nuser ann   shop\né\n");
    }

    #[test]
    fn colours_take_no_room() {
        let mut table = Table::new(&["NAME", "STATE", "AGE"]);
        table.row([Cell::from("a"), Cell::painted(style::GOOD, "Completed"), Cell::from("3h")]);
        table.row([Cell::from("b"), Cell::from("New"), Cell::from(None::<String>)]);
        let shown = anstream::adapter::strip_str(&table.to_string()).to_string();
        assert_eq!(shown, "NAME   STATE       AGE\na      Completed   3h\nb      New         -\n");
        assert_ne!(table.to_string(), shown);
    }

    #[test]
    fn more_is_shown_only_if_asked_for() {
        let shown = |format| {
            let mut table = Table::with_wide(&["NAME"], &["UID"], format);
            table.row_with_wide(["a".into()], ["u".into()]);
            table.insert_first("NAMESPACE", ["shop".into()]);
            table.to_string()
        };
        assert_eq!(shown(Format::Table), "NAMESPACE   NAME\nshop        a\n");
        assert_eq!(shown(Format::Wide), "NAMESPACE   NAME   UID\nshop        a      u\n");
    }
}
