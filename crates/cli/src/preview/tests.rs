//! Predicted results, and the limits that count for them.

use std::sync::Arc;

use api::HiddenSecret;
use planner::Policy;

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
    serde_json::from_value(
        json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackupStorageLocation",
        "metadata": {"name": "mine", "namespace": "shop", "uid": "l"}, "spec": {"backupStorageLocationSpec": {
            "provider": "aws", "objectStorage": {"bucket": "shop-backups"}, "config": {"region": "here"},
            "credential": {"name": "keys", "key": "cloud"}}}, "status": status}),
    )
    .unwrap()
}

fn ready() -> Value {
    json!({"phase": "Created", "veleroBackupStorageLocation": {"name": "shop-mine-l", "status": {"phase": "Available"}}})
}

#[test]
fn a_backup_into_a_location_passes_when_that_is_ready() {
    let mut world = shop(Policy::default());
    let asked = backup(&json!({"storageLocation": "mine"}));
    let PreviewResult::Waits(why) = of_backup(&world, &asked) else { panic!("there is no such location") };
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
    let there = another(&json!({}), &json!({"phase": "Created", "veleroBackup": {"name": "x"}}));
    world.backups.push(there);
    assert!(matches!(of_backup(&world, &backup(&json!({}))), PreviewResult::Waits(_)));
    // Its Velero Backup is gone.
    let gone = crate::progress::tests::refused(condition::VELERO_BACKUP_NOT_FOUND, "it is gone");
    world.backups = vec![another(&json!({}), &gone)];
    assert!(matches!(of_backup(&world, &backup(&json!({}))), PreviewResult::Passes(_)));
}

/// Another backup of the namespace.
fn another(metadata: &Value, status: &Value) -> NonAdminBackup {
    let mut other = backup(&json!({}));
    other.metadata = serde_json::from_value(metadata.clone()).unwrap();
    other.metadata.name = Some("other".to_owned());
    other.status = serde_json::from_value(status.clone()).unwrap();
    other
}

/// The controller gives a place to older requests first, and none to one that is being deleted or that is refused.
#[test]
fn older_requests_count_as_in_the_controller() {
    let mut policy = Policy::default();
    policy.backup.max_per_namespace = Some(1);
    let mut world = shop(policy);
    let (older, deleting) = (
        json!({"creationTimestamp": "2026-11-15T12:00:00Z"}),
        json!({"creationTimestamp": "2026-11-15T12:00:00Z", "deletionTimestamp": "2026-11-15T12:30:00Z"}),
    );
    let newer = json!({"creationTimestamp": "2026-11-15T14:00:00Z"});
    let refused =
        crate::progress::tests::refused(condition::INVALID_BACKUP_SPEC, "spec.backupSpec.ttl: too long");
    let full = crate::progress::tests::refused(condition::NAMESPACE_LIMIT_REACHED, "it is full");
    let cases = [
        (&older, &Value::Null, true),
        (&older, &full, true),
        (&older, &refused, false),
        (&deleting, &Value::Null, false),
        (&newer, &Value::Null, false),
    ];
    for (metadata, status, waits) in cases {
        world.backups = vec![another(metadata, status)];
        let result = of_backup(&world, &backup(&json!({})));
        assert_eq!(matches!(result, PreviewResult::Waits(_)), waits, "{metadata} {status}: {result:?}");
    }
}

#[test]
fn a_place_in_the_bucket_that_another_location_has_is_refused() {
    let mut world = shop(Policy::default());
    let keys = b"[default]\naws_access_key_id = a\naws_secret_access_key = b\n";
    world.secret = Some(HiddenSecret {
        data: [("cloud".to_owned(), keys.to_vec().into())].into(),
        ..HiddenSecret::default()
    });
    world.locations.push(location(&ready()));
    let mut asked = location(&json!({}));
    assert!(matches!(of_location(&world, &asked), PreviewResult::Passes(_)), "it takes its own place");
    asked.metadata.name = Some("second".to_owned());
    let PreviewResult::Refused(why) = of_location(&world, &asked) else { panic!("the place is taken") };
    assert!(why.contains("used by another storage location"), "{why}");
    asked.spec.backup_storage_location_spec.object_storage.bucket = "another-bucket".to_owned();
    assert!(matches!(of_location(&world, &asked), PreviewResult::Passes(_)));
}

#[test]
fn a_restore_is_judged_by_where_its_backup_is() {
    let mut world = shop(Policy::default());
    let restore: NonAdminRestore = serde_json::from_value(json!({"apiVersion": "oadp.openshift.io/v1alpha1",
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
