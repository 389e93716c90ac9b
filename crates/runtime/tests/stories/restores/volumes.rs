//! Whether the data of every claim came back.

use std::time::Duration;

use api::Kind;
use insta::assert_snapshot;
use serde_json::json;

use crate::world::World;
use crate::world::manifests::{nab, nar, nar_with};

const RESTORE: &str = "shop-again-p-<r1>";
const DATA: &str = "DataRestored";

/// A world with a backup that holds the data of the claim `data`, which exists, and a restore that Velero has started a
/// minute later.
fn restoring(spec: serde_json::Value) -> World {
    let mut world = World::with(&["shop", "office"]);
    world.node_agent_runs();
    world.claim("shop/data", None);
    world.apply(nab("shop/daily"));
    world.settle();
    world.velero_starts("shop-daily-<1>");
    world.velero_saves("shop-daily-<1>", "shop", "Completed");
    world.velero_completes("shop-daily-<1>");
    world.pass(Duration::from_mins(1));
    let mut spec = spec;
    spec["backupName"] = json!("daily");
    world.apply(nar_with("shop/again", spec));
    world.settle();
    world.velero_starts(RESTORE);
    world.settle();
    world.trace();
    world
}

fn claims(world: &World) -> serde_json::Value {
    world.get("nar shop/again")["status"]["claims"].clone()
}

