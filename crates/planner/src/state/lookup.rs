//! What decisions look up: every look-up goes to a store or an index, by name.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::velero::{BackupStorageLocation, DeleteBackupRequest, Restore, Schedule as VeleroSchedule};
use api::{Kind, NonAdminBackup, NonAdminRestore};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::Resource;
use kube::core::DynamicObject;

use super::credentials::SecretKey;
use super::indexes::place;
use super::{State, WatchedKind};
use crate::backup::SnapshotClasses;
use crate::queue::Queue;
use crate::view::{Credential, Seen};
use crate::{Key, Policy, RejectedWrite, dedicated, restore, schedule};

impl State {
    /// An object.
    pub fn get<K: WatchedKind>(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.seen(namespace, name).map(|seen| seen.object)
    }

    /// An object that may be invalid, with the reason why.
    pub fn seen<K: WatchedKind>(&self, namespace: &str, name: &str) -> Option<Seen<K>> {
        K::store(self).get(namespace, name)
    }

    /// An object in the namespace of Velero and the administrators.
    pub fn admin<K: WatchedKind>(&self, name: &str) -> Option<Arc<K>> {
        self.get(&self.admin_namespace, name)
    }

    /// All objects of a kind in a namespace.
    pub fn list<K: WatchedKind>(&self, namespace: &str) -> Vec<Arc<K>> {
        K::store(self).within(namespace).map(|seen| seen.object).collect()
    }

    /// All objects of a kind. For what is done now and then and looks at everything.
    pub fn all<K: WatchedKind>(&self) -> Vec<Arc<K>> {
        K::store(self).all().map(|seen| seen.object).collect()
    }

    pub(super) fn keys_of(&self, kind: Kind, velero: &str) -> Vec<Key> {
        self.references.under(velero).filter(|key| key.kind == kind).cloned().collect()
    }
}

