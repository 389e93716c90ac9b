//! Restores from storage that a tenant can write to: nothing in it is trusted.

use std::time::Duration;

use api::{Kind, labels};
use insta::assert_snapshot;
use planner::policy::TenantPods;
use planner::restore::MODIFIERS;
use serde_json::json;

use crate::world::World;
use crate::world::manifests::{imported, nab, nab_with, nar, nar_with, object, origin};

/// A world with one completed backup in the tenant's own storage.
fn completed(spec: serde_json::Value) -> World {
    let mut world = World::with(&["shop"]);
    world.tenant_storage("shop/bucket");
    let mut spec = spec;
    spec["storageLocation"] = json!("bucket");
    world.apply(nab_with("shop/daily", spec));
    world.settle();
    world.velero_starts("shop-daily-<1>");
    world.velero_completes("shop-daily-<1>");
    world.trace();
    world
}

#[test]
fn the_modifier_comes_first_and_only_the_list_comes_back() {
    let mut world = completed(json!({}));
    world.apply(nar("shop/again", "daily"));
    assert_snapshot!(world.trace(), @r"
    create ConfigMap velero/nacre-restore-from-tenant-storage
    hold NonAdminRestore shop/again
    create Restore velero/shop-again-t-<r1>
    status NonAdminRestore shop/again Created Accepted=True/RestoreAccepted Queued=True/RestoreScheduled queue=1
    event Normal RestoreScheduled: Velero was given the restore as shop-again-t-<r1>
    ");
    let spec = world.get("restore shop-again-t-<r1>")["spec"].clone();
    assert_eq!(spec["includeClusterResources"], false);
    assert_eq!(spec["restorePVs"], false);
    assert_eq!(spec["resourceModifier"]["name"], MODIFIERS[0]);
    assert_eq!(spec["includedResources"].as_array().map(Vec::len), Some(18));
    assert!(!spec["includedResources"].to_string().contains("rbac"));
    let fenced = spec["excludedResources"].to_string();
    assert!(fenced.contains("backups.velero.io") && !fenced.contains("secrets"), "{fenced}");
    let marks = world.get(&format!("cm {}", MODIFIERS[0]))["metadata"]["labels"].clone();
    assert_eq!(marks[labels::MANAGED_BY], labels::MANAGED_BY_VALUE);

    // The second time the modifier is there already.
    world.apply(nar("shop/twice", "daily"));
    assert!(!world.trace().contains("ConfigMap"));
}

#[test]
fn a_modifier_that_somebody_changed_is_mended_before_it_is_used() {
    let mut world = completed(json!({}));
    world.apply(nar("shop/again", "daily"));
    world.settle();
    let genuine = world.get(&format!("cm {}", MODIFIERS[0]))["data"].clone();
    world.edit(
        &format!("cm {}", MODIFIERS[0]),
        json!({"data": {"modifiers.yaml": "version: v1", "more": "x"}}),
    );
    world.trace();
    world.apply(nar("shop/twice", "daily"));
    let trace = world.trace();
    let (mended, made) = (trace.find("ConfigMap"), trace.find("create Restore"));
    assert!(mended.is_some() && mended < made, "{trace}");
    assert_eq!(world.get(&format!("cm {}", MODIFIERS[0]))["data"], genuine);
}

#[test]
fn data_that_was_moved_into_the_storage_comes_back() {
    let mut world = completed(json!({"snapshotMoveData": true}));
    world.apply(nar_with("shop/again", json!({"backupName": "daily", "restorePVs": true})));
    world.settle();
    assert_eq!(world.get("restore shop-again-t-<r1>")["spec"]["restorePVs"], true);
}

/// X6: own bucket: files with which Velero exits while it finishes a restore, at each start again, so that nobody's backups
/// and restores go on
#[test]
fn x6_a_restore_that_velero_does_not_finish_is_ended() {
    let mut world = completed(json!({}));
    let (first, second) = ("shop-again-t-<r1>", "shop-twice-t-<r2>");
    for (request, velero) in [("shop/again", first), ("shop/twice", second)] {
        world.apply(nar(request, "daily"));
        world.settle();
        world.velero_starts(velero);
        world.velero_says(velero, json!({"phase": "Finalizing"}));
        world.pass(Duration::from_mins(10));
    }
    world.velero_says(first, json!({"phase": "FinalizingPartiallyFailed"}));
    assert_eq!(world.end_unfinished(), None, "Velero itself may wait for so long");
    // Whoever asked is gone, and took the finalizer away. That makes no difference.
    world.edit("nar shop/again", json!({"metadata": {"finalizers": null}}));
    world.delete("nar shop/again");
    world.pass(Duration::from_mins(10));
    assert_eq!(world.end_unfinished().as_deref(), Some(first));
    let status = world.get(&format!("restore {first}"))["status"].clone();
    assert_eq!(status["phase"], "Failed");
    assert!(status["completionTimestamp"].is_string() && status["failureReason"].is_string(), "{status}");

    // The other one may only have waited for that.
    world.pass(Duration::from_mins(25));
    assert_eq!(world.end_unfinished(), None);
    world.pass(Duration::from_mins(5));
    assert_eq!(world.end_unfinished().as_deref(), Some(second));
    assert_eq!(world.end_unfinished(), None, "once");
    assert_snapshot!(world.get("nar shop/twice")["status"]["veleroRestore"]["status"]["failureReason"], @r#""ended by nacre: Velero did not finish it within 30m, which the policy allows (restore.fromTenantStorage.finalizeTimeout); what was restored before is there""#);
}

/// X6
/// planted: a policy without `finalizeTimeout`
#[test]
fn x6_a_restore_is_left_to_velero_from_the_administrators_storage_and_where_the_policy_sets_no_limit() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    world.settle();
    world.velero_starts("shop-daily-<1>");
    world.velero_completes("shop-daily-<1>");
    world.apply(nar("shop/again", "daily"));
    world.settle();
    world.velero_starts("shop-again-p-<r1>");
    world.velero_says("shop-again-p-<r1>", json!({"phase": "Finalizing"}));
    world.pass(Duration::from_hours(9));
    assert_eq!(world.end_unfinished(), None);

    let mut world = completed(json!({}));
    world.policy(|policy| policy.restore.from_tenant_storage.finalize_timeout = api::Duration::from("0"));
    world.apply(nar("shop/again", "daily"));
    world.settle();
    world.velero_starts("shop-again-t-<r1>");
    world.velero_says("shop-again-t-<r1>", json!({"phase": "WaitingForPluginOperations"}));
    world.pass(Duration::from_hours(9));
    world.velero_says("shop-again-t-<r1>", json!({"phase": "Finalizing"}));
    world.pass(Duration::from_hours(9));
    assert_eq!(world.end_unfinished(), None);
    world.policy(|policy| policy.restore.from_tenant_storage.finalize_timeout = api::Duration::from("10h"));
    assert_eq!(world.end_unfinished(), None, "what is still being moved does not count");
}

/// E2: a restore of Roles or pods from the own storage
#[test]
fn e2_what_cannot_come_back_is_refused_and_told_which() {
    for (asked, says) in [
        (
            json!({"includedResources": ["secrets", "roles"]}),
            "\"roles\" does not come back from your own storage",
        ),
        (json!({"includedResources": ["pods"]}), "\"pods\" does not come back"),
        (json!({"includedResources": ["sec*"]}), "\"sec*\" does not come back"),
        (json!({"excludedResources": ["*.apps"]}), "is a pattern"),
        (json!({"includedResources": ["cm"], "excludedResources": ["configmaps"]}), "nothing is left"),
        (json!({"restorePVs": true}), "snapshotMoveData: true"),
        (json!({"resourceModifier": {"kind": "ConfigMap", "name": "any"}}), "leave the field out"),
    ] {
        let mut world = completed(json!({}));
        let mut spec = asked;
        spec["backupName"] = json!("daily");
        world.apply(nar_with("shop/again", spec));
        world.settle();
        let reported = world.condition("nar shop/again", "Accepted");
        assert!(reported.contains("InvalidRestoreSpec") && reported.contains(says), "{reported}");
        assert!(world.names(Kind::Restore).is_empty());
    }
}

#[test]
fn volumes_saved_from_inside_pods_need_the_policys_word() {
    let mut world = completed(json!({}));
    let volume = json!({"metadata": {"labels": {labels::VELERO_BACKUP_NAME: world.velero_name("nab shop/daily")}},
        "spec": {}, "status": {"phase": "Completed"}});
    world.apply(object(Kind::PodVolumeBackup, "velero/volume", volume));
    world.settle();
    world.apply(nar("shop/again", "daily"));
    world.settle();
    let reported = world.condition("nar shop/again", "Accepted");
    assert!(reported.contains("1 volumes that were saved from inside pods"), "{reported}");

    // Allowed, it goes on by itself, with the pods and another modifier.
    world.policy(|policy| policy.restore.from_tenant_storage.pods = TenantPods::Baseline);
    world.settle();
    comes_back_with_pods(&world);
}

fn comes_back_with_pods(world: &World) {
    let spec = world.get("restore shop-again-t-<r1>")["spec"].clone();
    assert!(spec["includedResources"].as_array().unwrap().contains(&json!("pods")));
    assert_eq!(spec["resourceModifier"]["name"], MODIFIERS[1]);
}

#[test]
fn a_backup_into_own_storage_warns_of_volumes_until_the_fence_lets_pods_come_back() {
    let mut world = completed(json!({"defaultVolumesToFsBackup": true}));
    let accepted = world.condition("nab shop/daily", "Accepted");
    assert!(accepted.starts_with("True"), "{accepted}");
    assert!(accepted.contains("saved from inside pods could NOT be restored"), "{accepted}");

    world.policy(|policy| policy.restore.from_tenant_storage.pods_are_fenced = true);
    world.apply(nar("shop/again", "daily"));
    world.settle();
    comes_back_with_pods(&world);
    world
        .apply(nab_with("shop/next", json!({"storageLocation": "bucket", "defaultVolumesToFsBackup": true})));
    world.settle();
    let accepted = world.condition("nab shop/next", "Accepted");
    assert!(accepted.ends_with("the backup is allowed"), "{accepted}");
}

/// H8: own bucket: a planted PodVolumeBackup with the name of another tenant's backup
/// A4: own bucket: a planted PodVolumeBackup with the label of another tenant's backup
#[test]
fn a4_h8_a_volume_with_the_name_of_somebody_elses_backup_says_nothing_about_it() {
    let forged = |backup_uid: &str| {
        let mut world = completed(json!({}));
        // Velero gives what it imports the uid of the backup it was stored with, whatever name is written in it.
        let of = json!({labels::VELERO_BACKUP_NAME: world.velero_name("nab shop/daily"), labels::VELERO_BACKUP_UID: backup_uid});
        let volume = json!({"metadata": {"labels": of}, "spec": {}, "status": {"phase": "Completed"}});
        world.apply(object(Kind::PodVolumeBackup, "velero/volume", volume));
        world.settle();
        world.apply(nar("shop/again", "daily"));
        world.settle();
        world.condition("nar shop/again", "Accepted")
    };
    assert!(forged("another").starts_with("True/"), "the victim's restore is not refused");
    let own =
        completed(json!({})).get("backup shop-daily-<1>")["metadata"]["uid"].as_str().unwrap().to_owned();
    assert!(forged(&own).contains("1 volumes that were saved from inside pods"));
}

#[test]
fn the_same_backup_in_the_clusters_storage_brings_all_but_the_guard_rails() {
    let mut world = World::with(&["shop"]);
    let mut found = imported("found", "default", origin("shop", "daily"));
    found["metadata"]["labels"][labels::NAB_NACUUID] = json!("found");
    world.apply(found);
    let mut request = nab_with("shop/daily", json!({}));
    request["metadata"]["labels"] = json!({labels::SYNCED_FROM: "found"});
    world.apply(request);
    world.settle();
    world.apply(nar_with(
        "shop/again",
        json!({"backupName": "daily", "includedResources": ["ResourceQuotas"]}),
    ));
    world.apply(nar("shop/all", "daily"));
    world.settle();
    let reported = world.condition("nar shop/again", "Accepted");
    assert!(reported.contains("\"ResourceQuotas\" is always left out"), "{reported}");
    let spec = world.get("restore shop-all-p-<r2>")["spec"].clone();
    assert_eq!((&spec["includedResources"], &spec["restorePVs"]), (&json!(null), &json!(null)));
    assert!(spec["excludedResources"].as_array().unwrap().contains(&json!("resourcequotas")));
    assert_eq!(spec["resourceModifier"], json!(null));
}
