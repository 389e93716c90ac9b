//! The rule, reason by reason.

use api::{NonAdminBackup, NonAdminBackupStorageLocation};
use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-11-15T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// A backup that is good, with these changes.
fn backup(changes: &Value) -> NonAdminBackup {
    let mut object = json!({
        "metadata": {"name": "daily", "namespace": "shop", "creationTimestamp": "2026-11-14T11:00:00Z"},
        "spec": {"backupSpec": {}},
        "status": {"phase": "Created", "veleroBackup": {
            "spec": {"includedNamespaces": ["shop"], "storageLocation": "default"},
            "status": {"phase": "Completed", "completionTimestamp": "2026-11-14T12:00:00Z",
                "expiration": "2026-12-14T12:00:00Z", "progress": {"totalItems": 3, "itemsBackedUp": 3}},
        }},
    });
    merge(&mut object, changes);
    serde_json::from_value(object).unwrap()
}

fn merge(into: &mut Value, changes: &Value) {
    match (into, changes) {
        (Value::Object(into), Value::Object(changes)) => {
            for (key, value) in changes {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, changes) => *into = changes.clone(),
    }
}

fn velero_spec(spec: &Value) -> NonAdminBackup {
    backup(&json!({"status": {"veleroBackup": {"spec": spec}}}))
}

fn velero_status(status: &Value) -> NonAdminBackup {
    backup(&json!({"status": {"veleroBackup": {"status": status}}}))
}

fn why(backup: &NonAdminBackup) -> Option<NotGood> {
    why_not_good(backup, &Storage::Usable, now())
}

#[test]
fn a_whole_complete_backup_in_usable_storage_is_good() {
    assert_eq!(why(&backup(&json!({}))), None);
}

#[test]
fn what_is_not_complete_or_not_there_any_more_is_not_good() {
    let lost = json!({"status": {"phase": "BackingOff", "conditions": [{"type": "Accepted", "status": "False",
        "reason": "VeleroBackupNotFound", "message": "", "lastTransitionTime": NOW}]}});
    for (backup, expected) in vec![
        (backup(&json!({"metadata": {"deletionTimestamp": NOW}})), NotGood::Deleting),
        (backup(&json!({"spec": {"deleteBackup": true}})), NotGood::Deleting),
        (backup(&json!({"status": {"phase": "Deleting"}})), NotGood::Deleting),
        (velero_status(&json!({"phase": "Deleting"})), NotGood::Deleting),
        (backup(&lost), NotGood::Gone),
        (backup(&json!({"status": {"phase": "BackingOff"}})), NotGood::Unfinished),
        (backup(&json!({"status": null})), NotGood::Unfinished),
        (velero_status(&json!({"phase": "InProgress", "completionTimestamp": null})), NotGood::Unfinished),
        (velero_status(&json!({"phase": "Failed"})), NotGood::Failed("Failed".to_owned())),
        (velero_status(&json!({"phase": "PartiallyFailed"})), NotGood::PartiallyFailed),
        (velero_status(&json!({"expiration": NOW})), NotGood::Expired),
        (velero_status(&json!({"progress": {"itemsBackedUp": 0}})), NotGood::Empty),
        (velero_status(&json!({"progress": {"itemsBackedUp": null, "totalItems": null}})), NotGood::Empty),
        (velero_status(&json!({"progress": null})), NotGood::Empty),
    ] {
        assert_eq!(why(&backup), Some(expected), "{:?}", backup.status);
    }
}

#[test]
fn every_filter_is_named_and_nothing_else_is_one() {
    let filtered = |spec: Value| filters(&velero_spec(&spec));
    for (spec, field) in [
        (json!({"includedResources": ["nonsense"]}), "includedResources"),
        (json!({"excludedResources": ["secrets"]}), "excludedResources"),
        (json!({"includedNamespaceScopedResources": ["configmaps"]}), "includedNamespaceScopedResources"),
        (json!({"excludedNamespaceScopedResources": ["*"]}), "excludedNamespaceScopedResources"),
        (json!({"labelSelector": {"matchLabels": {"app": "shop"}}}), "labelSelector"),
        (
            json!({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}),
            "labelSelector",
        ),
        (json!({"orLabelSelectors": [{"matchLabels": {"app": "shop"}}]}), "orLabelSelectors"),
        (json!({"resourcePolicy": {"kind": "configmap", "name": "volumes"}}), "resourcePolicy"),
        (json!({"includedNamespaces": ["other"]}), "includedNamespaces"),
        (json!({"excludedNamespaces": ["shop"]}), "excludedNamespaces"),
    ] {
        assert_eq!(filtered(spec.clone()), [field], "{spec}");
        assert_eq!(why(&velero_spec(&spec)), Some(NotGood::Filtered(vec![field])));
    }
    for spec in [
        json!({"includedResources": ["*"], "excludedResources": []}),
        json!({"includedResources": [], "orLabelSelectors": [], "labelSelector": {}}),
        json!({"includedNamespaceScopedResources": ["*"]}),
        json!({"includedNamespaces": ["*"], "excludedNamespaces": ["other"]}),
        json!({"includeClusterResources": false, "snapshotVolumes": false, "excludedClusterScopedResources": ["persistentvolumes"]}),
    ] {
        assert_eq!(filtered(spec.clone()), [""; 0], "{spec}");
    }
}

#[test]
fn what_nacre_and_velero_leave_out_of_every_backup_is_no_filter() {
    let mut out = fence_of_backups();
    out.extend(
        ["volumesnapshots.snapshot.storage.k8s.io", "volumesnapshotcontents.snapshot.storage.k8s.io"]
            .map(str::to_owned),
    );
    assert_eq!(filters(&velero_spec(&json!({"excludedResources": out}))), [""; 0]);
    assert_eq!(filters(&velero_spec(&json!({"excludedNamespaceScopedResources": out}))), [""; 0]);
    out.push("secrets".to_owned());
    assert_eq!(filters(&velero_spec(&json!({"excludedResources": out}))), ["excludedResources"]);
}

fn fence_of_backups() -> Vec<String> {
    let mut out = crate::fence::namespaced_out_of_backups();
    out.extend(crate::fence::cluster_scoped_out_of_backups());
    out
}

#[test]
fn what_velero_was_given_counts_and_not_a_later_edit() {
    let edit = json!({"spec": {"backupSpec": {"labelSelector": {"matchLabels": {"app": "shop"}}}}});
    assert_eq!(why(&backup(&edit)), None);
    let mut unknown = backup(&edit);
    unknown.status.as_mut().unwrap().velero_backup.as_mut().unwrap().spec = None;
    assert_eq!(why(&unknown), Some(NotGood::Filtered(vec!["labelSelector"])));
}

fn location(changes: &Value) -> NonAdminBackupStorageLocation {
    let mut object = json!({
        "metadata": {"name": "mine", "namespace": "shop", "uid": "1"},
        "spec": {"backupStorageLocationSpec": {"provider": "aws", "objectStorage": {"bucket": "b"}}},
        "status": {"phase": "Created", "veleroBackupStorageLocation": {"name": "shop-mine-1", "status": {"phase": "Available"}}},
    });
    merge(&mut object, changes);
    serde_json::from_value(object).unwrap()
}

fn kept_in(velero: &str, asked: Option<&str>) -> NonAdminBackup {
    backup(&json!({"spec": {"backupSpec": {"storageLocation": asked}},
        "status": {"veleroBackup": {"spec": {"storageLocation": velero}}}}))
}

#[test]
fn a_backup_is_good_only_while_velero_can_read_its_own_location() {
    let kept = kept_in("shop-mine-1", Some("mine"));
    let problem = |locations: &[NonAdminBackupStorageLocation], kept: &NonAdminBackup| {
        let why = why_not_good(kept, &as_seen_by_caller(kept, locations, None), now());
        why.map(|why| why.to_string()).unwrap_or_default()
    };
    let revoked = json!({"status": {"phase": "New", "veleroBackupStorageLocation": {"status": null},
        "conditions": [{"type": "ClusterAdminApproved", "status": "False", "reason": "BslSpecApprovalPending", "message": "",
            "lastTransitionTime": NOW}]}});
    let velero = |phase: Value| {
        location(&json!({"status": {"veleroBackupStorageLocation": {"status": {"phase": phase}}}}))
    };
    assert_eq!(problem(&[location(&json!({}))], &kept), "");
    insta::assert_snapshot!(problem(&[location(&revoked)], &kept), @r#"its storage location "mine" is not approved by an administrator"#);
    insta::assert_snapshot!(problem(&[velero(json!("Unavailable"))], &kept), @r#"its storage location "mine" is not available to Velero"#);
    insta::assert_snapshot!(problem(&[velero(Value::Null)], &kept), @r#"its storage location "mine" is not available to Velero"#);
    insta::assert_snapshot!(problem(&[location(&json!({"metadata": {"deletionTimestamp": NOW}}))], &kept), @r#"its storage location "mine" is being deleted"#);
    insta::assert_snapshot!(problem(&[], &kept), @r#"its storage location "mine" does not exist any more"#);
    // Deleted and created again: another location, under the same name.
    let again = json!({"status": {"veleroBackupStorageLocation": {"name": "shop-mine-2"}}});
    insta::assert_snapshot!(problem(&[location(&again)], &kept), @r#"its storage location "mine" does not exist any more"#);
    // The request was edited to look as if the backup were somewhere else.
    assert_ne!(problem(&[location(&revoked)], &kept_in("shop-mine-1", None)), "");
    // The cluster's own storage is not for tenants to read.
    assert_eq!(as_seen_by_caller(&kept_in("default", None), &[location(&revoked)], None), Storage::Unknown);
    // Whoever may read it sees whether it is there.
    let default = json!({"metadata": {"name": "default"}, "spec": {"provider": "aws", "objectStorage": {"bucket": "b"}},
        "status": {"phase": "Available"}});
    let default = [serde_json::from_value(default).unwrap()];
    let seen = |velero| as_seen_by_caller(&kept_in("default", None), &[], Some(velero));
    assert_eq!(seen(&default), Storage::Usable);
    assert!(seen(&[]).problem().is_some_and(|problem| problem.location.is_none()));
    // Without what Velero was given, the request is all there is.
    let mut request = kept;
    request.status.as_mut().unwrap().velero_backup.as_mut().unwrap().spec = None;
    assert_eq!(as_seen_by_caller(&request, &[location(&json!({}))], None), Storage::Usable);
    assert_ne!(problem(&[location(&revoked)], &request), "");
}

#[test]
fn the_newest_good_one_is_found_and_what_came_after_it() {
    let made = |name: &str, ended: &str, changes: &Value| {
        let mut made = velero_status(changes);
        made.metadata.name = Some(name.to_owned());
        let velero = made.status.as_mut().unwrap().velero_backup.as_mut().unwrap().status.as_mut().unwrap();
        velero.completion_timestamp = serde_json::from_value(json!(ended)).unwrap();
        made
    };
    let mut filtered = made("part", "2026-11-14T06:00:00Z", &json!({}));
    filtered.status.as_mut().unwrap().velero_backup.as_mut().unwrap().spec =
        serde_json::from_value(json!({"includedResources": ["configmaps"]})).unwrap();
    let mut deleted = made("deleted", "2026-11-14T07:00:00Z", &json!({}));
    deleted.spec.delete_backup = Some(true);
    let backups = [
        made("empty", "2026-11-14T05:00:00Z", &json!({"progress": null})),
        made("old", "2026-11-14T01:00:00Z", &json!({})),
        made("failed-before", "2026-11-14T02:00:00Z", &json!({"phase": "Failed"})),
        filtered,
        deleted,
        made("good", "2026-11-14T04:00:00Z", &json!({})),
    ];
    let reported = |found: &LastGood<'_>| {
        let name = |backup: &NonAdminBackup| backup.metadata.name.clone().unwrap();
        let rest: Vec<_> =
            found.not_counted.iter().map(|(backup, why)| format!("{}: {why}", name(backup))).collect();
        format!("{:?}; {}", found.good.map(name), rest.join("; "))
    };
    insta::assert_snapshot!(reported(&find(&backups, |_| Storage::Usable, now())), @r#"Some("good"); part: it holds only a part of the namespace (limited by includedResources); empty: it holds 0 items"#);
    // In the same second nobody can say which was later.
    let tied = [made("z-empty", "2026-11-14T04:00:00Z", &json!({"progress": null})), backups[5].clone()];
    insta::assert_snapshot!(reported(&find(&tied, |_| Storage::Usable, now())), @r#"Some("good"); "#);
    let gone = StorageProblem { location: None, what: "does not exist any more" };
    let none = find(&backups[1..2], |_| Storage::Unavailable(gone.clone()), now());
    insta::assert_snapshot!(reported(&none), @"None; old: its storage location, the cluster's own, does not exist any more");
    assert_eq!(find(&[], |_| Storage::Usable, now()), LastGood::default());
}

/// Somebody with the `edit` role may not read Roles, so they are not in a backup to their own storage. They could not
/// come back from there either.
#[test]
fn what_cannot_come_back_from_own_storage_is_not_missing() {
    let roles = "roles.rbac.authorization.k8s.io";
    let excluding = |own: bool, asked: &[&str], given: &[&str]| {
        let location = own.then_some("own");
        let asked = json!({"storageLocation": location, "excludedResources": asked});
        let given = json!({"spec": {"excludedResources": given}});
        why(&backup(&json!({"spec": {"backupSpec": asked}, "status": {"veleroBackup": given}})))
    };
    let partial = Some(NotGood::Filtered(vec!["excludedResources"]));
    assert_eq!(excluding(true, &[], &[roles, "widgets.example.com"]), None);
    assert_eq!(excluding(false, &[], &[roles]), partial);
    assert_eq!(excluding(true, &[roles], &[roles]), partial);
    for counts in ["secrets", "podtemplates", "deployments.apps", "deployments.v1.apps", "*.apps"] {
        assert_eq!(excluding(true, &[], &[roles, counts]), partial, "{counts}");
    }
}
