//! What an administrator requires, fills in and bounds.

use api::velero::BackupSpec;
use insta::assert_snapshot;
use planner::policy::{Bounds, StorageMode};
use serde_json::{Value, json};

use crate::world::World;
use crate::world::manifests::{nab, nab_with, nar_with};

fn spec(json: Value) -> BackupSpec {
    serde_json::from_value(json).unwrap()
}

fn accepted(world: &mut World) -> String {
    world.settle();
    world.condition("nab shop/daily", "Accepted")
}

#[test]
fn what_is_enforced_is_filled_in_or_agreed_with() {
    for asked in [json!({}), json!({"ttl": "48h0m0s", "snapshotVolumes": false, "excludedResources": []})] {
        let mut world = World::with(&["shop"]);
        world.policy(|policy| {
            policy.backup.enforce =
                spec(json!({"ttl": "48h", "snapshotVolumes": false, "excludedResources": []}));
        });
        world.apply(nab_with("shop/daily", asked.clone()));
        world.settle();
        let made = world.get("backup shop-daily-<1>")["spec"].clone();
        assert_eq!(
            (&made["snapshotVolumes"], made["ttl"].as_str().unwrap().get(..3)),
            (&json!(false), Some("48h"))
        );
        assert_eq!(world.get("nab shop/daily")["spec"]["backupSpec"], asked, "what the tenant wrote stays");
    }
}

#[test]
fn what_contradicts_is_refused_and_heals_with_the_policy() {
    let mut world = World::with(&["shop"]);
    world.policy(|policy| policy.backup.enforce = spec(json!({"snapshotVolumes": false})));
    world.apply(nab_with("shop/daily", json!({"snapshotVolumes": true})));
    assert_snapshot!(accepted(&mut world), @"False/InvalidBackupSpec: spec.backupSpec.snapshotVolumes: the administrator requires false; leave the field out or set it to that");
    world.policy(|policy| policy.backup.enforce = BackupSpec::default());
    assert_snapshot!(accepted(&mut world), @"True/BackupAccepted: the backup is allowed");
}

