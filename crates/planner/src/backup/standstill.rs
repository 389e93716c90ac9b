//! A queue of Velero that stands still.
//!
//! Velero notes a backup as ready after it has made it ready. If it refuses the backup in between, since its storage is not
//! available, or if the backup is deleted in between, the note stays for ever and takes the place of a worker: with one
//! worker no backup of anybody begins until Velero is restarted (velero-io/velero#10519, up to 1.18.3). Whoever owns the
//! storage can bring that about. Velero drops the note when it is made to look at a backup of that very name once more and
//! refuses it, by the errors that are written down in it. If the backup is gone, another one stands in for it.
//!
//! The other way round, a backup that is ready when Velero starts is overlooked, until somebody writes to it.
//!
//! And Velero pauses for up to a minute: when a worker is done it looks at its queue before it has noted that the worker is
//! free, begins none, and looks again at the next whole minute. It also looks when a backup comes into its queue. So the
//! last one is put there again ([`paused`]).

use std::collections::BTreeMap;
use std::time::Duration;

use api::velero::{Backup, BackupSpec, BackupStatus, BackupStorageLocation};
use api::{Kind, labels};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::ObjectMeta;
use serde_json::json;

use crate::plan::Object;
use crate::state::State;
use crate::state::standstill::{NEW, READY, REFUSED};
use crate::volumes::time_left;
use crate::{Action, Target};

/// So long Velero itself may need: it looks at its queue once a minute.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long Velero may need from the end of a backup to the beginning of the next.
const MOMENT: Duration = Duration::from_secs(1);
/// So many are tried, the newest first. After that it is something else, and the alert says so.
const TRIES: usize = 8;

/// The write that sets Velero's queue going again, where it stands still although Velero runs, and the name it is about.
pub fn standstill(view: &State) -> Option<(String, Action)> {
    let queue = view.standstill();
    if let Some(name) = queue.spent_stand_in() {
        return Some((name.to_owned(), Action::Delete(target(view, name)?)));
    }
    let untouched = queue.untouched_since()?;
    let has_had_its_time = |since| time_left(since, PATIENCE, view.now()).is_none() && is_alive(view, since);
    if let Some((name, since)) = queue.overlooked() {
        let woken = json!({"metadata": {"annotations": {labels::WOKEN: view.now().to_string()}}});
        return has_had_its_time(since)
            .then_some(())
            .and_then(|()| Some((name.to_owned(), Action::Patch(target(view, name)?, woken))));
    }
    if !has_had_its_time(untouched) || queue.tries() >= TRIES {
        return None;
    }
    if let Some(name) = queue.untried() {
        // Velero's Backups have no status subresource.
        return Some((
            name.to_owned(),
            Action::Patch(target(view, name)?, json!({"status": {"phase": READY}})),
        ));
    }
    let name = queue.untried_gone()?;
    let stand_in = stand_in(name, view.admin_namespace());
    Some((name.to_owned(), Action::Create(Object::of(Kind::Backup, &stand_in))))
}

/// The write that has Velero look at its queue at once, where it begins none although no worker is busy, and the name it is
/// about. Once for each pause: if it does not help, it is a standstill.
pub fn paused(view: &State) -> Option<(String, Action)> {
    let (since, name) = view.standstill().paused()?;
    if time_left(since, MOMENT, view.now()).is_some() {
        return None;
    }
    Some((name.to_owned(), Action::Patch(target(view, name)?, json!({"status": {"phase": NEW}}))))
}

fn target(view: &State, name: &str) -> Option<Target> {
    view.admin::<Backup>(name).map(|velero| Target::of(Kind::Backup, &velero.metadata))
}

/// Whether Velero has looked at a storage location since: it does that by itself, once a minute by default.
fn is_alive(view: &State, since: Timestamp) -> bool {
    let locations = view.all::<BackupStorageLocation>();
    let mut looks = locations.iter().filter_map(|found| found.status.as_ref()?.last_validation_time.as_ref());
    looks.any(|look| look.0 > since)
}

/// Velero refuses it by the error that is written down in it. If it did not, it would find nothing to save.
fn stand_in(name: &str, admin_namespace: &str) -> Backup {
    let nothing = BTreeMap::from([(labels::STANDS_IN.to_owned(), "nothing".to_owned())]);
    Backup {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(admin_namespace.to_owned()),
            labels: Some([(labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_VALUE.to_owned())].into()),
            annotations: Some([(labels::STANDS_IN.to_owned(), name.to_owned())].into()),
            ..ObjectMeta::default()
        },
        spec: BackupSpec {
            included_namespaces: Some(vec![admin_namespace.to_owned()]),
            include_cluster_resources: Some(false),
            label_selector: Some(LabelSelector { match_labels: Some(nothing), ..LabelSelector::default() }),
            ..BackupSpec::default()
        },
        status: Some(BackupStatus {
            phase: Some(REFUSED.to_owned()),
            validation_errors: Some(vec![
                "it stands in for a backup that was deleted, so that Velero forgets that one; nacre deletes it".to_owned(),
            ]),
            ..BackupStatus::default()
        }),
    }
}
