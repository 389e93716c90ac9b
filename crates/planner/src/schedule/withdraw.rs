//! Whether what retention has marked to be deleted may really go.
//!
//! Retention looks at several backups and writes to one, and their owner may delete another meanwhile. So retention only
//! marks a backup, and its data is deleted in a second step. For that, nacre has to have seen the mark in its watch: then
//! it has also seen everything that happened to other NonAdminBackups before the mark was stored. If no newer good backup
//! is left by then, the mark is withdrawn. So in the order in which the API server stored it all, there was a newer good
//! backup whenever retention deletes the data of one. For a partial backup a newer one that is partial will do too.

use api::{Kind, NonAdminBackup};
use kube::core::ObjectMeta;

use super::of_run;
use super::retention::{Finished, Quality};
use super::runs::{self, Run};
use crate::requester::{self, Identity};
use crate::state::State;
use crate::{Key, backup, last_good};

/// What is to be done about a backup that is to be deleted with its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Marked {
    /// Somebody asked for it, and it goes.
    #[default]
    BySomebody,
    /// Retention marked it, and what happened before that may not have been seen yet.
    Unconfirmed,
    /// Retention marked it, and there is no newer one any more that is as good.
    LastGood,
    /// Retention marked it as one that Velero no longer has, and Velero has found it in storage again.
    FoundAgain,
    /// Retention marked it, and there is a newer one that is as good.
    Outdated,
}

/// Whether retention marked a backup.
pub(crate) fn is_marked(backup: &NonAdminBackup) -> bool {
    backup.spec.delete_backup == Some(true) && requester::of_deletion(&backup.metadata) == Identity::Policy
}

/// What is known of a backup that is to be deleted.
pub(crate) fn marked(view: &State, backup: &NonAdminBackup) -> Marked {
    let meta = &backup.metadata;
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    if !is_marked(backup) {
        return Marked::BySomebody;
    }
    if view.is_unreported_backup(namespace, meta.name.as_deref().unwrap_or_default()) {
        return Marked::Unconfirmed;
    }
    let Some(own) = before(view, backup) else { return Marked::Outdated };
    if last_good::is_gone(backup) && backup::velero_of(view, backup).is_some() {
        return Marked::FoundAgain;
    }
    if !matches!(own.quality, Quality::Good | Quality::Partial) {
        return Marked::Outdated;
    }
    let others = of_run(meta).map(|label| runs::gather_labelled(view, namespace, label)).unwrap_or_default();
    let is_newer = |other: &Finished| {
        let is_as_good = other.quality == Quality::Good || other.quality == own.quality;
        is_as_good && (other.time, &other.name) > (own.time, &own.name)
    };
    let newer = others.iter().filter_map(Run::finished).any(|other| is_newer(&other));
    if newer { Marked::Outdated } else { Marked::LastGood }
}

/// What it was for retention before it was marked.
fn before(view: &State, backup: &NonAdminBackup) -> Option<Finished> {
    let mut unmarked = backup.clone();
    unmarked.spec.delete_backup = None;
    unmarked.metadata.deletion_timestamp = None;
    runs::run(view, unmarked.into()).finished()
}

/// The backup whose mark the watch has just reported, to be decided about.
pub(crate) fn reported(view: &State, meta: &ObjectMeta) -> Option<Key> {
    let key = Key::of(Kind::NonAdminBackup, meta);
    let backup = view.get(&key.namespace, &key.name)?;
    is_marked(&backup).then_some(key)
}
