//! The parts that the details of backups and restores share.

use api::VeleroResults;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;
use serde_json::Value;

use super::{
    events::{self, EventRow},
    page::{Page, changed, conditions, section},
    results::{self, Results},
};
use crate::{changes::Change, connect::Session, download::Fetching, output::lines};

/// The answer: the page is made of this, and `-o json` prints it.
#[derive(Serialize)]
pub(super) struct Description {
    pub(super) object: Value,
    pub(super) changes: Vec<Change>,
    pub(super) events: Vec<EventRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) results: Option<Results>,
    /// Why there are none, though they were wanted.
    #[serde(skip)]
    pub(super) no_results: Option<String>,
    pub(super) next: Vec<String>,
}

/// Every error and warning that nacre has read, or that can be fetched if they are wanted; or why they are not to be had.
pub(super) async fn details(
    session: &Session,
    kind: &str,
    name: &str,
    fetching: Option<&Fetching>,
    read: Option<&VeleroResults>,
) -> (Option<Results>, Option<String>) {
    if let Some(read) = read {
        return (Some(read.into()), None);
    }
    let Some(fetching) = fetching else { return (None, None) };
    match results::fetch(session, kind, name, fetching).await {
        Ok(results) => (Some(results), None),
        Err(why) => (None, Some(why)),
    }
}

impl Description {
    /// The page below its head: what was asked for, what came on top and under which heading, and what became of it.
    pub(super) fn sections(&self, asked: &str, beyond: &str, found: &[Condition], now: Timestamp) -> Page {
        let (errors, warnings) = self.results.as_ref().map(Results::lines).unwrap_or_default();
        section("Asked for", asked)
            + section(beyond, changed(&self.changes))
            + section("Conditions", conditions(found, now))
            + section("Errors", errors)
            + section("Warnings", warnings)
            + section("No details", self.no_results.as_deref().unwrap_or_default())
            + section("What happened", events::table(&self.events, now))
            + section("Next", lines(self.next.clone()))
    }
}
