//! Policies in DataProtectionApplications.

use std::time::Duration as Wait;

use api::Duration;
use planner::policy::{Reading, Readings, load};
use serde_json::json;

use super::{loaded, named_application, reported};

#[test]
fn every_field_arrives_from_either_place() {
    let block = json!({
        "enable": true,
        "enforceBackupSpec": {"snapshotVolumes": false, "ttl": "158h"},
        "enforceRestoreSpec": {"restorePVs": true},
        "enforceBSLSpec": {"provider": "aws", "objectStorage": {"bucket": "b"}},
        "requireApprovalForBSL": true, "garbageCollectionPeriod": "12h", "backupSyncPeriod": "3m",
    });
    let velero = json!({"velero": {"args": {"backup-sync-period": 90_000_000_000_i64}}});
    let places = [
        json!({"nonAdmin": block, "configuration": velero}),
        json!({"features": {"nonAdmin": block}, "configuration": velero}),
        json!({"nonAdmin": block, "features": {"nonAdmin": block}, "configuration": velero}),
    ];
    for spec in places {
        let loaded = loaded("", &spec);
        assert_eq!(reported(&loaded), [""; 0], "{spec}");
        let policies = loaded.policies.unwrap();
        let policy = policies.base();
        assert_eq!(policy.backup.enforce.snapshot_volumes, Some(false));
        assert_eq!(policy.backup.enforce.ttl, Some(Duration::from("158h")));
        assert_eq!(policy.restore.enforce.restore_pvs, Some(true));
        let location = &policy.storage_locations.enforce;
        assert_eq!(location.provider.as_deref(), Some("aws"));
        assert_eq!(location.object_storage.as_ref().unwrap().bucket.as_deref(), Some("b"));
        assert!(policy.storage_locations.require_approval);
        assert_eq!(policy.garbage_collection.every(), Some(Wait::from_hours(12)));
        assert_eq!(policy.sync.every(), Some(Wait::from_mins(3)));
        assert_eq!(policy.velero_sync_period, Some(Duration::from("90s")));
    }
}

#[test]
fn contract_rules_are_told_with_the_path() {
    let table = [
        (
            json!({"garbageCollectionPeriod": "-1h"}),
            "spec.nonAdmin.garbageCollectionPeriod: \"-1h\" is not a duration",
        ),
        (json!({"backupSyncPeriod": "-1m"}), "spec.nonAdmin.backupSyncPeriod: \"-1m\" is not a duration"),
        (
            json!({"enforceBackupSpec": {"storageLocation": "x"}}),
            "spec.nonAdmin.enforceBackupSpec.storageLocation: cannot",
        ),
        (
            json!({"enforceBackupSpec": {"volumeSnapshotLocations": ["x"]}}),
            "spec.nonAdmin.enforceBackupSpec.volumeSnapshotLocations: cannot",
        ),
        (
            json!({"enforceBackupSpec": {"includedNamespaces": ["x"]}}),
            "spec.nonAdmin.enforceBackupSpec.includedNamespaces: cannot",
        ),
        (
            json!({"enforceBackupSpec": {"excludedNamespaces": []}}),
            "spec.nonAdmin.enforceBackupSpec.excludedNamespaces: cannot",
        ),
        (
            json!({"enforceBackupSpec": {"includeClusterResources": true}}),
            "spec.nonAdmin.enforceBackupSpec.includeClusterResources: cannot",
        ),
        (
            json!({"enforceBackupSpec": {"includedClusterScopedResources": ["x"]}}),
            "spec.nonAdmin.enforceBackupSpec.includedClusterScopedResources: cannot",
        ),
        (
            json!({"enforceBackupSpec": {"newerThanWeKnow": 1}}),
            "spec.nonAdmin.enforceBackupSpec.newerThanWeKnow: there is no such field",
        ),
        (
            json!({"enforceRestoreSpec": {"scheduleName": "x"}}),
            "spec.nonAdmin.enforceRestoreSpec.scheduleName: cannot",
        ),
        (
            json!({"enforceRestoreSpec": {"includedNamespaces": ["x"]}}),
            "spec.nonAdmin.enforceRestoreSpec.includedNamespaces: cannot",
        ),
        (
            json!({"enforceRestoreSpec": {"excludedNamespaces": ["x"]}}),
            "spec.nonAdmin.enforceRestoreSpec.excludedNamespaces: cannot",
        ),
        (
            json!({"enforceRestoreSpec": {"namespaceMapping": {}}}),
            "spec.nonAdmin.enforceRestoreSpec.namespaceMapping: cannot",
        ),
        (
            json!({"enforceBSLSpec": {"default": true}}),
            "spec.nonAdmin.enforceBSLSpec.default: there is no such field",
        ),
    ];
    for (block, expected) in table {
        let loaded = loaded("", &json!({"nonAdmin": block}));
        let reported = reported(&loaded);
        assert!(reported.len() == 1 && reported[0].starts_with(expected), "{block}: {reported:?}");
        assert!(loaded.is_outdated() && loaded.policies.is_none(), "{block}");
    }
}

