//! What `verify` found, step by step: for people as it happens, for programs at the end.

use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

use crate::{
    output::{Format, lines, print, say},
    style,
    text::span,
};

/// One step of the round.
#[derive(Debug, Serialize)]
pub(super) struct Step {
    ok: bool,
    message: String,
    seconds: u64,
}

/// The whole round.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    ok: bool,
    namespace: String,
    steps: Vec<Step>,
    #[serde(skip)]
    format: Format,
}

impl Report {
    pub(super) fn new(format: Format, namespace: &str) -> Self {
        Self { ok: true, namespace: namespace.to_owned(), steps: Vec::new(), format }
    }

    /// Notes how a step ended, and returns whether it ended well.
    pub(super) fn note(&mut self, began: Instant, result: Result<String>) -> Result<bool> {
        let ok = result.is_ok();
        let message = result.unwrap_or_else(|error| format!("{error:#}"));
        let step = Step { ok, message, seconds: began.elapsed().as_secs() };
        if matches!(self.format, Format::Table | Format::Wide) {
            say(&format!("{}\n", line(&step)))?;
        }
        self.ok &= ok;
        self.steps.push(step);
        Ok(ok)
    }

    /// Whether every step ended well.
    pub(super) fn is_ok(&self) -> bool {
        self.ok
    }

    /// The end, and for programs all of it.
    pub(super) fn finish(&self) -> Result<()> {
        let end = || {
            let (style, text) = if self.ok {
                (style::GOOD, "nacre works here: a volume was backed up, lost and restored")
            } else {
                (style::BAD, "nacre does not work here; `kubectl nacre doctor` may show why")
            };
            lines([String::new(), style::paint(style, text)])
        };
        print(self.format, self, end, || self.steps.iter().map(|step| step.message.clone()).collect())
    }
}

fn line(step: &Step) -> String {
    let (style, word) = if step.ok { (style::GOOD, "ok    ") } else { (style::BAD, "failed") };
    let seconds = i64::try_from(step.seconds).unwrap_or(i64::MAX);
    let took = if seconds > 0 { format!(" ({})", span(seconds)) } else { String::new() };
    format!("  {}  {}{took}", style::paint(style, word), step.message)
}
