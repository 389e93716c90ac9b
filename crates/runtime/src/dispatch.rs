//! Which decision an object gets.

use api::Kind;
use kube::core::ObjectMeta;
use planner::{Key, Plan, State, backup, dedicated, download, location, restore, schedule, sync};

/// A plan, and the object its Events are about.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The kind of the object its Events are about.
    pub kind: Kind,
    /// The object its Events are about.
    pub meta: ObjectMeta,
    /// What to do.
    pub plan: Plan,
}

/// Decides about one object; none if it is gone.
pub fn decide(state: &State, key: &Key, publish_position: bool) -> Option<Decision> {
    let decided = |meta: &ObjectMeta, plan| Some(Decision { kind: key.kind, meta: meta.clone(), plan });
    let (namespace, name) = (key.namespace.as_str(), key.name.as_str());
    match key.kind {
        kind if kind.group() == Kind::Backup.group() && namespace != state.admin_namespace() => {
            decide_velero_view(state, key)
        }
        Kind::NonAdminBackup => {
            let seen = backup::observe(state, namespace, name)?;
            let seen = backup::Observed { publish_position, ..seen };
            decided(&seen.backup.metadata, backup::decide(&seen))
        }
        Kind::NonAdminRestore => {
            let seen = restore::observe(state, namespace, name)?;
            let seen = restore::Observed { publish_position, ..seen };
            decided(&seen.restore.metadata, restore::decide(&seen))
        }
        Kind::NonAdminBackupStorageLocation => {
            let seen = location::observe(state, namespace, name)?;
            decided(&seen.location.metadata, location::decide(&seen))
        }
        Kind::NonAdminDownloadRequest => {
            let seen = download::observe(state, namespace, name)?;
            decided(&seen.request.metadata, download::decide(&seen))
        }
        Kind::NonAdminSchedule => {
            let seen = schedule::observe(state, namespace, name)?;
            decided(&seen.schedule.metadata, schedule::decide(&seen))
        }
        Kind::Namespace => {
            let (meta, plan) = schedule::decide_defaults(state, name)?;
            decided(&meta, plan.and(dedicated::decide(state, name)))
        }
        Kind::DownloadRequest => {
            let seen = download::observe_leftover(state, name)?;
            decided(&seen.velero.metadata, download::decide_leftover(&seen))
        }
        Kind::Backup => {
            let (about, plan) = sync::decide(state, name)?;
            let (name, namespace) = (Some(about.name), Some(about.namespace));
            let meta = ObjectMeta { name, namespace, ..ObjectMeta::default() };
            Some(Decision { kind: about.kind, meta, plan })
        }
        _ => None,
    }
}

/// The same for an object of Velero's kinds in a tenant's namespace.
fn decide_velero_view(state: &State, key: &Key) -> Option<Decision> {
    if key.kind == Kind::DownloadRequest {
        let seen = download::observe_velero_view(state, &key.namespace, &key.name)?;
        let meta = seen.request.metadata.clone();
        return Some(Decision { kind: key.kind, meta, plan: download::decide(&seen) });
    }
    let seen = planner::velero_view::observe(state, key)?;
    Some(Decision { kind: key.kind, meta: seen.about(), plan: planner::velero_view::decide(&seen) })
}
