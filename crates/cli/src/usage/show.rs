//! Usage as a table.

use planner::volumes::size;

use super::{Limits, Row};
use crate::{
    output::Format,
    style,
    table::{Cell, Table},
    text::span,
};

pub(super) fn table(rows: &[Row], format: Format) -> Table {
    let mut table = Table::with_wide(
        &["NAMESPACE", "BACKUPS", "UNFINISHED", "STORED", "WORK TODAY"],
        &["BYTES", "WORK SECONDS", "UNFINISHED BACKUPS AT MOST", "UNFINISHED RESTORES AT MOST"],
        format,
    );
    for row in rows {
        let limits = row.limits.unwrap_or_default();
        let Limits { backups, unfinished_backups, unfinished_restores, bytes, work_seconds_per_day } = limits;
        let used = row.usage;
        table.row_with_wide(
            [
                row.namespace.as_str().into(),
                cell(used.backups, backups, |number| number.to_string()),
                used.unfinished.to_string().into(),
                cell(used.bytes, bytes, |bytes| size(signed(bytes))),
                cell(used.work_seconds, work_seconds_per_day, |seconds| span(signed(seconds))),
            ],
            [
                used.bytes.to_string().into(),
                used.work_seconds.to_string().into(),
                limit(unfinished_backups),
                limit(unfinished_restores),
            ],
        );
    }
    table
}

/// A figure, and what it may be at most.
fn cell(used: u64, most: Option<u64>, text: impl Fn(u64) -> String) -> Cell {
    match most {
        None => text(used).into(),
        Some(most) if used >= most => Cell::painted(style::BAD, format!("{} of {}", text(used), text(most))),
        Some(most) => format!("{} of {}", text(used), text(most)).into(),
    }
}

/// A limit of its own; empty without one.
fn limit(most: Option<u64>) -> Cell {
    most.map(|most| most.to_string()).unwrap_or_default().into()
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
