//! What nacre says about a request before it is stored: what its controller would say afterwards, and in the same words.

use std::fmt::Display;

use api::{Kind, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminDownloadRequest, NonAdminRestore};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::state::State;
use crate::view::Seen;
use crate::{backup, download, location, restore};

/// What is said: a refusal, or what to expect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Why it is not stored.
    pub refusal: Option<String>,
    /// What stands in its way at the moment, though it is stored.
    pub warnings: Vec<String>,
}

impl Verdict {
    /// There is nothing to say.
    pub(crate) fn fine() -> Self {
        Self::default()
    }

    pub(crate) fn refused(why: &impl Display) -> Self {
        Self { refusal: Some(why.to_string()), warnings: Vec::new() }
    }

    pub(crate) fn warning(of: impl Display) -> Self {
        Self { refusal: None, warnings: vec![of.to_string()] }
    }

    pub(crate) fn warning_if(of: Option<impl Display>) -> Self {
        of.map_or_else(Self::fine, Self::warning)
    }
}

/// A request as it would be stored.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// What it is.
    pub kind: Kind,
    /// Where it is to be.
    pub namespace: &'a str,
    /// What it is to be called.
    pub name: &'a str,
    /// As it would be.
    pub object: &'a Value,
    /// As it is, if it is there.
    pub old: Option<&'a Value>,
}

/// What is said about it. A change of anything but what Velero is to do is nobody's business here.
pub fn review(view: &State, asked: &Asked<'_>) -> Verdict {
    let Asked { namespace, name, .. } = *asked;
    match asked.kind {
        Kind::NonAdminBackup => asked
            .news(|backup: &NonAdminBackup| backup.spec.backup_spec.clone())
            .map_or_else(Verdict::fine, |seen| backup::admit(&backup::gather(view, seen, namespace, name))),
        Kind::NonAdminRestore => asked
            .news(|restore: &NonAdminRestore| restore.spec.restore_spec.clone())
            .map_or_else(Verdict::fine, |seen| restore::admit(&restore::gather(view, seen, namespace))),
        Kind::NonAdminBackupStorageLocation => asked
            .news(|of: &NonAdminBackupStorageLocation| of.spec.backup_storage_location_spec.clone())
            .map_or_else(Verdict::fine, |seen| location::admit(&location::gather(view, seen, namespace))),
        Kind::NonAdminDownloadRequest => asked
            .news(|of: &NonAdminDownloadRequest| of.spec.target.clone())
            .map_or_else(Verdict::fine, |seen| download::admit(&download::gather(view, seen, namespace))),
        _ => Verdict::fine(),
    }
}

impl Asked<'_> {
    /// The request, read, if it is new or says something new.
    fn news<K, S: PartialEq>(&self, said: impl Fn(&K) -> S) -> Option<Seen<K>>
    where
        K: DeserializeOwned + Serialize + Default,
    {
        let seen: Seen<K> = Seen::read(self.object);
        let before: Option<Seen<K>> = self.old.map(Seen::read);
        // Of two that cannot be read nothing is known but that they differ, or not.
        let same = before.is_some_and(|before| match (&before.unreadable, &seen.unreadable) {
            (None, None) => said(&before.object) == said(&seen.object),
            _ => self.old.is_some_and(|old| old["spec"] == self.object["spec"]),
        });
        (!same).then_some(seen)
    }
}