#[test]
fn an_explicit_empty_list_is_a_value_and_can_conflict() {
    let mut world = World::with(&["shop"]);
    world.policy(|policy| policy.backup.enforce = spec(json!({"excludedResources": ["secrets"]})));
    world.apply(nab_with("shop/daily", json!({"excludedResources": []})));
    assert_snapshot!(accepted(&mut world), @r#"False/InvalidBackupSpec: spec.backupSpec.excludedResources: the administrator requires ["secrets"]; leave the field out or set it to that"#);
}

#[test]
fn defaults_give_way_to_what_the_tenant_says_and_to_what_is_enforced() {
    let mut world = World::with(&["shop"]);
    world.policy(|policy| {
        policy.backup.defaults =
            spec(json!({"ttl": "72h", "snapshotVolumes": true, "snapshotMoveData": true}));
        policy.backup.enforce = spec(json!({"snapshotVolumes": false}));
    });
    world.apply(nab_with("shop/daily", json!({"snapshotMoveData": false})));
    world.settle();
    let made = world.get("backup shop-daily-<1>")["spec"].clone();
    assert_eq!(
        (&made["ttl"], &made["snapshotVolumes"], &made["snapshotMoveData"]),
        (&json!("72h"), &json!(false), &json!(false))
    );
}

#[test]
fn a_ttl_has_bounds_whoever_says_it() {
    let said = |bounds: (Option<&str>, Option<&str>), default: Option<&str>, asked: Value| {
        let mut world = World::with(&["shop"]);
        world.policy(|policy| {
            policy.backup.ttl.min = bounds.0.map(Into::into);
            policy.backup.ttl.max = bounds.1.map(Into::into);
            policy.backup.defaults.ttl = default.map(Into::into);
        });
        world.apply(nab_with("shop/daily", asked));
        accepted(&mut world)
    };
    let limits = (Some("1h"), Some("48h"));
    let cases = [
        said(limits, None, json!({"ttl": "30m"})),
        said(limits, None, json!({"ttl": "49h"})),
        said(limits, None, json!({"ttl": "48h"})),
        said(limits, Some("24h"), json!({})),
        said(limits, Some("72h"), json!({})),
        // Velero keeps what says nothing for 30 days.
        said(limits, None, json!({})),
        said((Some("1h"), Some("2160h")), None, json!({})),
        said((Some("1000h"), None), None, json!({})),
    ];
    assert_snapshot!(cases.join("\n"), @r"
    False/InvalidBackupSpec: spec.backupSpec.ttl: the administrator requires backups to be kept at least 1h; ask for that or more
    False/InvalidBackupSpec: spec.backupSpec.ttl: the administrator allows backups to be kept at most 48h; ask for that or less
    True/BackupAccepted: the backup is allowed
    True/BackupAccepted: the backup is allowed
    False/InvalidBackupSpec: spec.backupSpec.ttl: the administrator allows backups to be kept at most 48h; ask for that or less
    False/InvalidBackupSpec: spec.backupSpec.ttl: the administrator allows backups to be kept at most 48h; ask for that or less
    True/BackupAccepted: the backup is allowed
    False/InvalidBackupSpec: spec.backupSpec.ttl: the administrator requires backups to be kept at least 1000h; ask for that or more
    ");
}

/// B2: hooks that run commands in pods
/// planted: a policy that allows hooks
#[test]
fn b2_hooks_can_be_forbidden() {
    let mut world = World::with(&["shop"]);
    world.policy(|policy| policy.backup.forbid_hooks = true);
    world.apply(nab_with("shop/daily", json!({"hooks": {"resources": [{"name": "flush"}]}})));
    assert_snapshot!(accepted(&mut world), @"False/InvalidBackupSpec: spec.backupSpec.hooks: the administrator does not allow hooks; leave the field out");
    // The planted weakness: where the policy allows hooks, the same one reaches Velero.
    let mut lax = World::with(&["shop"]);
    lax.apply(nab_with("shop/daily", json!({"hooks": {"resources": [{"name": "flush"}]}})));
    lax.settle();
    assert_eq!(lax.get("backup shop-daily-<1>")["spec"]["hooks"]["resources"][0]["name"], "flush");
    world.apply(nab_with("shop/daily", json!({"hooks": {"resources": []}})));
    assert_snapshot!(accepted(&mut world), @"True/BackupAccepted: the backup is allowed");

    let velero = world.velero_name("nab shop/daily");
    world.velero_starts(&velero);
    world.velero_completes(&velero);
    world.policy(|policy| policy.restore.forbid_hooks = true);
    let with =
        |hooks: Value| nar_with("shop/back", json!({"backupName": "daily", "hooks": {"resources": hooks}}));
    world.apply(with(json!([{"name": "warm-up"}])));
    world.settle();
    assert_snapshot!(world.condition("nar shop/back", "Accepted"), @"False/InvalidRestoreSpec: spec.restoreSpec.hooks: the administrator does not allow hooks; leave the field out");
    world.apply(with(json!([])));
    world.settle();
    assert_snapshot!(world.condition("nar shop/back", "Accepted"), @"True/RestoreAccepted: the restore is allowed");
}

#[test]
fn a_bound_itself_may_be_asked_for() {
    let mut world = World::with(&["shop"]);
    world.policy(|policy| policy.backup.ttl = Bounds { min: Some("24h".into()), max: Some("48h".into()) });
    for ttl in ["24h", "48h"] {
        world.apply(nab_with("shop/daily", json!({"ttl": ttl})));
        assert_eq!(accepted(&mut world), "True/BackupAccepted: the backup is allowed", "{ttl}");
        world.delete("nab shop/daily");
        world.settle();
    }
}

/// Velero would only say so once the backup is queued.
#[test]
fn what_is_filled_in_must_fit_what_the_tenant_says() {
    let refused = |enforced: Value, asked: Value| {
        let mut world = World::with(&["shop"]);
        world.policy(|policy| policy.backup.enforce = spec(enforced));
        world.apply(nab_with("shop/daily", asked));
        accepted(&mut world)
    };
    let selector = json!({"matchLabels": {"a": "b"}});
    let cases = [
        refused(
            json!({"excludedResources": ["secrets"]}),
            json!({"includedNamespaceScopedResources": ["pods"]}),
        ),
        refused(json!({"labelSelector": selector}), json!({"orLabelSelectors": [selector]})),
        refused(json!({"orLabelSelectors": [selector]}), json!({"labelSelector": selector})),
        refused(
            json!({"excludedNamespaceScopedResources": ["secrets"]}),
            json!({"includedResources": ["pods"]}),
        ),
    ];
    assert_snapshot!(cases.join("\n"), @r"
    False/InvalidBackupSpec: spec.backupSpec.includedNamespaceScopedResources: cannot be used together with excludedResources, which the administrator sets; use includedResources and excludedResources
    False/InvalidBackupSpec: spec.backupSpec.orLabelSelectors: cannot be used together with labelSelector, which the administrator sets; leave the field out
    False/InvalidBackupSpec: spec.backupSpec.labelSelector: cannot be used together with orLabelSelectors, which the administrator sets; leave the field out
    False/InvalidBackupSpec: spec.backupSpec.includedResources: cannot be used together with excludedNamespaceScopedResources, which the administrator sets; use the filters for namespace-scoped and cluster-scoped resources
    ");
}

#[test]
fn a_policy_made_later_changes_nothing_about_what_velero_has() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    world.settle();
    world.trace();
    world.policy(|policy| {
        policy.backup.enforce = spec(json!({"ttl": "48h"}));
        policy.backup.max_per_namespace = Some(0);
        policy.namespaces.excluded.push("shop".to_owned());
    });
    assert_eq!(world.trace(), "");
    world.velero_starts("shop-daily-<1>");
    world.velero_completes("shop-daily-<1>");
    world.settle();
    assert_eq!(world.get("nab shop/daily")["status"]["phase"], "Created");
}

#[test]
fn while_nobody_can_tell_what_is_allowed_new_requests_wait_and_old_ones_are_mirrored() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/old"));
    world.settle();
    world.policy_cannot_be_read();
    world.velero_starts("shop-old-<1>");
    world.apply(nab("shop/daily"));
    world.trace();
    assert_eq!(world.get("nab shop/old")["status"]["veleroBackup"]["status"]["phase"], "InProgress");
    assert_snapshot!(accepted(&mut world), @"False/PolicyUnavailable: what the administrators allow cannot be read at the moment; the backup waits, and goes on by itself when that is mended");
    world.policy(|_| ());
    assert_snapshot!(accepted(&mut world), @"True/BackupAccepted: the backup is allowed");
}

#[test]
fn whose_storage_is_used_can_be_required() {
    let said = |mode: StorageMode, asked: Value| {
        let mut world = World::with(&["shop"]);
        world.tenant_storage("shop/bucket");
        world.policy(|policy| policy.storage_locations.mode = mode);
        world.apply(nab_with("shop/daily", asked));
        accepted(&mut world)
    };
    let own = json!({"storageLocation": "bucket"});
    let cases = [
        said(StorageMode::Own, json!({})),
        said(StorageMode::Own, own.clone()),
        said(StorageMode::Platform, own.clone()),
        said(StorageMode::Platform, json!({})),
        said(StorageMode::Any, own),
    ];
    assert_snapshot!(cases.join("\n"), @r"
    False/InvalidBackupSpec: spec.backupSpec.storageLocation: the administrator requires backups to go to your own storage; name a NonAdminBackupStorageLocation of this namespace
    True/BackupAccepted: the backup is allowed
    False/InvalidBackupSpec: spec.backupSpec.storageLocation: the administrator requires backups to go to the cluster's storage; leave the field out
    True/BackupAccepted: the backup is allowed
    True/BackupAccepted: the backup is allowed
    ");
}