impl State {
    /// The namespace of Velero and the administrators.
    pub fn admin_namespace(&self) -> &str {
        &self.admin_namespace
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The policy of this namespace; none while it is unknown. Then nothing new is started.
    pub fn policy(&self, namespace: &str) -> Option<Arc<Policy>> {
        let labels =
            self.namespace(namespace).and_then(|space| space.metadata.labels.clone()).unwrap_or_default();
        Some(self.policies.as_ref()?.for_namespace(namespace, &labels))
    }

    /// A namespace.
    pub fn namespace(&self, name: &str) -> Option<Arc<Namespace>> {
        self.namespaces.get("", name).map(|seen| seen.object)
    }

    /// The names of all namespaces.
    pub fn namespace_names(&self) -> Vec<String> {
        self.namespaces.names().map(|(_, name)| name.to_owned()).collect()
    }

    /// A tenant's restore requests from this backup.
    pub fn restores_from(&self, namespace: &str, backup: &str) -> Vec<Arc<NonAdminRestore>> {
        let names = self.restores_from.under(&place(namespace, backup));
        names.filter_map(|name| self.get::<NonAdminRestore>(namespace, name)).collect()
    }

    /// Every tenant's schedule.
    pub fn schedules(&self) -> Vec<Key> {
        let names = self.schedules.names();
        names.map(|(namespace, name)| Key::new(Kind::NonAdminSchedule, namespace, name)).collect()
    }

    /// The Velero Schedule that the Go controller made for this schedule.
    pub fn velero_schedule_for(&self, namespace: &str, name: &str) -> Option<Arc<VeleroSchedule>> {
        self.velero_schedules_for.under(&place(namespace, name)).next().and_then(|velero| self.admin(velero))
    }

    /// The backup requests that say they are runs of this schedule.
    pub fn runs_of(&self, namespace: &str, schedule: &str) -> Vec<Arc<NonAdminBackup>> {
        self.runs_labelled(namespace, &schedule::label_value(schedule))
    }

    /// The NonAdminBackups of a namespace whose label says that they are runs of a schedule.
    pub fn runs_labelled(&self, namespace: &str, label: &str) -> Vec<Arc<NonAdminBackup>> {
        let names = self.runs.under(&place(namespace, label));
        names.filter_map(|name| self.get::<NonAdminBackup>(namespace, name)).collect()
    }

    /// The schedules with runs in this storage (`last_good::stored_in`): by namespace, and by the label of the runs.
    pub fn schedules_stored_in(&self, storage: &str) -> impl Iterator<Item = (&str, &str)> {
        self.schedules_stored_in.under(storage).filter_map(|found| found.split_once('/'))
    }

    /// Whether the watch has yet to report what nacre last wrote to a NonAdminBackup.
    pub fn is_unreported_backup(&self, namespace: &str, name: &str) -> bool {
        self.backups.is_unreported(namespace, name)
    }

    /// What one key of a tenant's Secret holds.
    pub fn credential(&self, namespace: &str, secret: &str, key: &str) -> Credential {
        self.credentials.get(&SecretKey::new(namespace, secret, key)).cloned().unwrap_or_default()
    }

    /// The last write for this object that the API server rejected.
    pub fn rejected_write(&self, key: &Key) -> Option<Arc<RejectedWrite>> {
        self.rejected.get(key).cloned()
    }

    /// Velero's version, if it is known.
    pub fn velero_version(&self) -> Option<String> {
        self.velero_version.clone()
    }

    /// Whether Velero has a VolumeSnapshotLocation, if that is known.
    pub fn takes_native_snapshots(&self) -> Option<bool> {
        self.takes_native_snapshots
    }

    /// The requests to delete this Velero Backup, oldest first.
    pub fn delete_requests(&self, backup: &str) -> Vec<Arc<DeleteBackupRequest>> {
        let mut requests: Vec<_> = self.deletions.under(backup).filter_map(|name| self.admin(name)).collect();
        requests.sort_by_key(|request: &Arc<DeleteBackupRequest>| {
            let meta = request.meta();
            (meta.creation_timestamp.as_ref().map(|time| time.0), meta.name.clone())
        });
        requests
    }

    /// Whether all objects of a watched kind are known. Not so if nacre is not permitted to list them: then an empty
    /// store says nothing.
    pub fn is_listed(&self, kind: Kind) -> bool {
        self.listed.contains(&kind)
    }

    /// Whether the data of the claim with this uid is in a folder of a node, as far as nacre may read volumes.
    pub fn is_host_path(&self, claim: &str) -> bool {
        self.host_paths.contains(claim)
    }

    /// Whether it is known that no node agent runs: nobody cancels volume operations then.
    pub fn node_agent_is_missing(&self) -> bool {
        self.is_listed(Kind::DaemonSet) && !self.node_agent_runs()
    }

    /// Since when it is known that no node agent runs, as far as nacre has seen: from the beginning of time if it has never
    /// seen one.
    pub fn node_agent_missing_since(&self) -> Option<Timestamp> {
        self.node_agent_is_missing().then(|| self.node_agent_left.unwrap_or(Timestamp::MIN))
    }

    /// Whether Velero's node agent is ready on at least one node; without it nothing is saved file by file.
    pub fn node_agent_runs(&self) -> bool {
        self.node_agents.within(&self.admin_namespace).any(|seen| seen.object.runs())
    }

    /// Whether Velero takes CSI snapshots, as far as its node agent shows; without one nothing is known against it.
    pub fn takes_csi_snapshots(&self) -> bool {
        let agents = || self.node_agents.within(&self.admin_namespace).filter(|seen| seen.object.runs());
        agents().next().is_none() || agents().any(|seen| seen.object.takes_csi_snapshots())
    }

    /// Which drivers can take snapshots.
    pub fn snapshot_classes(&self) -> Arc<SnapshotClasses> {
        self.snapshot_classes.clone()
    }

    /// Whether Velero is for tenants alone.
    pub fn is_dedicated(&self) -> bool {
        self.dedicated
    }

    /// The RoleBinding that gives a Velero for tenants alone its permissions in a namespace.
    pub fn velero_binding(&self, namespace: &str) -> Option<Arc<RoleBinding>> {
        self.velero_bindings.get(namespace, dedicated::BINDING).map(|seen| seen.object)
    }

    /// Whether there is any claim in the cluster.
    pub fn has_claims(&self) -> bool {
        !self.claims.is_empty()
    }

    /// The backup requests that refer to this Velero Backup, by name alone.
    pub fn backups_of(&self, velero_backup: &str) -> Vec<Key> {
        self.keys_of(Kind::NonAdminBackup, velero_backup)
    }

    /// The restore requests that refer to this Velero Restore, and the one it says it was made for. Whether that is so,
    /// the caller decides.
    pub fn restores_of(&self, velero_restore: &str) -> Vec<Key> {
        let origin = self.admin::<Restore>(velero_restore).and_then(|velero| restore::origin(&velero));
        let mut keys = self.keys_of(Kind::NonAdminRestore, velero_restore);
        keys.extend(origin.filter(|key| self.get::<NonAdminRestore>(&key.namespace, &key.name).is_some()));
        keys.sort();
        keys.dedup();
        keys
    }

    /// Every request that was refused or waits for something, in all namespaces.
    pub fn backing_off(&self) -> Vec<Key> {
        self.backing_off.iter().cloned().collect()
    }

    /// The requests of one kind and namespace that were refused or wait for something.
    pub fn backing_off_in(&self, kind: Kind, namespace: &str) -> impl Iterator<Item = Key> {
        within(&self.backing_off, kind, namespace)
    }

    /// The requests of one kind and namespace that nacre is not done with: any phase but Created.
    pub fn unsettled_in(&self, kind: Kind, namespace: &str) -> impl Iterator<Item = Key> {
        within(&self.unsettled, kind, namespace)
    }

    /// The unfinished Velero Backups in order.
    pub fn backup_queue(&self) -> &Queue {
        &self.backup_queue
    }

    /// The unfinished Velero Restores in order.
    pub fn restore_queue(&self) -> &Queue {
        &self.restore_queue
    }

    /// Whether there is any tenant's storage location.
    pub fn has_locations(&self) -> bool {
        !self.locations.is_empty()
    }

    /// How many storage locations tenants have.
    pub fn number_of_locations(&self) -> usize {
        self.locations.len()
    }

    /// Every tenant's storage location.
    pub fn locations(&self) -> Vec<Key> {
        let names = self.locations.names();
        names
            .map(|(namespace, name)| Key::new(Kind::NonAdminBackupStorageLocation, namespace, name))
            .collect()
    }

    /// The BackupStorageLocation that Velero uses where none is named.
    pub fn default_storage(&self) -> Option<Arc<BackupStorageLocation>> {
        self.admin(self.default_storage.first()?)
    }

    /// The names of all Velero Backups.
    pub fn velero_backup_names(&self) -> Vec<String> {
        self.velero_backups.names().map(|(_, name)| name.to_owned()).collect()
    }

    /// The names of the Velero Backups that say they were made for this namespace.
    pub fn velero_backups_for(&self, namespace: &str) -> Vec<String> {
        self.made_for.under(namespace).cloned().collect()
    }

    /// The names of the Velero Backups in this storage location of Velero's.
    pub fn velero_backups_stored_in(&self, location: &str) -> Vec<String> {
        self.stored_in.under(location).cloned().collect()
    }

    /// Whether the Velero view is active and its cache synced. Otherwise this and the following are empty.
    pub fn velero_view_active(&self) -> bool {
        self.velero_view.known()
    }

    /// An object of Velero's kinds in a tenant's namespace, whoever wrote it.
    pub fn velero_view(&self, kind: Kind, namespace: &str, name: &str) -> Option<Arc<DynamicObject>> {
        self.velero_view.get(kind, namespace, name)
    }

    /// All objects of Velero's kinds in a tenant's namespace.
    pub fn velero_view_in(&self, namespace: &str) -> Vec<Key> {
        self.velero_view.within(namespace)
    }

    /// All objects of Velero's kinds in tenants' namespaces.
    pub fn all_velero_views(&self) -> Vec<Key> {
        self.velero_view.all()
    }

    /// The namespaces for which the Velero view is enabled.
    pub fn velero_view_namespaces(&self) -> Vec<String> {
        self.velero_view.namespaces.iter().cloned().collect()
    }
}

/// The keys of one kind and namespace.
fn within<'a>(keys: &'a BTreeSet<Key>, kind: Kind, namespace: &str) -> impl Iterator<Item = Key> + use<'a> {
    let namespace = namespace.to_owned();
    let first = Key::new(kind, &namespace, "");
    keys.range(first..).take_while(move |key| key.kind == kind && key.namespace == namespace).cloned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api::{Kind, labels};
    use jiff::Timestamp;
    use serde_json::json;

    use super::super::{Moment, RawObject, Update};
    use super::State;

    #[test]
    fn the_default_location_is_known_by_name_and_is_never_a_tenants() {
        let now = Moment { clock: Timestamp::UNIX_EPOCH, uptime: Duration::ZERO };
        let mut state = State::new("velero");
        let mut observe = |name: &str, version: u64, default: bool, tenant: bool| {
            let mut metadata = json!({"name": name, "namespace": "velero", "uid": name, "resourceVersion": version.to_string()});
            if tenant {
                metadata["labels"] = json!({labels::NABSL_NACUUID: name});
                metadata["annotations"] = json!({labels::NABSL_NAMESPACE: "shop"});
            }
            let text = json!({"apiVersion": "velero.io/v1", "kind": "BackupStorageLocation", "metadata": metadata,
                "spec": {"provider": "aws", "objectStorage": {"bucket": "b"}, "default": default}});
            let object = RawObject::new(&text.to_string());
            state.update(Kind::BackupStorageLocation, Update::Observed(&object), now);
            state.default_storage().and_then(|storage| storage.metadata.name.clone())
        };
        assert_eq!(observe("a-tenants", 1, true, true), None);
        assert_eq!(observe("other", 2, false, false), None);
        assert_eq!(observe("own", 3, true, false).as_deref(), Some("own"));
        assert_eq!(observe("own", 4, false, false), None);
        assert_eq!(observe("other", 5, true, false).as_deref(), Some("other"));
    }
}
