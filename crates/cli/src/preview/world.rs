//! What the caller can read, as the planner's state: the same look-ups and counts as in the controller.

use std::sync::Arc;
use std::time::Duration;

use api::{
    HiddenSecret, Kind, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminRestore, Phase, labels,
    velero::{Backup, BackupStorageLocation, Restore},
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::core::ObjectMeta;
use planner::{
    Plan, Policy, State,
    backup::{self, Others, VolumeFacts},
    location, restore,
    state::{Moment, RawObject, SecretKey, Update, WatchedKind},
    usage,
    view::Credential,
};
use serde_json::json;

/// What the caller can see, and what holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) namespace: Namespace,
    /// What the administrators allow; none if that makes no sense, upon which everything waits.
    pub(crate) policy: Option<Arc<Policy>>,
    pub(crate) velero_namespace: String,
    pub(crate) backups: Vec<NonAdminBackup>,
    pub(crate) locations: Vec<NonAdminBackupStorageLocation>,
    /// The Secret that a location in question names.
    pub(crate) secret: Option<HiddenSecret>,
    /// The claims of the namespace, and whether they can be saved.
    pub(crate) volumes: VolumeFacts,
    /// What the caller could not see.
    pub(crate) not_checked: Vec<String>,
    pub(crate) now: Timestamp,
}

impl World {
    fn tenant(&self) -> &str {
        self.namespace.metadata.name.as_deref().unwrap_or_default()
    }

    /// What nacre would do about this backup now.
    pub(crate) fn decide_backup(&self, backup: &NonAdminBackup) -> Option<Plan> {
        let granted = backup.spec.backup_spec.resource_policy.iter().map(|named| named.name.as_str());
        let mut state = self.state_with(backup, granted);
        if let Some(velero) = self.velero(backup) {
            self.put(&mut state, &self.velero_namespace, &velero);
        }
        let mut seen = backup::observe(&state, self.tenant(), name(&backup.metadata))?;
        seen.volume_facts = self.volumes.clone();
        // Tenants see what they use in the statuses of their own requests.
        seen.others.usage = usage::of_requests(&self.backups, &[], self.now);
        Some(backup::decide(&seen))
    }

    /// What nacre would do about this restore now.
    pub(crate) fn decide_restore(&self, restore: &NonAdminRestore) -> Option<Plan> {
        let spec = &restore.spec.restore_spec;
        let granted = [&spec.resource_modifier, &spec.resource_policy].into_iter().flatten();
        let mut state = self.state_with(restore, granted.map(|named| named.name.as_str()));
        if let Some(velero) = self.velero_restore(restore) {
            self.put(&mut state, &self.velero_namespace, &velero);
        }
        let mut seen = restore::observe(&state, self.tenant(), name(&restore.metadata))?;
        // Tenants do not see the volumes themselves: the status of the backup has their number.
        let volumes =
            seen.backup.as_ref().and_then(|from| from.status.as_ref()?.file_system_pod_volume_backups);
        seen.source_volumes = volumes.unwrap_or_default();
        Some(restore::decide(&seen))
    }

    /// What nacre would do about this location now.
    pub(crate) fn decide_location(&self, asked: &NonAdminBackupStorageLocation) -> Option<Plan> {
        let mut state = self.state_with(asked, []);
        if let Some((secret, key)) = location::named_key(&asked.spec.backup_storage_location_spec) {
            let found = self.secret.as_ref().and_then(|secret| secret.data.get(key).cloned());
            let found =
                found.map_or(Credential::Missing(self.now), |value| Credential::Found(Arc::new(value)));
            state.set_credential(&SecretKey::new(self.tenant(), secret, key), found);
        }
        Some(location::decide(&location::observe(&state, self.tenant(), name(&asked.metadata))?))
    }

    /// How many backups of the namespace count for its limits.
    pub(crate) fn used(&self) -> Others {
        backup::used(&self.state(), self.tenant())
    }

