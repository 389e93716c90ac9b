//! If both sources set a field, both apply.

use std::time::Duration as Wait;

use api::Duration;
use serde_json::json;

use super::{labels, loaded, reported};

#[test]
fn what_either_requires_is_required() {
    let loaded = loaded(
        "backup: { enforce: { ttl: 24h }, maxPerNamespace: 3 }\nstorageLocations: { enforce: { provider: aws } }",
        &json!({"nonAdmin": {
            "enforceBackupSpec": {"snapshotVolumes": true, "ttl": "24h0m0s"},
            "enforceRestoreSpec": {"restorePVs": false},
            "enforceBSLSpec": {"accessMode": "ReadWrite"},
        }}),
    );
    assert_eq!(reported(&loaded), [""; 0]);
    let policies = loaded.policies.unwrap();
    let policy = policies.base();
    assert_eq!(policy.backup.enforce.ttl, Some(Duration::from("24h")));
    assert_eq!(policy.backup.enforce.snapshot_volumes, Some(true));
    assert_eq!(policy.backup.max_per_namespace, Some(3));
    assert_eq!(policy.restore.enforce.restore_pvs, Some(false));
    assert_eq!(policy.storage_locations.enforce.provider.as_deref(), Some("aws"));
    assert_eq!(policy.storage_locations.enforce.access_mode.as_deref(), Some("ReadWrite"));
}

#[test]
fn what_cannot_both_be_satisfied_is_no_policy() {
    let table = [
        (
            "backup:\n  enforce:\n    ttl: 48h\n",
            json!({"enforceBackupSpec": {"ttl": "24h"}}),
            "3:10: backup.enforce.ttl: the DataProtectionApplication requires \"24h\" in enforceBackupSpec.ttl, which is something else; make them agree",
        ),
        (
            "overrides:\n  - selector: { matchLabels: { nacre.dev/tier: gold } }\n    restore: { enforce: { restorePVs: false } }\n",
            json!({"enforceRestoreSpec": {"restorePVs": true}}),
            "3:39: overrides[0].restore.enforce.restorePVs: the DataProtectionApplication requires true in enforceRestoreSpec.restorePVs, which is something else; make them agree",
        ),
        (
            "storageLocations: { enforce: { provider: gcp } }",
            json!({"enforceBSLSpec": {"provider": "aws"}}),
            "1:42: storageLocations.enforce.provider: the DataProtectionApplication requires \"aws\" in enforceBSLSpec.provider, which is something else; make them agree",
        ),
        (
            "backup: { ttl: { max: 24h } }",
            json!({"enforceBackupSpec": {"ttl": "48h"}}),
            "1:9: backup.enforce.ttl: together with what the DataProtectionApplication says: is longer than backup.ttl.max, which is 24h: no backup could satisfy both",
        ),
    ];
    for (text, block, expected) in table {
        let loaded = loaded(text, &json!({"nonAdmin": block}));
        assert_eq!(reported(&loaded), [expected]);
        assert_eq!(loaded.policies, None);
    }
}

#[test]
fn either_may_ask_for_approval() {
    let approval = |text: &str, block| {
        let policies = loaded(text, &json!({"nonAdmin": block})).policies.unwrap();
        policies.base().storage_locations.require_approval
    };
    let asked = "storageLocations: { requireApproval: true }";
    let waived = "storageLocations: { requireApproval: false }";
    assert!(approval(asked, json!({"requireApprovalForBSL": false})));
    assert!(approval(waived, json!({"requireApprovalForBSL": true})));
    assert!(!approval(waived, json!({})));
}

#[test]
fn of_two_periods_the_more_careful_counts() {
    let periods = |text: &str, block| {
        let policies = loaded(text, &json!({"nonAdmin": block})).policies.unwrap();
        let seconds = |every: Option<Wait>| every.map_or(0, |every| every.as_secs());
        (seconds(policies.base().sync.every()), seconds(policies.base().garbage_collection.every()))
    };
    let text = "sync: { period: 10m }\ngarbageCollection: { period: 10h }";
    let (day, hours) = (86_400, 36_000);
    assert_eq!(periods("", json!({})), (120, day));
    assert_eq!(periods(text, json!({})), (600, hours));
    assert_eq!(
        periods("", json!({"backupSyncPeriod": "20m", "garbageCollectionPeriod": "20h"})),
        (1200, 72_000)
    );
    assert_eq!(
        periods(text, json!({"backupSyncPeriod": "20m", "garbageCollectionPeriod": "20h"})),
        (600, 72_000)
    );
    assert_eq!(
        periods(text, json!({"backupSyncPeriod": "5m", "garbageCollectionPeriod": "5h"})),
        (300, hours)
    );
    assert_eq!(periods(text, json!({"backupSyncPeriod": "0", "garbageCollectionPeriod": "0"})), (0, 0));
    let off = "sync: { period: 0 }\ngarbageCollection: { period: 0 }";
    assert_eq!(periods(off, json!({"backupSyncPeriod": "5m", "garbageCollectionPeriod": "5h"})), (0, 0));
}

#[test]
fn an_override_loosens_its_own_source_and_never_the_other() {
    let loaded = loaded(
        "backup: { enforce: { snapshotVolumes: true } }\n\
         overrides: [{ selector: { matchLabels: { nacre.dev/tier: gold } }, backup: { enforce: { snapshotVolumes: null, ttl: null } } }]",
        &json!({"nonAdmin": {"enforceBackupSpec": {"ttl": "24h"}}}),
    );
    let policies = loaded.policies.unwrap();
    let gold = policies.for_namespace("shop", &labels(&[("nacre.dev/tier", "gold")]));
    assert_eq!(gold.backup.enforce.snapshot_volumes, None);
    assert_eq!(gold.backup.enforce.ttl, Some(Duration::from("24h")));
    assert_eq!(policies.for_namespace("shop", &labels(&[])).backup.enforce.snapshot_volumes, Some(true));
}
