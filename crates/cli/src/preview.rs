//! What nacre would do with a request: the planner's decision on what the caller can read, without executing it.

use std::sync::Arc;

use api::{
    HiddenSecret, Kind, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminRestore, Phase, condition,
    labels,
    velero::{Backup, BackupStorageLocation},
};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::core::ObjectMeta;
use planner::{
    Action, HealedBy, Plan, Policy,
    backup::{self, Others, VolumeFacts},
    healed_by, location,
    queue::{Stage, stage},
    restore,
    view::Credential,
};
use serde_json::{Value, json};

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

/// The predicted result of a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PreviewResult {
    /// It passes, and this is the spec of what is made of it.
    Passes(Value),
    /// It passes once an administrator approves it.
    NeedsApproval,
    /// It is refused: which field, what is wrong and what would do.
    Refused(String),
    /// It is fine and has to wait.
    Waits(String),
}

/// A request as if it were sent just now: nothing has become of it yet.
fn as_new(meta: &ObjectMeta, world: &World) -> ObjectMeta {
    ObjectMeta {
        name: meta.name.clone().or_else(|| meta.generate_name.clone()),
        namespace: world.namespace.metadata.name.clone(),
        // As long as a real one, for the names that are made of it.
        uid: Some("00000000-0000-4000-8000-000000000000".to_owned()),
        generation: Some(1),
        ..ObjectMeta::default()
    }
}

impl World {
    fn location(&self, name: &str) -> Option<&NonAdminBackupStorageLocation> {
        self.locations.iter().find(|location| location.metadata.name.as_deref() == Some(name))
    }

    fn backup(&self, name: &str) -> Option<&NonAdminBackup> {
        self.backups.iter().find(|backup| backup.metadata.name.as_deref() == Some(name))
    }

    /// Velero's BackupStorageLocation, as far as the location's status shows it.
    fn storage(&self, location: &NonAdminBackupStorageLocation) -> Option<Arc<BackupStorageLocation>> {
        let reported = location.status.as_ref()?.velero_backup_storage_location.as_ref()?;
        let labels = [(labels::NABSL_NACUUID.to_owned(), reported.name.clone()?)];
        let owner = self.namespace.metadata.name.clone().unwrap_or_default();
        Some(Arc::new(BackupStorageLocation {
            metadata: ObjectMeta {
                name: reported.name.clone(),
                labels: Some(labels.into()),
                annotations: Some([(labels::NABSL_NAMESPACE.to_owned(), owner)].into()),
                ..ObjectMeta::default()
            },
            spec: location.spec.backup_storage_location_spec.clone(),
            status: reported.status.clone(),
        }))
    }

    /// The Velero Backup of a request and its location, as far as the request's status shows them.
    fn velero(&self, backup: &NonAdminBackup) -> Option<(Arc<Backup>, Option<Arc<BackupStorageLocation>>)> {
        let reported = backup.status.as_ref()?.velero_backup.as_ref()?;
        let own = backup.spec.backup_spec.storage_location.as_deref();
        let location = own.and_then(|name| self.location(name)).and_then(|location| self.storage(location));
        let mut spec = reported.spec.clone().unwrap_or_default();
        if own.is_none() {
            // Which of the cluster's own locations it is makes no difference here.
            spec.storage_location = None;
        }
        let velero = Backup {
            metadata: ObjectMeta { name: reported.name.clone(), ..ObjectMeta::default() },
            spec,
            status: reported.status.clone(),
        };
        Some((Arc::new(velero), location))
    }

    /// What counts for the limits of the namespace.
    pub(crate) fn others(&self) -> Others {
        let mut others = Others::default();
        for backup in &self.backups {
            let created = backup.status.as_ref().filter(|status| status.phase == Some(Phase::Created));
            let Some(velero) = created.and_then(|status| status.velero_backup.as_ref()) else { continue };
            let velero_status = velero.status.clone().unwrap_or_default();
            others.alive += 1;
            let stage = stage(
                velero_status.phase.as_deref().unwrap_or_default(),
                velero_status.completion_timestamp.is_some(),
            );
            others.active += usize::from(stage != Stage::Finished);
        }
        others
    }
}