    /// The state with this object, which takes the place of one of its name, and with these ConfigMaps of the
    /// administrators, which are taken for granted: only they know which there are.
    fn state_with<'a, K: WatchedKind>(
        &self,
        object: &K,
        granted: impl IntoIterator<Item = &'a str>,
    ) -> State {
        let others = |kind: Kind, meta: &ObjectMeta| kind != K::KIND || meta.name != object.meta().name;
        let mut others_only = self.clone();
        others_only.backups.retain(|backup| others(Kind::NonAdminBackup, &backup.metadata));
        let locations = &mut others_only.locations;
        locations.retain(|location| others(Kind::NonAdminBackupStorageLocation, &location.metadata));
        let mut state = others_only.state();
        self.put(&mut state, self.tenant(), object);
        let labels = [(labels::TENANT_USABLE.to_owned(), "true".to_owned())];
        for name in granted {
            let metadata = ObjectMeta {
                name: Some(name.to_owned()),
                labels: Some(labels.clone().into()),
                ..ObjectMeta::default()
            };
            let map = ConfigMap { metadata, ..ConfigMap::default() };
            self.put(&mut state, &self.velero_namespace, &map);
        }
        state
    }

    /// The requests as they are, and Velero's side of them as far as their statuses show it.
    fn state(&self) -> State {
        let mut state = State::new(&self.velero_namespace);
        self.put(&mut state, "", &self.namespace);
        state.set_policy(self.policy.clone());
        // Tenants cannot see them; the controller says so later.
        state.set_takes_native_snapshots(false);
        for location in &self.locations {
            self.put(&mut state, self.tenant(), location);
            if let Some(storage) = self.storage(location) {
                self.put(&mut state, &self.velero_namespace, &storage);
            }
        }
        for backup in &self.backups {
            let mut backup = backup.clone();
            backup.metadata.namespace = Some(self.tenant().to_owned());
            backup.metadata.uid.get_or_insert_with(|| "none".to_owned());
            self.put(&mut state, self.tenant(), &backup);
            if let Some(velero) = self.velero(&backup) {
                self.put(&mut state, &self.velero_namespace, &velero);
            }
        }
        state
    }

    /// Adds an object as a watch would report it.
    fn put<K: WatchedKind>(&self, state: &mut State, namespace: &str, object: &K) {
        let mut object = json!(object);
        let metadata = &mut object["metadata"];
        metadata["namespace"] = json!(namespace);
        if metadata["uid"].is_null() {
            metadata["uid"] = metadata["name"].clone();
        }
        let now = Moment { clock: self.now, uptime: Duration::ZERO };
        state.update(K::KIND, Update::Observed(&RawObject::new(&object.to_string())), now);
    }

    /// Velero's BackupStorageLocation, as far as the location's status shows it.
    fn storage(&self, location: &NonAdminBackupStorageLocation) -> Option<BackupStorageLocation> {
        let reported = location.status.as_ref()?.velero_backup_storage_location.as_ref()?;
        let mut spec = location.spec.backup_storage_location_spec.clone();
        if let Some(policy) = &self.policy {
            location::fill(&policy.storage_locations.enforce, &mut spec);
        }
        let prefix = location::stored_prefix(self.tenant(), spec.object_storage.prefix.as_deref());
        spec.object_storage.prefix = Some(prefix);
        let origin = [
            (labels::NABSL_NAME, location.metadata.name.clone().unwrap_or_default()),
            (labels::NABSL_NAMESPACE, self.tenant().to_owned()),
        ];
        Some(BackupStorageLocation {
            metadata: ObjectMeta {
                name: reported.name.clone(),
                labels: Some([(labels::NABSL_NACUUID.to_owned(), reported.name.clone()?)].into()),
                annotations: Some(origin.map(|(key, value)| (key.to_owned(), value)).into()),
                ..ObjectMeta::default()
            },
            spec,
            status: reported.status.clone(),
        })
    }

    /// The Velero Restore of a request, as far as the request's status shows it.
    fn velero_restore(&self, restore: &NonAdminRestore) -> Option<Restore> {
        let status = restore.status.as_ref()?;
        let reported = status.velero_restore.as_ref().filter(|_| status.phase != Some(Phase::BackingOff))?;
        let names = restore::references(restore);
        let shown = reported.name.clone().filter(|name| names.contains(name));
        let origin = [
            (labels::NAR_NAME, restore.metadata.name.clone().unwrap_or_default()),
            (labels::NAR_NAMESPACE, self.tenant().to_owned()),
        ];
        Some(Restore {
            metadata: ObjectMeta {
                name: shown.or_else(|| names.into_iter().next()),
                annotations: Some(origin.map(|(key, value)| (key.to_owned(), value)).into()),
                ..ObjectMeta::default()
            },
            status: reported.status.clone(),
            ..Restore::default()
        })
    }

    /// The Velero Backup of a request, as far as the request's status shows it.
    fn velero(&self, backup: &NonAdminBackup) -> Option<Backup> {
        let status = backup.status.as_ref()?;
        // Of one that is gone, the status still shows the last that was seen of it.
        let reported = status.velero_backup.as_ref().filter(|_| status.phase != Some(Phase::BackingOff))?;
        let mut spec = reported.spec.clone().unwrap_or_default();
        // Which of the cluster's own locations it is makes no difference here.
        let own = backup.spec.backup_spec.storage_location.as_deref();
        spec.storage_location = own.and_then(|own| {
            let location = self.locations.iter().find(|location| name(&location.metadata) == own);
            location.and_then(|location| self.storage(location)?.metadata.name).or(spec.storage_location)
        });
        // The status shows one: so it was found under one of the names that it can have.
        let names = backup::references(backup);
        let shown = reported.name.clone().filter(|name| names.contains(name));
        let origin = [
            (labels::NAB_NAME, backup.metadata.name.clone().unwrap_or_default()),
            (labels::NAB_NAMESPACE, self.tenant().to_owned()),
        ];
        Some(Backup {
            metadata: ObjectMeta {
                name: shown.or_else(|| names.into_iter().next()),
                annotations: Some(origin.map(|(key, value)| (key.to_owned(), value)).into()),
                ..ObjectMeta::default()
            },
            spec,
            status: reported.status.clone(),
        })
    }
}

fn name(meta: &ObjectMeta) -> &str {
    meta.name.as_deref().unwrap_or_default()
}
