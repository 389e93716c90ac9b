//! Answers: tables that look like kubectl's, JSON, YAML or bare names on standard output; remarks on standard error.

use std::{
    fmt::{Display, Write as _},
    io::{self, Write as _},
    process::ExitCode,
};

use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;

use crate::style;

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

/// How a command ended that could say what it was asked to say. An error is printed by `complain` and exits with 1 too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Done, or the answer is good.
    Good,
    /// What was waited for ended badly: Velero failed, or the request was refused. It has been said.
    Failed,
    /// The answer needs attention: a backup is only partly there, somebody would lose a right or is refused.
    Attention,
    /// What was waited for goes on, but the time is over.
    Late,
    /// Somebody pressed Ctrl-C; what was asked for goes on without us.
    Interrupted,
}

/// What `--help` says about them.
pub(crate) const EXIT_CODES: &str = "Exit codes:
  0    done, or the answer is good; a backup or restore that was waited for is Completed
  1    it failed: an error, a refusal, or a backup or restore that ended as Failed
  2    the command line is wrong
  3    it worked, and the answer needs attention: PartiallyFailed, 0 items, volume data that is missing, or policy
       would refuse it
  4    --timeout was over before what was waited for
  130  interrupted; the operation continues in the cluster";

impl Outcome {
    /// The exit code, as `EXIT_CODES` has it.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Good => 0,
            Self::Failed => 1,
            Self::Attention => 3,
            Self::Late => 4,
            Self::Interrupted => 130,
        }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        Self::from(outcome.code())
    }
}

impl Outcome {
    /// Attention if this is so.
    pub(crate) const fn attention_if(so: bool) -> Self {
        if so { Self::Attention } else { Self::Good }
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
    say(&text)
}

/// Writes an answer to standard output, in colour if that is a terminal and nobody minds.
pub(crate) fn say(text: &str) -> Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(for_terminal(text).as_bytes())?;
    Ok(out.flush()?)
}

/// Prints a remark on standard error.
pub(crate) fn remark(text: impl Display) {
    // There is nowhere left to report a failure.
    let _ = writeln!(anstream::stderr().lock(), "{}", for_terminal(&text.to_string()));
}

/// A text without what a terminal would obey, but for our own colours: tenants, and whoever writes to their buckets, wrote
/// parts of it. Where it is JSON, it stays JSON.
fn for_terminal(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_control() && !matches!(c, '\n' | '\t')) {
        let (before, found) = rest.split_at(at);
        safe.push_str(before);
        let length = colour(found).unwrap_or(0);
        if length > 0 {
            safe.push_str(&found[..length]);
            rest = &found[length..];
        } else {
            let mut characters = found.chars();
            let control = characters.next().map_or(0, u32::from);
            let _ = write!(safe, "\\u{control:04x}");
            rest = characters.as_str();
        }
    }
    safe.push_str(rest);
    safe
}

/// How long the change of colour is that a text begins with, if it begins with one.
fn colour(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    numbers[end..].starts_with('m').then_some(text.len() - numbers.len() + end + 1)
}

/// Says what went wrong, and why, on one line.
pub(crate) fn complain(error: &anyhow::Error) {
    remark(format_args!("{} {}", style::bad("error:"), in_words(error)));
}

pub(crate) fn in_words(error: &anyhow::Error) -> String {
    if let Some(silence) = error.chain().position(is_silence) {
        let before = error.chain().take(silence).map(in_short);
        let root = error.root_cause().to_string();
        return before
            .chain(["the API server does not answer".to_owned(), root])
            .collect::<Vec<_>>()
            .join(": ");
    }
    // The API server's message says it all; what wraps it would only repeat it.
    let end = error.chain().position(is_answer).map_or(usize::MAX, |position| position + 1);
    let mut causes: Vec<String> = Vec::new();
    for cause in error.chain().take(end).map(in_short) {
        // Some errors hold the text of what caused them.
        if causes.last().is_none_or(|last| !last.contains(&cause)) {
            causes.push(cause);
        }
    }
    causes.join(": ")
}

fn is_silence(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Service(_) | kube::Error::HyperError(_)))
}

fn is_answer(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(_))) || error.is::<engine::Failure>()
}

fn in_short(error: &(dyn std::error::Error + 'static)) -> String {
    match (error.downcast_ref(), error.downcast_ref::<engine::Failure>()) {
        (Some(kube::Error::Api(status)), _) => without_webhook(&status.message),
        (_, Some(failure)) => {
            let answer = failure.status().map(|status| status.message.clone());
            format!("{}: {}", failure.what, answer.unwrap_or_else(|| failure.source.to_string()))
        }
        _ => error.to_string(),
    }
}

/// The words of whoever refused, without the machinery that carried them.
pub(crate) fn without_webhook(message: &str) -> String {
    match message.split_once(" denied the request: ") {
        Some((_, words)) => format!("refused: {words}"),
        None => message.to_owned(),
    }
}

/// Whether the reader of our output has gone, as `head` does.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_cause_is_not_told_twice() {
        assert_eq!(
            in_words(&anyhow!("no such file").context("reading x: no such file")),
            "reading x: no such file"
        );
        assert_eq!(in_words(&anyhow!("no such file").context("reading x")), "reading x: no such file");
    }

    #[test]
    fn h13_no_answer_commands_the_terminal() {
        let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}1A\rname\u{7f}";
        assert_eq!(for_terminal(hostile), "\\u001b]0;owned\\u0007\\u001b[2J\\u009b1A\\u000dname\\u007f");
        let ours = style::bad("error:").clone() + " naïve\ttext\n";
        assert_eq!(for_terminal(&ours), ours);
        let json = serde_json::to_string(&serde_json::json!({"message": hostile})).unwrap();
        let safe = for_terminal(&json);
        assert!(!safe.chars().any(char::is_control), "{safe}");
        let back: serde_json::Value = serde_json::from_str(&safe).unwrap();
        assert_eq!(back["message"], hostile);
    }

    #[test]
    fn a_refusal_by_the_webhook_reads_like_one() {
        let said =
            "admission webhook \"requests.nacre.dev\" denied the request: spec.backupSpec.ttl: too long";
        assert_eq!(without_webhook(said), "refused: spec.backupSpec.ttl: too long");
        assert_eq!(without_webhook("not found"), "not found");
    }

    #[test]
    fn exit_codes_are_as_documented() {
        let outcomes =
            [Outcome::Good, Outcome::Failed, Outcome::Attention, Outcome::Late, Outcome::Interrupted];
        for outcome in outcomes {
            assert!(EXIT_CODES.contains(&format!("\n  {:<3}", outcome.code())), "{outcome:?}");
        }
    }
}