/// An administrator's ConfigMap, taken for granted: only they know which there are.
fn taken_for_granted() -> Arc<ConfigMap> {
    let labels = [(labels::TENANT_USABLE.to_owned(), "true".to_owned())];
    Arc::new(ConfigMap {
        metadata: ObjectMeta { labels: Some(labels.into()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    })
}

/// The predicted result of a backup.
pub(crate) fn of_backup(world: &World, asked: &NonAdminBackup) -> PreviewResult {
    let location = asked.spec.backup_spec.storage_location.as_deref().and_then(|name| world.location(name));
    let seen = backup::Observed {
        backup: Arc::new(NonAdminBackup {
            metadata: as_new(&asked.metadata, world),
            spec: api::NonAdminBackupSpec {
                backup_spec: asked.spec.backup_spec.clone(),
                delete_backup: None,
            },
            status: None,
        }),
        unreadable: None,
        namespace: Some(Arc::new(world.namespace.clone())),
        velero: None,
        name_taken: false,
        storage_missing: false,
        velero_location: None,
        storage: location.and_then(|location| world.storage(location)),
        // Tenants do not see it.
        default_storage: None,
        location: location.map(|location| Arc::new(location.clone())),
        resource_policy: Some(taken_for_granted()),
        delete_requests: Vec::new(),
        restores: Vec::new(),
        volumes: Default::default(),
        volume_facts: world.volumes.clone(),
        position: 1,
        publish_position: true,
        others: world.others(),
        policy: world.policy.clone(),
        admin_namespace: world.velero_namespace.clone(),
        rejected_write: None,
        now: world.now,
    };
    verdict(&backup::decide(&seen), Kind::Backup)
}

/// The predicted result of a restore.
pub(crate) fn of_restore(world: &World, asked: &NonAdminRestore) -> PreviewResult {
    let from = asked.spec.restore_spec.backup_name.as_deref().and_then(|name| world.backup(name));
    let (source, velero_location) = from.and_then(|from| world.velero(from)).unzip();
    let volumes = from.and_then(|from| from.status.as_ref()?.file_system_pod_volume_backups);
    let seen = restore::Observed {
        restore: Arc::new(NonAdminRestore {
            metadata: as_new(&asked.metadata, world),
            spec: asked.spec.clone(),
            status: None,
        }),
        unreadable: None,
        namespace: Some(Arc::new(world.namespace.clone())),
        velero: None,
        name_taken: false,
        backup: from.map(|from| Arc::new(from.clone())),
        source,
        velero_location: velero_location.flatten(),
        source_volumes: volumes.unwrap_or_default(),
        modifier: None,
        config_maps: [Some(taken_for_granted()), Some(taken_for_granted())],
        volumes: Default::default(),
        position: 1,
        publish_position: true,
        policy: world.policy.clone(),
        admin_namespace: world.velero_namespace.clone(),
        rejected_write: None,
        now: world.now,
    };
    verdict(&restore::decide(&seen), Kind::Restore)
}

/// The predicted result of a location.
pub(crate) fn of_location(world: &World, asked: &NonAdminBackupStorageLocation) -> PreviewResult {
    let metadata = as_new(&asked.metadata, world);
    let spec = &asked.spec.backup_storage_location_spec;
    let key = location::named_key(spec).map(|(_, key)| key);
    let found = world.secret.as_ref().and_then(|secret| secret.data.get(key?).cloned());
    let others = world.locations.iter().filter(|other| other.metadata.name != asked.metadata.name).count();
    let seen = location::Observed {
        name: metadata.name.clone().unwrap_or_default(),
        location: Arc::new(NonAdminBackupStorageLocation {
            metadata,
            spec: asked.spec.clone(),
            status: None,
        }),
        unreadable: None,
        namespace: Some(Arc::new(world.namespace.clone())),
        request: None,
        storage: None,
        copy: None,
        name_taken: false,
        credential: found.map_or(Credential::Missing(world.now), |value| Credential::Found(Arc::new(value))),
        others,
        path_taken: false,
        backups: Vec::new(),
        velero_version: None,
        policy: world.policy.clone(),
        admin_namespace: world.velero_namespace.clone(),
        rejected_write: None,
        now: world.now,
    };
    let approval = world.policy.as_ref().is_some_and(|policy| policy.storage_locations.require_approval);
    match verdict(&location::decide(&seen), Kind::NonAdminBackupStorageLocationRequest) {
        PreviewResult::Passes(_) if approval => PreviewResult::NeedsApproval,
        PreviewResult::Passes(_) => {
            let mut spec = spec.clone();
            if let Some(policy) = &world.policy {
                location::fill(&policy.storage_locations.enforce, &mut spec);
            }
            PreviewResult::Passes(json!(spec))
        }
        other => other,
    }
}

/// Reads a plan as a person would: something is made, or a condition says why not.
fn verdict(plan: &Plan, made: Kind) -> PreviewResult {
    for action in &plan.actions {
        match action {
            Action::Create(object) if object.kind == made => {
                return PreviewResult::Passes(object.body["spec"].clone());
            }
            Action::PatchStatus(_, body) => {
                let conditions = body["status"]["conditions"].clone();
                let conditions: Vec<Condition> = serde_json::from_value(conditions).unwrap_or_default();
                let accepted = condition::get(&conditions, condition::ACCEPTED);
                if let Some(refusal) = accepted.filter(|accepted| accepted.status == "False") {
                    let message = refusal.message.clone();
                    return if healed_by(refusal).is_some_and(HealedBy::is_waiting) {
                        PreviewResult::Waits(message)
                    } else {
                        PreviewResult::Refused(message)
                    };
                }
            }
            _ => {}
        }
    }
    PreviewResult::Waits("nacre needs to know more than can be seen from here".to_owned())
}

/// Where the bytes of a backup are, in words.
pub(crate) fn storage_in_words(backup: &NonAdminBackup) -> String {
    match backup.spec.backup_spec.storage_location.as_deref() {
        Some(own) => format!("{own}, your own"),
        None => "the cluster's own".to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The namespace `shop` under this policy.
    pub(crate) fn shop(policy: Policy) -> World {
        World {
            namespace: serde_json::from_value(json!({"metadata": {"name": "shop", "uid": "1"}})).unwrap(),
            policy: Some(Arc::new(policy)),
            velero_namespace: "velero".to_owned(),
            now: "2026-11-15T13:00:00Z".parse().unwrap(),
            ..World::default()
        }
    }

    pub(crate) fn backup(spec: &Value) -> NonAdminBackup {
        serde_json::from_value(json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
            "metadata": {"name": "daily"}, "spec": {"backupSpec": spec}}))
        .unwrap()
    }

    fn location(status: &Value) -> NonAdminBackupStorageLocation {
        serde_json::from_value(json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackupStorageLocation",
            "metadata": {"name": "mine", "namespace": "shop", "uid": "l"}, "spec": {"backupStorageLocationSpec": {
                "provider": "aws", "objectStorage": {"bucket": "shop-backups"}, "config": {"region": "here"},
                "credential": {"name": "keys", "key": "cloud"}}}, "status": status}))
        .unwrap()
    }

    fn ready() -> Value {
        json!({"phase": "Created", "veleroBackupStorageLocation": {"name": "shop-mine-l", "status": {"phase": "Available"}}})
    }

    #[test]
    fn a_backup_into_a_location_passes_when_that_is_ready() {
        let mut world = shop(Policy::default());
        let asked = backup(&json!({"storageLocation": "mine"}));
        let PreviewResult::Waits(why) = of_backup(&world, &asked) else {
            panic!("there is no such location")
        };
        assert!(why.contains("there is no NonAdminBackupStorageLocation"), "{why}");
        world.locations.push(location(&ready()));
        let PreviewResult::Passes(spec) = of_backup(&world, &asked) else { panic!("it is ready") };
        assert_eq!(spec["storageLocation"], "shop-mine-l");
        assert_eq!(spec["includedNamespaces"], json!(["shop"]));
    }

    /// Preview, table, wait and status use one word for it, and a wait goes on.
    #[test]
    fn a_missing_or_unready_location_is_waited_for_everywhere() {
        let pending = json!({"phase": "New"});
        let not_handed_over = json!({"phase": "Created"});
        let at = |phase: &str| json!({"phase": "Created", "veleroBackupStorageLocation": {"name": "shop-mine-l", "status": {"phase": phase}}});
        let statuses = [None, Some(pending), Some(not_handed_over), Some(at("")), Some(at("Unavailable"))];
        for status in statuses {
            let mut world = shop(Policy::default());
            world.locations.extend(status.as_ref().map(location));
            let mut asked = backup(&json!({"storageLocation": "mine"}));
            let PreviewResult::Waits(why) = of_backup(&world, &asked) else { panic!("{status:?}") };
            let reported = crate::progress::tests::refused(condition::INVALID_BACKUP_SPEC, &why);
            asked.status = serde_json::from_value(reported).unwrap();
            let progress = crate::progress::RequestProgress::from(&asked);
            assert_eq!((progress.word(), progress.outcome()), ("Waiting", None), "{why}");
        }
    }

    #[test]
    fn a_full_namespace_makes_a_backup_wait() {
        let mut policy = Policy::default();
        policy.backup.max_per_namespace = Some(1);
        let mut world = shop(policy);
        let mut there = backup(&json!({}));
        there.status =
            serde_json::from_value(json!({"phase": "Created", "veleroBackup": {"name": "x"}})).unwrap();
        world.backups.push(there);
        assert!(matches!(of_backup(&world, &backup(&json!({}))), PreviewResult::Waits(_)));
    }

    #[test]
    fn a_restore_is_judged_by_where_its_backup_is() {
        let mut world = shop(Policy::default());
        let restore: NonAdminRestore =
            serde_json::from_value(json!({"apiVersion": "oadp.openshift.io/v1alpha1",
            "kind": "NonAdminRestore", "metadata": {"name": "back"},
            "spec": {"restoreSpec": {"backupName": "daily", "includedResources": ["roles"]}}}))
            .unwrap();
        let mut from = backup(&json!({}));
        from.status = serde_json::from_value(json!({"phase": "Created", "veleroBackup": {"name": "x",
            "spec": {"storageLocation": "default"}, "status": {"phase": "Completed"}}}))
        .unwrap();
        world.backups.push(from.clone());
        assert!(matches!(of_restore(&world, &restore), PreviewResult::Passes(_)));
        from.spec.backup_spec.storage_location = Some("mine".to_owned());
        world.backups = vec![from];
        world.locations.push(location(&ready()));
        let PreviewResult::Refused(why) = of_restore(&world, &restore) else {
            panic!("roles do not come from tenants")
        };
        assert!(why.contains("includedResources"), "{why}");
    }

    #[test]
    fn a_location_needs_its_secret_and_perhaps_an_administrator() {
        let mut policy = Policy::default();
        policy.storage_locations.require_approval = true;
        let mut world = shop(policy);
        let asked = location(&json!({}));
        let PreviewResult::Waits(why) = of_location(&world, &asked) else { panic!("there is no Secret") };
        assert!(why.contains("Secret"), "{why}");
        let keys = b"[default]\naws_access_key_id = a\naws_secret_access_key = b\n";
        world.secret = Some(HiddenSecret {
            data: [("cloud".to_owned(), keys.to_vec().into())].into(),
            ..HiddenSecret::default()
        });
        assert_eq!(of_location(&world, &asked), PreviewResult::NeedsApproval);
        world.policy = Some(Arc::new(Policy::default()));
        assert!(matches!(of_location(&world, &asked), PreviewResult::Passes(_)));
    }
}
