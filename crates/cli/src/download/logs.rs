//! `backup logs` and `restore logs`: Velero's own log, unpacked; or what nacre has read of it in the cluster's own storage.

use std::io::Write as _;

use anyhow::{Context as _, Result};
use api::LogLines;
use flate2::write::MultiGzDecoder;
use kube::Resource;

use super::unpack::{Bounded, Printable};
use super::{Fetching, Link};
use crate::{
    connect::Session,
    object_name::ObjectName,
    output::{Outcome, remark, say},
};

/// The most of a log that is printed: Velero's own have a few megabytes.
const LOG_LIMIT: u64 = 4 << 30;
/// The most that is unpacked into memory of a small file.
const WHOLE_LIMIT: u64 = 64 << 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre backup logs daily | grep level=error
  kubectl nacre restore logs back

The log is there when the backup or restore is over. A download request is made for it, and removed again.

Of a backup in the cluster's own storage you get the lines that are about your namespace: at most 200, errors and warnings
before others. How many there are besides is printed on standard error. You get the whole log if the administrators allow
downloads from that storage, or if the backup is in storage of your own.")]
pub(crate) struct Logs {
    /// The name of the backup or restore whose log to show.
    name: ObjectName,

    #[command(flatten)]
    fetching: Fetching,
}

/// Prints a log of this kind.
pub(crate) async fn run<K: Resource<DynamicType = ()>>(
    session: &Session,
    kind: &str,
    args: &Logs,
) -> Result<Outcome> {
    let Some(read) = args.fetching.log(session, kind, args.name.of::<K>()?, print).await? else {
        return Ok(Outcome::Interrupted);
    };
    if let Some(log) = read {
        remark(about(&log, &session.namespace));
        say(&text(&log))?;
    }
    Ok(Outcome::Good)
}

/// The lines, with nothing that a terminal would obey: whatever wrote the status, it is a text from elsewhere.
pub(crate) fn text(log: &LogLines) -> String {
    let clean =
        |line: &String| line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
    log.lines.iter().map(|line| clean(line) + "\n").collect()
}

/// What the lines are, and how many are not among them.
pub(crate) fn about(log: &LogLines, namespace: &str) -> String {
    let lines = match log.lines.len() {
        0 => format!("no line of the log is about namespace {namespace}"),
        1 => format!("this is the line of the log about namespace {namespace}"),
        many => format!("these are {many} lines of the log about namespace {namespace}"),
    };
    let more =
        log.not_listed.map(|more| format!("{more} more are not shown, errors and warnings come first"));
    let others = log.left_out.map(|others| format!("{others} about other things are left out"));
    let said: Vec<String> = [Some(lines), more, others].into_iter().flatten().collect();
    format!(
        "{}. The backup is in the cluster's own storage, from which the administrators do not allow downloads",
        said.join("; ")
    )
}

async fn print(link: Link) -> Result<()> {
    let out = Bounded::new(Printable::new(std::io::stdout().lock()), LOG_LIMIT);
    let mut unpacked = MultiGzDecoder::new(out);
    link.read(|bytes, _| Ok(unpacked.write_all(bytes)?)).await?;
    unpacked.try_finish().context("the log ends in the middle")?;
    Ok(unpacked.get_mut().flush()?)
}

/// Fetches a small file whole, unpacked.
pub(crate) async fn whole(link: Link) -> Result<Vec<u8>> {
    let mut unpacked = MultiGzDecoder::new(Bounded::new(Vec::new(), WHOLE_LIMIT));
    link.read(|bytes, _| Ok(unpacked.write_all(bytes)?)).await?;
    Ok(unpacked.finish().context("the file ends in the middle")?.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_whose_lines_these_are_and_how_many_are_missing() {
        let lines = vec!["level=info msg=a".to_owned(), "level=error msg=\u{1b}[31mb".to_owned()];
        let log = LogLines { lines, not_listed: Some(7), left_out: Some(12) };
        insta::assert_snapshot!(about(&log, "shop"), @"these are 2 lines of the log about namespace shop; 7 more are not shown, errors and warnings come first; 12 about other things are left out. The backup is in the cluster's own storage, from which the administrators do not allow downloads");
        assert_eq!(text(&log), "level=info msg=a\nlevel=error msg= [31mb\n");
        let none = about(&LogLines::default(), "shop");
        assert!(none.starts_with("no line of the log is about namespace shop. The backup"), "{none}");
    }
}
