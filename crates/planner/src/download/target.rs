//! What a download means: found by the tenant's own requests, checked for ownership, allowed by policy.

use std::sync::Arc;

use api::velero::{Backup, BackupStorageLocation};
use api::{DownloadTarget, Kind, NonAdminBackup, NonAdminRestore, condition};

use super::Observed;
use crate::ownership::{Storage, owns_backup, storage};
use crate::policy::{Downloads, Policy};
use crate::queue::{Queued, Stage};
use crate::requester::{self, Verdict};
use crate::state::State;
use crate::{backup, restore};

/// What a request names.
#[derive(Clone, Debug)]
pub enum Sought {
    /// No kind of file we know.
    Unknown,
    /// A backup, if the namespace has a request of that name.
    Backup(Option<Behind>),
    /// A restore, if the namespace has a request of that name.
    Restore(Option<Behind>),
}

/// What is behind a tenant's request.
#[derive(Clone, Debug, Default)]
pub struct Behind {
    /// The Velero Backup or Restore, how far it is, and its phase.
    pub velero: Option<(String, Stage, String)>,
    /// The Velero Backup whose storage holds the file, if it is the namespace's own.
    pub backup: Option<Arc<Backup>>,
    /// The BackupStorageLocation of that, if it exists.
    pub velero_location: Option<Arc<BackupStorageLocation>>,
}

/// Whether a kind of file speaks of backups.
pub(crate) fn concerns_backups(kind: &str) -> bool {
    kind.starts_with("Backup") || kind.starts_with("CSIBackup")
}

/// Whether a kind of file speaks of restores.
pub(crate) fn concerns_restores(kind: &str) -> bool {
    kind.starts_with("Restore")
}

/// What must be open for a kind of file of the cluster's own storage.
fn needed(kind: &str) -> Downloads {
    match kind {
        // The lists are names of objects and nothing else; the log names each of them too.
        "BackupLog"
        | "BackupResults"
        | "BackupResourceList"
        | "RestoreLog"
        | "RestoreResults"
        | "RestoreResourceList" => Downloads::Logs,
        _ => Downloads::All,
    }
}

/// The file that holds everything that was backed up, Secrets included.
const CONTENTS: &str = "BackupContents";

/// The list of the objects in a backup.
pub(crate) const OBJECTS: &str = "BackupResourceList";

/// The files of which nacre publishes what is about the namespace, where there is no link.
pub(crate) const READ_BY_NACRE: [&str; 3] = [OBJECTS, "BackupLog", "RestoreLog"];

/// The contents are for those who may read every kind in them; logs and results are for whoever may make the request.
pub(super) fn permitted(seen: &Observed, policy: &Policy) -> Verdict {
    let (Sought::Backup(Some(behind)), true) =
        (&seen.sought, seen.access.applies(&policy.requester) && seen.request.spec.target.kind == CONTENTS)
    else {
        return Verdict::all();
    };
    let Some(backup) = &behind.backup else { return Verdict::all() };
    requester::contents(&seen.access, &backup.spec, policy)
}

/// Whether nacre may read the file of a request itself. Velero's own command line takes nothing but a link.
pub(crate) fn is_read_by_nacre(kind: Kind, target: &DownloadTarget) -> bool {
    kind == Kind::NonAdminDownloadRequest && READ_BY_NACRE.contains(&target.kind.as_str())
}

/// Follows a target through the tenant's own requests to what is the namespace's own, and no further.
pub(crate) fn seek(view: &State, namespace: &str, target: &DownloadTarget) -> Sought {
    if concerns_backups(&target.kind) {
        let request = view.get::<NonAdminBackup>(namespace, &target.name);
        Sought::Backup(request.map(|request| {
            let Some(velero) = backup::velero_of(view, &request) else { return Behind::default() };
            let velero_location = place(view, &velero);
            Behind { velero: Some(described(&*velero)), backup: Some(velero), velero_location }
        }))
    } else if concerns_restores(&target.kind) {
        let request = view.get::<NonAdminRestore>(namespace, &target.name);
        Sought::Restore(request.map(|request| {
            let Some(velero) = restore::velero_of(view, &request) else { return Behind::default() };
            // Where a restore's files are is for Velero's own object to say: a tenant may edit the request.
            let named = velero.spec.backup_name.as_deref().and_then(|name| view.admin::<Backup>(name));
            let velero_location = named.as_deref().and_then(|backup| place(view, backup));
            let space = view.namespace(namespace);
            let backup = named.filter(|backup| {
                space.as_deref().is_some_and(|space| owns_backup(space, backup, velero_location.as_deref()))
            });
            Behind { velero: Some(described(&*velero)), backup, velero_location }
        }))
    } else {
        Sought::Unknown
    }
}

