//! `usage`: what a namespace uses, or what each of them does.

mod gather;
mod show;

use anyhow::Result;
use clap::ValueEnum;
use jiff::Timestamp;
use planner::{Policy, usage::Usage};
use serde::Serialize;

use crate::{
    connect::Session,
    output::{Format, Outcome, print, remark},
    table::Table,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre usage                                  what this namespace uses, and may use
  kubectl nacre usage -A --sort-by bytes               administrators: all namespaces, the largest first
  kubectl nacre usage -A -o json | jq '.[] | [.namespace, .usage.bytes]'

STORED is an estimate of volume data in the cluster's own storage: the first backup of each claim in full, and of later
ones what was new. It knows neither compression nor what claims have in common. Own storage does not count.
WORK TODAY is how long Velero has worked on backups and restores since midnight UTC.
For one namespace both come from its own requests; with -A they come from Velero's objects, deleted ones included.
Exit code 3 if a limit is reached.")]
pub(crate) struct Args {
    /// All namespaces; for administrators, who can read Velero's namespace.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,

    /// The order, the largest first.
    #[arg(long, value_enum, value_name = "FIGURE", requires = "all_namespaces", default_value_t)]
    sort_by: SortBy,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum SortBy {
    /// By name.
    #[default]
    Namespace,
    /// By what is stored.
    Bytes,
    /// By how many there are.
    Backups,
    /// By Velero's time today.
    Work,
}

/// What one namespace uses and may use.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Row {
    namespace: String,
    usage: Usage,
    /// What the administrators allow; none if that cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<Limits>,
}

/// What a namespace may use; none without a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Limits {
    backups: Option<u64>,
    unfinished_backups: Option<u64>,
    unfinished_restores: Option<u64>,
    bytes: Option<u64>,
    work_seconds_per_day: Option<u64>,
}

impl From<&Policy> for Limits {
    fn from(policy: &Policy) -> Self {
        let number = |most: Option<usize>| most.and_then(|most| u64::try_from(most).ok());
        Self {
            backups: number(policy.backup.max_per_namespace),
            unfinished_backups: number(policy.backup.max_active_per_namespace),
            unfinished_restores: number(policy.restore.max_active_per_namespace),
            bytes: policy.backup.max_bytes(),
            work_seconds_per_day: policy.backup.max_work(),
        }
    }
}

impl Row {
    /// Whether one more backup would have to wait for more than the end of another.
    fn is_full(&self) -> bool {
        let Some(limits) = self.limits else { return false };
        let used = [
            (limits.backups, self.usage.backups),
            (limits.bytes, self.usage.bytes),
            (limits.work_seconds_per_day, self.usage.work_seconds),
        ];
        used.into_iter().any(|(most, used)| most.is_some_and(|most| used >= most))
    }
}

pub(crate) async fn run(session: &Session, args: &Args) -> Result<Outcome> {
    let now = Timestamp::now();
    if !args.all_namespaces {
        let row = gather::own(session, now).await?;
        let table = || show::table(std::slice::from_ref(&row), session.format).to_string();
        print(session.format, &row, table, || vec![row.namespace.clone()])?;
        return Ok(Outcome::attention_if(row.is_full()));
    }
    let mut rows = Box::pin(gather::all(session, now)).await?;
    sort(&mut rows, args.sort_by);
    if rows.is_empty() && matches!(session.format, Format::Table | Format::Wide) {
        remark("No namespace uses anything.");
        return Ok(Outcome::Good);
    }
    let names = || rows.iter().map(|row| row.namespace.clone()).collect();
    print(session.format, &rows, || show::table(&rows, session.format).to_string(), names)?;
    Ok(Outcome::attention_if(rows.iter().any(Row::is_full)))
}

/// What every namespace uses, the largest first.
pub(crate) async fn look(session: &Session) -> Result<Table> {
    let mut rows = Box::pin(gather::all(session, Timestamp::now())).await?;
    sort(&mut rows, SortBy::Bytes);
    Ok(show::table(&rows, Format::Table))
}

fn sort(rows: &mut [Row], by: SortBy) {
    let figure = |row: &Row| match by {
        SortBy::Namespace => 0,
        SortBy::Bytes => row.usage.bytes,
        SortBy::Backups => row.usage.backups,
        SortBy::Work => row.usage.work_seconds,
    };
    rows.sort_by(|one, other| {
        figure(other).cmp(&figure(one)).then_with(|| one.namespace.cmp(&other.namespace))
    });
}

#[cfg(test)]
mod tests;
