//! What became of the data of each claim, as a table.

use api::{ClaimState, ClaimStatus};

use planner::volumes::size;

use crate::{
    describe::page::Body,
    style,
    table::{Cell, Table},
    text::printable,
};

/// One line per claim; empty if there are none.
pub(crate) fn table(claims: &[ClaimStatus], not_listed: Option<u32>) -> Body {
    if claims.is_empty() {
        return Body::default();
    }
    let mut table = Table::new(&["CLAIM", "DATA", "SIZE", "WHY"]);
    for claim in claims {
        let size = match (claim.bytes, claim.total_bytes) {
            (done, Some(total)) if claim.state == ClaimState::Waiting => {
                format!("{} of {}", size(done.unwrap_or_default()), size(total))
            }
            (done, total) => done.or(total).map_or_else(String::new, size),
        };
        table.row([
            Cell::from(claim.name.as_str()),
            Cell::painted(style(claim.state), format!("{:?}", claim.state)),
            Cell::from(size),
            Cell::from(printable(claim.message.as_deref().unwrap_or_default())),
        ]);
    }
    let rest = not_listed.map_or_else(String::new, |rest| format!("and {rest} more\n"));
    Body { text: rest, ..Body::from(table) }
}

const fn style(state: ClaimState) -> anstyle::Style {
    match state {
        ClaimState::Saved | ClaimState::Restored => style::GOOD,
        ClaimState::LeftOut | ClaimState::Unknown => style::QUIET,
        ClaimState::Waiting => style::BUSY,
        ClaimState::NotSaved
        | ClaimState::Kept
        | ClaimState::Mixed
        | ClaimState::NoData
        | ClaimState::Failed
        | ClaimState::Cancelled => style::BAD,
    }
}
