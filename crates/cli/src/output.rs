//! Answers: tables that look like kubectl's, JSON, YAML or bare names on standard output; remarks on standard error.

use std::{
    fmt::Display,
    io::{self, Write as _},
    process::ExitCode,
};

use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;

/// How an answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns, for people.
    #[default]
    Table,
    /// More columns.
    Wide,
    /// For programs.
    Json,
    /// For programs and people.
    Yaml,
    /// Names alone, for shells.
    Name,
}

/// How a command ended, if it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Done, or the answer is good.
    Good,
    /// The answer needs attention: somebody would lose a right, is refused, or keeps what was taken.
    Attention,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Good => Self::SUCCESS,
            Outcome::Attention => Self::from(3),
        }
    }
}

impl Outcome {
    /// Attention if this is so.
    pub(crate) const fn attention_if(so: bool) -> Self {
        if so { Self::Attention } else { Self::Good }
    }
}

/// Rows under headings.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }
}

impl Display for Table {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
        for row in &self.rows {
            let line: Vec<String> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            writeln!(out, "{}", line.join("   ").trim_end())?;
        }
        Ok(())
    }
}

/// Lines, each with its end.
pub(crate) fn lines(texts: impl IntoIterator<Item = String>) -> String {
    let mut texts: Vec<String> = texts.into_iter().collect();
    texts.push(String::new());
    texts.join("\n")
}

/// Prints an answer in the format that was asked for; `table` and `names` are made only if needed.
pub(crate) fn print<A: Serialize>(
    format: Format,
    answer: &A,
    table: impl FnOnce() -> String,
    names: impl FnOnce() -> Vec<String>,
) -> Result<()> {
    let text = match format {
        Format::Table | Format::Wide => table(),
        Format::Json => format!("{}\n", serde_json::to_string_pretty(answer)?),
        Format::Yaml => serde_saphyr::to_string(answer)?,
        Format::Name => lines(names()),
    };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

/// Says something beside the answer.
pub(crate) fn remark(text: impl Display) {
    // Nobody is left to tell if this fails.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Says what went wrong, and why, on one line.
pub(crate) fn complain(error: &anyhow::Error) {
    let causes: Vec<String> = error.chain().map(in_short).collect();
    // The API server's own words say it all; what wraps them would only repeat them.
    let end = error.chain().position(is_answer).map_or(causes.len(), |position| position + 1);
    remark(format_args!("error: {}", causes[..end].join(": ")));
}

fn is_answer(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(_))) || error.is::<engine::Failure>()
}

fn in_short(error: &(dyn std::error::Error + 'static)) -> String {
    match (error.downcast_ref(), error.downcast_ref::<engine::Failure>()) {
        (Some(kube::Error::Api(status)), _) => status.message.clone(),
        (_, Some(failure)) => {
            let answer = failure.status().map(|status| status.message.clone());
            format!("{}: {}", failure.what, answer.unwrap_or_else(|| failure.source.to_string()))
        }
        _ => error.to_string(),
    }
}

/// Whether the reader of our output has gone, as `head` does.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_end_where_they_end() {
        let mut table = Table::new(&["WHO", "WHERE"]);
        table.row(["user ann".to_owned(), "shop".to_owned()]);
        table.row(["é".to_owned(), String::new()]);
        assert_eq!(table.to_string(), "WHO        WHERE\nuser ann   shop\né\n");
    }
}