fn described(velero: &impl Queued) -> (String, Stage, String) {
    (velero.meta().name.clone().unwrap_or_default(), velero.stage(), velero.phase().to_owned())
}

fn place(view: &State, backup: &Backup) -> Option<Arc<BackupStorageLocation>> {
    backup.spec.storage_location.as_deref().and_then(|name| view.admin::<BackupStorageLocation>(name))
}

type Refused = (&'static str, String);

/// Refusals that only a change of the spec or of the policy can fix.
pub(super) fn refused_for_good(seen: &Observed, policy: &Policy) -> Option<String> {
    let namespace = seen.meta().namespace.as_deref().unwrap_or_default();
    if let Some(error) = &seen.unreadable {
        return Some(format!("spec: cannot be read: {error}"));
    }
    if let Some(why) = policy.namespaces.why_closed(namespace, &seen.admin_namespace) {
        return Some(format!("metadata.namespace: downloads cannot be asked for in this namespace; {why}"));
    }
    matches!(seen.sought, Sought::Unknown).then(|| no_such_file(&seen.request.spec.target.kind))
}

fn no_such_file(kind: &str) -> String {
    format!("spec.target.kind: {kind:?} is not a kind of file")
}

/// There is no link to a file of this kind, and nothing in its place.
pub(super) fn closed(kind: &str) -> String {
    format!(
        "spec.target.kind: {kind} of a backup in the cluster's own storage cannot be downloaded; \
         keep backups in a NonAdminBackupStorageLocation, or ask the administrators to allow it"
    )
}

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way<'a> {
    /// By a link of Velero's, to a file of the Velero object of this name.
    Link(&'a str),
    /// By what nacre reads from the file itself.
    Read,
}

/// How the request is answered, or what is in the way: the condition's type, and a sentence.
pub(super) fn resolve<'a>(seen: &'a Observed, policy: &Policy) -> Result<Way<'a>, Refused> {
    if let Some(message) = refused_for_good(seen, policy) {
        return Err((condition::PROCESSED, message));
    }
    if seen.name_taken {
        let message = "metadata.name: Velero already has an object under the name this download would get; \
                       create it under another name";
        return Err((condition::PROCESSED, message.to_owned()));
    }
    let target = &seen.request.spec.target;
    let (missing, request, behind) = match &seen.sought {
        Sought::Unknown => return Err((condition::PROCESSED, no_such_file(&target.kind))),
        Sought::Backup(behind) => (condition::BACKUP_NOT_AVAILABLE, "NonAdminBackup", behind),
        Sought::Restore(behind) => (condition::RESTORE_NOT_AVAILABLE, "NonAdminRestore", behind),
    };
    let wait = |message: String| Err((missing, format!("spec.target.name: {message}")));
    let name = &target.name;
    let Some(behind) = behind else {
        return wait(format!("there is no {request} {name:?} in this namespace; create it or name another"));
    };
    let Some((velero, stage, phase)) = &behind.velero else {
        return wait(format!("Velero does not have {request} {name:?}; its conditions say why"));
    };
    match (stage, phase.as_str()) {
        (_, "FailedValidation") => {
            return wait(format!("Velero refused {request} {name:?}, which left nothing to download"));
        }
        (Stage::Finished | Stage::Finalizing, _) => {}
        _ => return wait(format!("{request} {name:?} is not finished; the link comes when it is")),
    }
    let Some(backup) = behind.backup.as_deref() else {
        let message =
            format!("the backup that {request} {name:?} was made from is gone, and its files with it");
        return Err((condition::BACKUP_NOT_AVAILABLE, format!("spec.target.name: {message}")));
    };
    match storage(backup, behind.velero_location.as_deref()) {
        Storage::Tenant(_) => Ok(Way::Link(velero)),
        Storage::Platform if policy.downloads.platform_storage >= needed(&target.kind) => {
            Ok(Way::Link(velero))
        }
        // A link leads into the administrators' storage; what is said about the namespace's own objects does not.
        Storage::Platform if is_read_by_nacre(seen.kind, target) => Ok(Way::Read),
        Storage::Platform => Err((condition::LOCATION_NOT_USED, closed(&target.kind))),
        Storage::Unknown => wait(format!(
            "the storage location of {request} {name:?} is not there; the link comes when it is back"
        )),
    }
}
