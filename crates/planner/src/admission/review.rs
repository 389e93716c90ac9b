//! The webhook's review of a request: the same refusals and messages as the controller's.

use std::fmt::Display;

use api::{
    Kind, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminDownloadRequest, NonAdminRestore,
    NonAdminSchedule,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::requester::{self, Access, Ask, Verdict};
use crate::state::State;
use crate::state::prune::spec_too_big;
use crate::view::Seen;
use crate::{backup, download, location, restore, schedule};

/// The result of a review: a refusal, or warnings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReviewResult {
    /// Why it is rejected.
    pub refusal: Option<String>,
    /// Warnings: why it will wait, or what it will not save, although it is accepted.
    pub warnings: Vec<String>,
    /// What has to be found out before more can be said.
    pub asks: Vec<Ask>,
}

impl ReviewResult {
    /// Accepted without warnings.
    pub(crate) fn fine() -> Self {
        Self::default()
    }

    pub(crate) fn refused(why: &impl Display) -> Self {
        Self { refusal: Some(why.to_string()), ..Self::default() }
    }

    pub(crate) fn warning(of: impl Display) -> Self {
        Self { warnings: vec![of.to_string()], ..Self::default() }
    }

    /// What the requester would not get of it.
    pub(crate) fn permitted(access: &Access, verdict: Verdict) -> Self {
        match verdict {
            Verdict::Permitted(left_out) => {
                Self { warnings: requester::warnings(access, &left_out), ..Self::default() }
            }
            Verdict::Ask(asks) => Self { asks, ..Self::default() },
            Verdict::Refused(refusal) => Self::warning(refusal),
        }
    }

    pub(crate) fn warning_if(of: Option<impl Display>) -> Self {
        of.map_or_else(Self::fine, Self::warning)
    }
}

/// A request as it would be stored.
#[derive(Clone, Copy, Debug)]
pub struct ReviewedObject<'a> {
    /// The object's kind.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: &'a str,
    /// The object's name; empty where the API server is to make one.
    pub name: &'a str,
    /// The new object.
    pub object: &'a Value,
    /// The old object, on update.
    pub old: Option<&'a Value>,
}

/// Reviews a request. Only changes of the part that Velero executes are checked.
pub fn review(view: &State, asked: &ReviewedObject<'_>) -> ReviewResult {
    let ReviewedObject { namespace, name, .. } = *asked;
    match asked.kind {
        Kind::NonAdminBackup => asked
            .news(|backup: &NonAdminBackup| backup.spec.backup_spec.clone())
            .map_or_else(ReviewResult::fine, |seen| {
                backup::admit(&backup::gather(view, seen, namespace, name))
            }),
        Kind::NonAdminRestore => asked
            .news(|restore: &NonAdminRestore| restore.spec.restore_spec.clone())
            .map_or_else(ReviewResult::fine, |seen| restore::admit(&restore::gather(view, seen, namespace))),
        Kind::NonAdminBackupStorageLocation => asked
            .news(|of: &NonAdminBackupStorageLocation| of.spec.backup_storage_location_spec.clone())
            .map_or_else(ReviewResult::fine, |seen| {
                location::admit(&location::gather(view, seen, namespace))
            }),
        Kind::NonAdminDownloadRequest => asked
            .news(|of: &NonAdminDownloadRequest| of.spec.target.clone())
            .map_or_else(ReviewResult::fine, |seen| {
                download::admit(&download::gather(view, seen, namespace))
            }),
        Kind::NonAdminSchedule => {
            asked.news(|of: &NonAdminSchedule| of.spec.clone()).map_or_else(ReviewResult::fine, |seen| {
                schedule::admit(&schedule::gather(view, seen, namespace, name))
            })
        }
        _ => ReviewResult::fine(),
    }
}

impl ReviewedObject<'_> {
    /// The request, read, if it is new or says something new.
    fn news<K, S: PartialEq>(&self, said: impl Fn(&K) -> S) -> Option<Seen<K>>
    where
        K: DeserializeOwned + Serialize + Default,
    {
        let mut seen: Seen<K> = Seen::read(self.object);
        let before: Option<Seen<K>> = self.old.map(Seen::read);
        // Of two that cannot be read nothing is known but that they differ, or not.
        let same = before.is_some_and(|before| match (&before.unreadable, &seen.unreadable) {
            (None, None) => said(&before.object) == said(&seen.object),
            _ => self.old.is_some_and(|old| old["spec"] == self.object["spec"]),
        });
        if let Some(why) = spec_too_big(self.object) {
            seen.unreadable = Some(why.into());
        }
        (!same).then_some(seen)
    }
}