#[test]
fn what_the_contract_lets_pass_passes() {
    let table = [
        json!({"enforceBackupSpec": {"includeClusterResources": false, "includedClusterScopedResources": []}}),
        json!({"enforceBackupSpec": {"ttl": "0s", "hooks": {}, "metadata": {}, "storageLocation": ""}}),
        json!({"enforceRestoreSpec": {"backupName": "x"}}),
        json!({"enforceBackupSpec": null, "enforceBSLSpec": {}}),
        json!({"garbageCollectionPeriod": "0", "backupSyncPeriod": "0s"}),
    ];
    for block in table {
        let loaded = loaded("", &json!({"nonAdmin": block}));
        assert_eq!(reported(&loaded), [""; 0], "{block}");
        assert!(loaded.policies.is_some());
    }
}

#[test]
fn the_order_of_periods_is_only_advice() {
    let table = [
        (
            json!({"garbageCollectionPeriod": "2m"}),
            "warning: spec.nonAdmin.garbageCollectionPeriod: should be longer than spec.nonAdmin.backupSyncPeriod, which is 2m",
        ),
        (
            json!({"backupSyncPeriod": "30s"}),
            "warning: spec.nonAdmin.backupSyncPeriod: should be longer than the time after which Velero looks into storage, 1m",
        ),
        (
            json!({"enforceBSLSpec": {"backupSyncPeriod": "2m"}}),
            "warning: spec.nonAdmin.enforceBSLSpec.backupSyncPeriod: should be shorter than spec.nonAdmin.backupSyncPeriod, which is 2m",
        ),
    ];
    for (block, expected) in table {
        let loaded = loaded("", &json!({"nonAdmin": block}));
        assert_eq!(reported(&loaded), [expected]);
        assert!(!loaded.is_outdated() && loaded.policies.is_some());
    }
    let slow = json!({"nonAdmin": {}, "configuration": {"velero": {"args": {"backup-sync-period": "10m"}}}});
    assert!(reported(&loaded("", &slow))[0].ends_with("Velero looks into storage, 10m"));
}

#[test]
fn two_blocks_of_one_application_must_agree() {
    let spec = |one, other| json!({"nonAdmin": one, "features": {"nonAdmin": other}});
    let split = loaded(
        "",
        &spec(json!({"enforceBackupSpec": {"ttl": "24h"}}), json!({"enforceBackupSpec": {"ttl": "48h"}})),
    );
    assert_eq!(
        reported(&split),
        [
            "spec.features.nonAdmin.enforceBackupSpec.ttl: requires \"24h\" in spec.nonAdmin and something else here; make them agree"
        ]
    );
    assert_eq!(split.policies, None);

    let together = loaded(
        "",
        &spec(
            json!({"enforceBackupSpec": {"ttl": "24h"}, "backupSyncPeriod": "5m"}),
            json!({"enforceBackupSpec": {"snapshotVolumes": true}, "requireApprovalForBSL": true, "backupSyncPeriod": "4m"}),
        ),
    );
    let policies = together.policies.unwrap();
    let policy = policies.base();
    assert_eq!(policy.backup.enforce.ttl, Some(Duration::from("24h")));
    assert_eq!(policy.backup.enforce.snapshot_volumes, Some(true));
    assert!(policy.storage_locations.require_approval);
    assert_eq!(policy.sync.every(), Some(Wait::from_mins(4)));

    let senseless = loaded(
        "",
        &spec(
            json!({"enforceBackupSpec": {"labelSelector": {}}}),
            json!({"enforceBackupSpec": {"orLabelSelectors": [{}]}}),
        ),
    );
    assert!(senseless.policies.is_none(), "each makes sense, both together do not");
}

#[test]
fn of_several_applications_the_first_that_speaks_counts() {
    let silent = named_application("a", &json!({"configuration": {}}));
    let one = named_application("b", &json!({"nonAdmin": {"requireApprovalForBSL": true}}));
    let other = named_application("c", &json!({"nonAdmin": {"backupSyncPeriod": "9m"}}));
    let applications = Reading::Found(vec![other, one, silent]);
    let loaded = load(None, &Readings { config_map: Reading::Absent, applications });
    assert_eq!(
        reported(&loaded),
        ["warning: spec.nonAdmin: of several that speak about tenants, \"b\" counts and \"c\" does not"]
    );
    let policies = loaded.policies.unwrap();
    assert!(policies.base().storage_locations.require_approval);
    assert_eq!(policies.base().sync.every(), Some(Wait::from_mins(2)));
}
