//! `request list`: who asks for what.

use anyhow::Result;
use api::{NonAdminBackupStorageLocationRequest as Request, RequestPhase};
use clap::ValueEnum;
use jiff::Timestamp;

use super::facts::{Facts, Summary};
use crate::{
    connect::Session,
    list::qualified,
    output::{Format, Outcome, print, remark},
    table::Table,
    text::age,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre request list
  kubectl nacre request list --state pending -o wide
  kubectl nacre request list -n shop                   only those of this namespace

ENDPOINT is where the store is, in one spelling only, and PREFIX where in the bucket Velero would keep backups.
STATE is \"Approved by policy\" where the policy required no approval, and nobody has approved it by hand.
CHANGED names fields of the location that differ from the request: such a location is not used.")]
pub(super) struct List {
    /// Only requests in this state.
    #[arg(long, value_enum)]
    state: Option<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum State {
    Pending,
    Approved,
    Rejected,
}

impl State {
    const fn is(self, state: RequestPhase) -> bool {
        matches!(
            (self, state),
            (Self::Pending, RequestPhase::Pending)
                | (Self::Approved, RequestPhase::Approved)
                | (Self::Rejected, RequestPhase::Rejected)
        )
    }
}

/// All requests, as a table.
pub(crate) async fn look(session: &Session) -> Result<Table> {
    let facts = Facts::read(session).await?;
    Ok(table(&rows(&facts, None, None), Format::Table, Timestamp::now()))
}

pub(super) async fn run(session: &Session, args: &List, namespace: Option<&str>) -> Result<Outcome> {
    let facts = Facts::read(session).await?;
    let rows = rows(&facts, args.state, namespace);
    if rows.is_empty() && !matches!(session.format, Format::Json | Format::Yaml) {
        remark("No requests found.");
        return Ok(Outcome::Good);
    }
    let table = || table(&rows, session.format, Timestamp::now()).to_string();
    let names = || rows.iter().map(|(_, summary)| qualified::<Request>(&summary.request)).collect();
    let summaries: Vec<&Summary> = rows.iter().map(|(_, summary)| summary).collect();
    print(session.format, &summaries, table, names)?;
    Ok(Outcome::Good)
}

/// What is to be shown: what waits for somebody first, and the oldest of that.
fn rows<'a>(facts: &'a Facts, state: Option<State>, namespace: Option<&str>) -> Vec<(&'a Request, Summary)> {
    let requests = facts.requests.iter();
    let mut rows: Vec<_> = requests
        .map(|(request, unreadable)| (request, facts.summary(request, unreadable.as_deref())))
        .filter(|(_, summary)| namespace.is_none_or(|namespace| namespace == summary.namespace))
        .filter(|(_, summary)| state.is_none_or(|state| state.is(summary.state)))
        .collect();
    rows.sort_by_key(|(_, summary)| {
        (
            summary.state != RequestPhase::Pending,
            summary.since,
            summary.namespace.clone(),
            summary.location.clone(),
        )
    });
    rows
}

fn table(rows: &[(&Request, Summary)], format: Format, now: Timestamp) -> Table {
    let mut table = Table::with_wide(
        &["NAMESPACE", "LOCATION", "STATE", "ENDPOINT", "BUCKET", "PREFIX", "CHANGED", "AGE"],
        &["PROVIDER", "CREDENTIAL", "REQUEST"],
        format,
    );
    for (request, summary) in rows {
        let asked = planner::location::review::StorageRequest::from(*request);
        let key = asked.spec.and_then(|spec| spec.credential.as_ref());
        table.row_with_wide(
            [
                summary.namespace.as_str().into(),
                summary.location.as_str().into(),
                summary.state(),
                summary.endpoint.as_deref().into(),
                summary.bucket.as_deref().into(),
                summary.prefix.as_deref().into(),
                summary.changed(),
                summary.since.map(|time| age(time, now)).into(),
            ],
            [
                summary.provider.as_deref().into(),
                key.map(|key| format!("{}={}", key.name, key.key)).into(),
                summary.request.as_str().into(),
            ],
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::facts::tests::facts;

    fn shown(state: Option<State>, namespace: Option<&str>, format: Format) -> String {
        let facts = facts();
        let now = "2026-11-15T13:00:00Z".parse().unwrap();
        let text = table(&rows(&facts, state, namespace), format, now).to_string();
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn what_waits_comes_first_and_what_changed_is_named() {
        insta::assert_snapshot!(shown(None, None, Format::Table), @r"
        NAMESPACE   LOCATION   STATE      ENDPOINT                   BUCKET    PREFIX       CHANGED                AGE
        shop        mine       Pending    http://store.example.com   backups   shop/daily   -                      60m
        farm        mine       Approved   http://store.example.com   backups   farm/daily   objectStorage.bucket   60m
        mill        gone       Rejected   http://store.example.com   backups   mill/daily   location gone          60m
        ");
    }

    #[test]
    fn what_nobody_approved_by_hand_is_marked() {
        let mut facts = facts();
        for (at, value) in [(0, "policy"), (1, "policy"), (2, "policy")] {
            let marks = facts.requests[at].0.metadata.annotations.get_or_insert_default();
            marks.insert("nacre.dev/approved-by".to_owned(), value.to_owned());
        }
        let all = rows(&facts, None, None);
        let by_policy: Vec<_> =
            all.iter().map(|(_, summary)| (summary.namespace.as_str(), summary.approved_by_policy)).collect();
        // What is not approved was not approved by anybody.
        assert_eq!(by_policy, [("shop", false), ("farm", true), ("mill", false)]);
        let text = table(&all, Format::Table, "2026-11-15T13:00:00Z".parse().unwrap()).to_string();
        assert!(text.contains("Approved by policy"), "{text}");
    }

    #[test]
    fn a_state_or_a_namespace_can_be_picked() {
        insta::assert_snapshot!(shown(Some(State::Approved), None, Format::Wide), @r"
        NAMESPACE   LOCATION   STATE      ENDPOINT                   BUCKET    PREFIX       CHANGED                AGE   PROVIDER   CREDENTIAL   REQUEST
        farm        mine       Approved   http://store.example.com   backups   farm/daily   objectStorage.bucket   60m   aws        keys=cloud   farm-mine-uid
        ");
        assert_eq!(shown(None, Some("shop"), Format::Table).lines().count(), 2);
        assert_eq!(shown(Some(State::Pending), Some("farm"), Format::Table).lines().count(), 1);
    }
}