#[test]
fn data_overwritten_in_place_is_not_restored_and_that_is_told() {
    let mut world = restoring(json!({}));
    assert_snapshot!(world.condition("nar shop/again", DATA), @"Unknown/StillRunning: Velero has not ended the restore yet");
    world.velero_completes(RESTORE);
    world.pass(Duration::from_secs(10));
    // "complete" is not said, and there is no write more than without volumes.
    assert_snapshot!(world.trace(), @r#"
    status NonAdminRestore shop/again Created Accepted=True/RestoreAccepted Queued=True/RestoreScheduled DataRestored=False/ClaimsKept queue=0 velero=Completed
    event Warning DataNotRestored: volume data of claim "data" was NOT restored: the claim exists. To replace it: kubectl nacre restore create --from-backup daily --replace
    "#);
    assert_snapshot!(world.condition("nar shop/again", DATA), @r#"False/ClaimsKept: volume data of claim "data" was NOT restored: the claim exists. To replace it: kubectl nacre restore create --from-backup daily --replace"#);
    assert_eq!(claims(&world), json!([{"name": "data", "state": "Kept", "message": "the claim exists"}]));
}

#[test]
fn how_far_the_data_is_costs_a_write_for_a_percent_and_none_for_less() {
    let mut world = restoring(json!({}));
    world.delete("PersistentVolumeClaim shop/data");
    world.pass(Duration::from_secs(5));
    let claim = world.claim("shop/data", Some(RESTORE));
    let pod = world.restored_pod("shop/db", RESTORE);
    world.velero_writes(RESTORE, "shop", &pod, &claim);
    let total = 1 << 30;
    let mut moves = |done: i64| {
        let progress = json!({"bytesDone": done, "totalBytes": total});
        world.volume_is(RESTORE, json!({"phase": "InProgress", "progress": progress}));
        world.settle();
        let writes = world.trace().matches("status ").count();
        (writes, world.condition("nar shop/again", DATA), claims(&world))
    };
    let (writes, said, claims) = moves(total / 2);
    assert_eq!(writes, 1);
    assert_snapshot!(said, @"Unknown/StillRunning: Velero has not ended the restore yet: 50 % of 1 GiB of volume data is written");
    assert_eq!(
        claims,
        json!([{"name": "data", "state": "Waiting", "bytes": total / 2, "totalBytes": total}])
    );
    assert_eq!(moves(total / 2 + 1).0, 0, "less than a percent");
    assert_eq!(moves(total / 100 * 52).0, 1);
}

#[test]
fn a_list_of_claims_is_bounded() {
    let mut world = restoring(json!({}));
    // The restore has made them, and the backup holds no data of them.
    for number in 0..53 {
        world.claim(&format!("shop/claim-{number:02}"), Some(RESTORE));
    }
    world.velero_completes(RESTORE);
    world.pass(Duration::from_secs(10));
    let status = world.get("nar shop/again")["status"].clone();
    assert_eq!(status["claims"].as_array().unwrap().len(), 50);
    assert_eq!(status["claimsNotListed"], 4, "53 and the one that was there");
}

#[test]
fn what_came_back_is_reported_in_the_same_write_as_the_end() {
    let mut world = restoring(json!({}));
    world.delete("PersistentVolumeClaim shop/data");
    world.pass(Duration::from_secs(5));
    let claim = world.claim("shop/data", Some(RESTORE));
    let pod = world.restored_pod("shop/db", RESTORE);
    world.velero_writes(RESTORE, "shop", &pod, &claim);
    world.volume_is(RESTORE, json!({"phase": "Completed", "progress": {"bytesDone": 8, "totalBytes": 8}}));
    world.settle();
    world.trace();
    world.velero_completes(RESTORE);
    assert_snapshot!(world.trace(), @r#"
    status NonAdminRestore shop/again Created Accepted=True/RestoreAccepted Queued=True/RestoreScheduled DataRestored=True/AllVolumesRestored queue=0 velero=Completed fileSystemPodVolumeRestores={"completed":1,"total":1}
    event Normal RestoreCompleted: the restore is complete
    "#);
    assert_eq!(claims(&world), json!([{"name": "data", "state": "Restored", "bytes": 8, "totalBytes": 8}]));
}

#[test]
fn what_was_decided_does_not_change() {
    let mut world = restoring(json!({}));
    world.velero_completes(RESTORE);
    world.pass(Duration::from_secs(10));
    let decided = world.get("nar shop/again");
    world.delete("PersistentVolumeClaim shop/data");
    world.delete("nab shop/daily");
    world.restart();
    world.pass(Duration::from_hours(1));
    assert_eq!(world.get("nar shop/again"), decided);
}

#[test]
fn a_crd_without_claims_costs_no_writes() {
    let mut world = restoring(json!({}));
    // Another API server would have dropped the list at once.
    world.stop_recording();
    world.velero_completes(RESTORE);
    world.pass(Duration::from_secs(10));
    let mut status = world.get("nar shop/again")["status"].clone();
    status["claims"] = json!(null);
    world.forge_status("nar shop/again", status);
    let writes = world.writes();
    world.pass(Duration::from_hours(1));
    world.restart();
    world.settle();
    assert_eq!(world.writes(), writes);
}

#[test]
fn a_restore_that_ended_before_nacre_knew_is_left_alone() {
    let mut world = restoring(json!({}));
    world.stop_recording();
    world.velero_completes(RESTORE);
    world.pass(Duration::from_secs(10));
    let mut status = world.get("nar shop/again")["status"].clone();
    status["claims"] = json!(null);
    status["conditions"].as_array_mut().unwrap().retain(|condition| condition["type"] != DATA);
    world.forge_status("nar shop/again", status);
    world.restart();
    let before = world.get("nar shop/again");
    world.pass(Duration::from_hours(1));
    assert_eq!(world.get("nar shop/again"), before);
    assert_eq!(world.condition("nar shop/again", DATA), "/: ");
}

#[test]
fn a_restore_without_claims_says_nothing_about_them() {
    let mut world = restoring(json!({"includedResources": ["configmaps"]}));
    world.velero_completes(RESTORE);
    world.settle();
    assert_snapshot!(world.condition("nar shop/again", DATA), @"True/NoVolumes: there is no volume data to restore");
}

/// Without them, claims would wait for ever for the volumes they had.
#[test]
fn claims_come_back_with_their_volumes_whatever_is_listed() {
    let listed = |asked: serde_json::Value| {
        let world = restoring(json!({ "includedResources": asked }));
        world.get(&format!("restore {RESTORE}"))["spec"]["includedResources"].clone()
    };
    assert_eq!(listed(json!(["pods", "PVC"])), json!(["pods", "PVC", "persistentvolumes"]));
    for asked in [json!(["pods"]), json!(["pvc", "pv"]), json!(["*"])] {
        assert_eq!(listed(asked.clone()), asked);
    }
}

#[test]
fn volumes_of_another_restore_of_this_name_do_not_count() {
    let mut world = restoring(json!({}));
    let claim = world.get("PersistentVolumeClaim shop/data")["metadata"]["uid"].as_str().unwrap().to_owned();
    world.velero_writes(RESTORE, "shop", "forged", &claim);
    world.edit(
        &format!("PodVolumeRestore {RESTORE}-v"),
        json!({"metadata": {"labels": {"velero.io/restore-uid": "forged"}}, "status": {"phase": "Completed"}}),
    );
    world.velero_completes(RESTORE);
    world.pass(Duration::from_secs(10));
    assert!(world.condition("nar shop/again", DATA).starts_with("False/ClaimsKept"));
}

#[test]
fn a_queued_restore_says_nothing_yet() {
    let mut world = World::with(&["shop"]).backed_up();
    world.apply(nar("shop/again", "daily"));
    world.settle();
    assert_eq!(world.condition("nar shop/again", DATA), "/: ");
    assert_eq!(world.names(Kind::Restore).len(), 1);
}
