//! The condition `DataProtected`: whether the data of every claim is in a backup.

use std::time::Duration;

use api::{Kind, NonAdminBackup};
use planner::last_good::{Storage, why_not_good};
use serde_json::{Value, json};

use crate::world::World;
use crate::world::manifests::{claim, host_path, imported, nab_with, node_agent, origin};

const BACKUP: &str = "shop-daily-<1>";
const REQUEST: &str = "nab shop/daily";

fn protected(world: &World) -> String {
    world.condition(REQUEST, "DataProtected")
}

/// Velero has this backup, with the claims `data` and `logs` in the namespace.
fn running(spec: Value) -> World {
    let mut world = World::with(&["shop"]);
    world.apply(node_agent(1));
    world.apply(claim("shop/data"));
    world.apply(claim("shop/logs"));
    world.apply(nab_with("shop/daily", spec));
    world.settle();
    world.velero_starts(BACKUP);
    world.settle();
    world
}

fn save(world: &mut World, claim: &str, phase: &str) {
    let status =
        json!({"phase": phase, "message": "disk on fire", "progress": {"bytesDone": 8, "totalBytes": 8}});
    world.volume_saved(Kind::PodVolumeBackup, BACKUP, claim, status);
    world.settle();
}

fn end(world: &mut World, phase: &str, more: Value) {
    world.velero_says(BACKUP, more);
    world.velero_ends(BACKUP, phase, json!({"progress": {"itemsBackedUp": 3, "totalItems": 3}}));
    world.settle();
}

fn claims(world: &World) -> Value {
    let claims = world.get(REQUEST)["status"]["claims"].clone();
    let of = |claim: &Value| json!([claim["name"], claim["state"], claim["bytes"]]);
    json!(claims.as_array().into_iter().flatten().map(of).collect::<Vec<_>>())
}

fn why(world: &World) -> String {
    let state = world.state();
    let backup = state.get::<NonAdminBackup>("shop", "daily").unwrap();
    let why = why_not_good(&backup, &Storage::Unknown, state.now());
    why.map(|why| why.reason().to_owned()).unwrap_or_default()
}

#[test]
fn a_backup_with_all_its_claims_is_protected_and_good() {
    let mut world = running(json!({}));
    assert_eq!(protected(&world), "Unknown/StillRunning: the backup is not over yet");
    save(&mut world, "shop/data", "Completed");
    save(&mut world, "shop/logs", "Completed");
    world.trace();
    end(&mut world, "Completed", json!({}));
    assert_eq!(
        protected(&world),
        r#"True/AllClaimsSaved: volume data of claims "data" and "logs" is in the backup"#
    );
    assert_eq!(claims(&world), json!([["data", "Saved", 8], ["logs", "Saved", 8]]));
    assert_eq!(why(&world), "");
}

#[test]
fn how_far_the_volumes_are_is_shown_while_velero_saves_them() {
    let mut world = running(json!({}));
    save(&mut world, "shop/logs", "Completed");
    let half = json!({"phase": "InProgress", "progress": {"bytesDone": 4, "totalBytes": 8}});
    world.volume_saved(Kind::PodVolumeBackup, BACKUP, "shop/data", half);
    world.settle();
    let said = "Unknown/StillRunning: the backup is not over yet: 75 % of 16 B of volume data is saved";
    assert_eq!(protected(&world), said);
    assert_eq!(claims(&world), json!([["data", "Waiting", 4], ["logs", "Saved", 8]]));
}

/// Together with Velero's phase, in one write; and nothing is written when claims come and go later.
#[test]
fn it_is_decided_once_and_in_the_write_that_shows_the_phase() {
    let mut world = running(json!({}));
    save(&mut world, "shop/data", "Completed");
    world.trace();
    world.velero_completes(BACKUP);
    let trace = world.trace();
    assert_eq!(trace.matches("status ").count(), 1, "{trace}");
    assert!(
        trace.contains("event Warning ClaimsNotSaved: volume data of claim \"logs\" is NOT in this backup")
    );
    let before = world.get(REQUEST);
    world.apply(claim("shop/late"));
    world.delete("PersistentVolumeClaim shop/logs");
    world.velero_says(BACKUP, json!({"expiration": "2026-05-01T00:00:00Z"}));
    world.pass(Duration::from_mins(10));
    assert_eq!((world.trace(), world.get(REQUEST)), (String::new(), before));
}

#[test]
fn a_claim_that_is_not_saved_is_named_with_what_to_do() {
    let mut world = running(json!({}));
    save(&mut world, "shop/data", "Completed");
    end(&mut world, "Completed", json!({}));
    insta::assert_snapshot!(protected(&world), @r#"False/ClaimsNotSaved: volume data of claim "logs" is NOT in this backup: no running pod mounts it, or a pod's annotation backup.velero.io/backup-volumes-excludes leaves it out. What to do: create a new backup while a pod that mounts it is running"#);
    assert_eq!(claims(&world), json!([["data", "Saved", 8], ["logs", "NotSaved", null]]));
    assert_eq!(why(&world), "NotProtected");
}

#[test]
fn each_cause_has_its_words() {
    let cause = |setup: fn(&mut World), spec: Value| {
        let mut world = World::with(&["shop"]);
        world.apply(claim("shop/data"));
        setup(&mut world);
        world.apply(nab_with("shop/daily", spec));
        world.settle();
        world.velero_starts(BACKUP);
        end(&mut world, "Completed", json!({}));
        protected(&world)
    };
    let with_agent: fn(&mut World) = |world| world.apply(node_agent(1));
    let block: fn(&mut World) = |world| {
        world.apply(node_agent(1));
        world.edit("PersistentVolumeClaim shop/data", json!({"spec": {"volumeMode": "Block"}}));
    };
    let nothing: fn(&mut World) = |_| {};
    let velero: fn(&mut World) = |world| {
        world.apply(node_agent(1));
        world.policy(|policy| policy.backup.volumes = planner::policy::Volumes::Velero);
    };
    let told = [
        cause(nothing, json!({})),
        cause(with_agent, json!({})),
        cause(velero, json!({})),
        cause(with_agent, json!({"snapshotVolumes": true})),
        cause(with_agent, json!({"includedResources": ["persistentvolumeclaims"]})),
        cause(block, json!({})),
    ];
    insta::assert_snapshot!(told.join("\n"), @r#"
    False/ClaimsNotSaved: volume data of claim "data" is NOT in this backup: nothing saves it, since Velero's node agent does not run. What to do: ask the administrators to run the node agent, then create a new backup
    False/ClaimsNotSaved: volume data of claim "data" is NOT in this backup: no running pod mounts it, or a pod's annotation backup.velero.io/backup-volumes-excludes leaves it out. What to do: create a new backup while a pod that mounts it is running
    False/ClaimsNotSaved: volume data of claim "data" is NOT in this backup: the administrators leave volumes to Velero's own defaults, and those do not save it. What to do: create a new backup with --default-volumes-to-fs-backup
    False/ClaimsNotSaved: volume data of claim "data" is NOT in this backup: what the backup says about volumes does not save it. What to do: create a new backup that says nothing about volumes, or one with --default-volumes-to-fs-backup
    False/ClaimsNotSaved: volume data of claim "data" is NOT in this backup: includedResources leaves out the pods, and files are saved from inside pods. What to do: create a new backup that includes pods
    False/ClaimsNotSaved: volume data of claim "data" is NOT in this backup: its volume is a block device, which has no files that could be saved. What to do: ask the administrators for a VolumeSnapshotClass with which Velero takes snapshots of it
    "#);
}

/// The volume decides, and not what a claim says of it: a claim can name any volume before it is bound.
#[test]
fn a_claim_whose_volume_is_a_folder_of_a_node_is_named_with_that_cause() {
    let mut world = running(json!({}));
    for claim in ["data", "logs"] {
        world.edit(&format!("PersistentVolumeClaim shop/{claim}"), json!({"spec": {"volumeName": "folder"}}));
    }
    let uid = world.get("PersistentVolumeClaim shop/logs")["metadata"]["uid"].as_str().unwrap().to_owned();
    world.apply(host_path("folder", &uid));
    end(&mut world, "Completed", json!({}));
    insta::assert_snapshot!(protected(&world), @r#"False/ClaimsNotSaved: volume data of claim "data" is NOT in this backup: no running pod mounts it, or a pod's annotation backup.velero.io/backup-volumes-excludes leaves it out. What to do: create a new backup while a pod that mounts it is running. volume data of claim "logs" is NOT in this backup: its volume is a folder of a node (hostPath), and Velero saves no such volume. What to do: copy the data to a claim of a StorageClass with other volumes, then create a new backup"#);
}

#[test]
fn what_failed_or_was_cancelled_is_told_in_veleros_words() {
    let mut world = running(json!({}));
    save(&mut world, "shop/data", "Failed");
    save(&mut world, "shop/logs", "Canceled");
    end(&mut world, "PartiallyFailed", json!({}));
    insta::assert_snapshot!(protected(&world), @r#"False/ClaimsNotSaved: volume data of claim "data" is NOT in this backup: Velero could not save it: disk on fire. What to do: look at the log of the backup (kubectl nacre backup logs), then create a new backup. volume data of claim "logs" is NOT in this backup: Velero cancelled it: disk on fire. What to do: look at the log of the backup (kubectl nacre backup logs), then create a new backup"#);
    assert_eq!(claims(&world), json!([["data", "Failed", 8], ["logs", "Cancelled", 8]]));
    assert_eq!(why(&world), "PartiallyFailed");
}

#[test]
fn nothing_is_in_a_backup_that_failed() {
    let mut world = running(json!({}));
    save(&mut world, "shop/data", "Completed");
    end(&mut world, "Failed", json!({}));
    assert!(
        protected(&world).starts_with("False/ClaimsNotSaved: volume data of claims \"data\" and \"logs\"")
    );
}

#[test]
fn what_is_left_out_on_purpose_is_no_loss() {
    let label: fn(&mut World) = |world| {
        let label = json!({"metadata": {"labels": {"velero.io/exclude-from-backup": "true"}}});
        world.edit("PersistentVolumeClaim shop/logs", label);
    };
    let pending: fn(&mut World) = |world| {
        world.edit("PersistentVolumeClaim shop/logs", json!({"spec": {"volumeName": null}}));
    };
    let of_pod: fn(&mut World) = |world| {
        let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "db", "uid": "p"}]);
        world.edit("PersistentVolumeClaim shop/logs", json!({"metadata": {"ownerReferences": owner}}));
    };
    let nothing: fn(&mut World) = |_| {};
    let kept = json!([["data", "Saved", 8], ["logs", "LeftOut", null]]);
    for (spec, change, expected) in [
        (json!({}), label, kept.clone()),
        (json!({}), pending, kept.clone()),
        (json!({}), of_pod, json!([["data", "Saved", 8]])),
        (json!({"snapshotVolumes": false}), nothing, kept.clone()),
        (json!({"defaultVolumesToFsBackup": false}), nothing, kept.clone()),
        (json!({"labelSelector": {"matchLabels": {"app": "a"}}}), nothing, kept.clone()),
        (json!({"excludedResources": ["pvc"]}), nothing, kept),
    ] {
        let mut world = running(spec.clone());
        change(&mut world);
        world.settle();
        save(&mut world, "shop/data", "Completed");
        end(&mut world, "Completed", json!({}));
        assert!(protected(&world).starts_with("True/AllClaimsSaved: "), "{spec}: {}", protected(&world));
        assert_eq!(claims(&world), expected, "{spec}");
    }
}

/// One way to save volumes is off and the other is on: then a claim that is not saved was not left out on purpose.
#[test]
fn a_claim_is_not_left_out_on_purpose_where_another_way_saves_volumes() {
    for spec in [
        json!({"snapshotVolumes": false, "defaultVolumesToFsBackup": true}),
        json!({"snapshotVolumes": true, "defaultVolumesToFsBackup": false}),
    ] {
        let mut world = running(spec.clone());
        save(&mut world, "shop/data", "Completed");
        end(&mut world, "Completed", json!({}));
        assert!(protected(&world).starts_with("False/ClaimsNotSaved: "), "{spec}: {}", protected(&world));
        let expected = json!([["data", "Saved", 8], ["logs", "NotSaved", null]]);
        assert_eq!((claims(&world), why(&world).as_str()), (expected, "NotProtected"), "{spec}");
    }
    // Snapshots that were made count, whatever is off.
    for spec in [
        json!({"snapshotVolumes": true, "defaultVolumesToFsBackup": false}),
        json!({"defaultVolumesToFsBackup": false}),
    ] {
        for (made, state) in [(2, "Saved"), (1, "NotSaved")] {
            let mut world = running(spec.clone());
            end(&mut world, "Completed", json!({"csiVolumeSnapshotsCompleted": made}));
            let expected = json!([["data", state, null], ["logs", state, null]]);
            assert_eq!(claims(&world), expected, "{spec}, {made} snapshots");
        }
    }
}

/// What the administrators enforce, or set as a default, is as good as what the request says.
#[test]
fn what_the_policy_leaves_out_is_no_loss() {
    let enforced: fn(&mut planner::Policy) = |policy| policy.backup.enforce.snapshot_volumes = Some(false);
    let default: fn(&mut planner::Policy) =
        |policy| policy.backup.defaults.default_volumes_to_fs_backup = Some(false);
    let filter: fn(&mut planner::Policy) =
        |policy| policy.backup.enforce.excluded_resources = Some(vec!["persistentvolumeclaims".to_owned()]);
    for (change, why) in [
        (enforced, "the backup was made with snapshotVolumes: false"),
        (default, "the backup was made with defaultVolumesToFsBackup: false"),
        (filter, "excludedResources of the backup leaves the claim out"),
    ] {
        let mut world = World::with(&["shop"]);
        world.policy(change);
        world.apply(node_agent(1));
        world.apply(claim("shop/data"));
        let mut world = world.backed_up();
        world.settle();
        assert!(protected(&world).starts_with("True/AllClaimsSaved: "), "{why}: {}", protected(&world));
        let found = &world.get(REQUEST)["status"]["claims"][0];
        assert_eq!((&found["state"], &found["message"]), (&json!("LeftOut"), &json!(why)));
    }
    // Velero's own default is nobody's purpose.
    let mut world = World::with(&["shop"]);
    world.apply(node_agent(1));
    world.apply(claim("shop/data"));
    let world = world.backed_up();
    assert!(protected(&world).starts_with("False/ClaimsNotSaved: "), "{}", protected(&world));
}

/// Velero counts snapshots and does not say of which claims.
#[test]
fn snapshots_count_if_there_is_one_for_each_claim() {
    let snapshots = |made: i64| {
        let mut world = running(json!({"snapshotVolumes": true}));
        save(&mut world, "shop/data", "Completed");
        world.velero_says(
            BACKUP,
            json!({"csiVolumeSnapshotsAttempted": 1, "csiVolumeSnapshotsCompleted": made}),
        );
        end(&mut world, "Completed", json!({}));
        protected(&world)
    };
    assert!(snapshots(1).starts_with("True/AllClaimsSaved"));
    assert!(snapshots(0).starts_with("False/ClaimsNotSaved: volume data of claim \"logs\""));

    let mut world = running(json!({"snapshotVolumes": true}));
    end(&mut world, "Completed", json!({"volumeSnapshotsCompleted": 1}));
    insta::assert_snapshot!(protected(&world), @r#"False/ClaimsNotSaved: volume data of claims "data" and "logs" is NOT in this backup: Velero made 1 of 2 snapshots, and does not report of which claims. What to do: look at the log of the backup (kubectl nacre backup logs)"#);
}

/// A snapshot in the cluster does not come back from there.
#[test]
fn a_snapshot_does_not_protect_what_is_kept_in_own_storage() {
    let mut world = World::with(&["shop"]);
    world.tenant_storage("shop/bucket");
    world.apply(claim("shop/data"));
    world.apply(nab_with("shop/daily", json!({"storageLocation": "bucket", "snapshotVolumes": true})));
    world.settle();
    world.velero_starts(BACKUP);
    world.velero_says(BACKUP, json!({"csiVolumeSnapshotsCompleted": 1}));
    end(&mut world, "Completed", json!({}));
    insta::assert_snapshot!(protected(&world), @r#"False/ClaimsNotSaved: volume data of claim "data" is NOT in this backup: there is only a snapshot in the cluster, and snapshots do not come back from your own storage. What to do: create a new backup with --snapshot-move-data or --default-volumes-to-fs-backup"#);
}

/// The watches of two kinds know no order among them.
#[test]
fn a_volume_that_is_seen_after_the_end_of_the_backup_counts() {
    let mut world = running(json!({}));
    save(&mut world, "shop/data", "Completed");
    end(&mut world, "Completed", json!({}));
    assert!(protected(&world).starts_with("False/ClaimsNotSaved"));
    save(&mut world, "shop/logs", "Completed");
    assert!(protected(&world).starts_with("True/AllClaimsSaved"), "{}", protected(&world));
    assert_eq!(claims(&world), json!([["data", "Saved", 8], ["logs", "Saved", 8]]));
    // And what is gone later takes nothing away.
    world.delete("PodVolumeBackup shop-daily-<1>-logs");
    world.settle();
    assert!(protected(&world).starts_with("True/AllClaimsSaved"));
}

#[test]
fn a_volume_whose_last_event_is_late_is_waited_for() {
    let mut world = running(json!({}));
    save(&mut world, "shop/data", "Completed");
    save(&mut world, "shop/logs", "InProgress");
    end(&mut world, "Completed", json!({}));
    assert!(protected(&world).starts_with("Unknown/StillRunning"));
    world.edit("PodVolumeBackup shop-daily-<1>-logs", json!({"status": {"phase": "Completed"}}));
    world.settle();
    assert!(protected(&world).starts_with("True/AllClaimsSaved"));
}

/// The uid counts: whoever writes into a bucket can choose names.
#[test]
fn a_volume_of_another_claim_of_the_same_name_does_not_count() {
    let mut world = running(json!({}));
    save(&mut world, "shop/data", "Completed");
    save(&mut world, "shop/logs", "Completed");
    let other = json!({"metadata": {"labels": {"velero.io/backup-uid": "another"}}});
    world.edit("PodVolumeBackup shop-daily-<1>-logs", other);
    world.settle();
    end(&mut world, "Completed", json!({}));
    assert_eq!(claims(&world), json!([["data", "Saved", 8], ["logs", "NotSaved", null]]));
}

#[test]
fn claims_that_came_after_the_start_do_not_count_and_deleted_ones_do() {
    let mut world = running(json!({}));
    world.jump(Duration::from_secs(5));
    world.apply(claim("shop/late"));
    save(&mut world, "shop/data", "Completed");
    save(&mut world, "shop/logs", "Completed");
    world.delete("PersistentVolumeClaim shop/logs");
    world.settle();
    end(&mut world, "Completed", json!({}));
    assert_eq!(claims(&world), json!([["data", "Saved", 8], ["logs", "Saved", 8]]));
}

#[test]
fn without_claims_there_is_nothing_to_lose() {
    let mut world = World::with(&["shop"]).backed_up();
    assert!(protected(&world).starts_with("True/NoClaims"));
    assert_eq!(world.get(REQUEST)["status"]["claims"], Value::Null);
    world.apply(claim("shop/data"));
    assert_eq!(world.trace(), "");
}

/// At most fifty are listed, and the rest is counted.
#[test]
fn a_list_of_claims_is_bounded() {
    let mut world = World::with(&["shop"]);
    for number in 0..53 {
        world.apply(claim(&format!("shop/claim-{number:02}")));
    }
    let world = world.backed_up();
    let status = world.get(REQUEST)["status"].clone();
    assert_eq!(status["claims"].as_array().unwrap().len(), 50);
    assert_eq!(status["claimsNotListed"], 3);
    assert!(
        protected(&world).contains(
            r#"claims "claim-00", "claim-01", "claim-02", "claim-03", "claim-04" and 48 more is NOT"#
        )
    );
}

/// Nobody knows which claims there were; after a disaster these are all there is.
#[test]
fn imported_backups_have_no_such_condition() {
    let mut world = World::with(&["shop"]);
    world.mind_storage();
    world.apply(claim("shop/data"));
    world.apply(imported("found", "default", origin("shop", "found")));
    world.settle();
    world.pass(Duration::from_mins(10));
    for name in world.names(Kind::NonAdminBackup) {
        assert_eq!(world.condition(&format!("nab {name}"), "DataProtected"), "/: ", "{name}");
    }
}

/// An upgrade writes nothing about what is over.
#[test]
fn backups_that_were_over_before_stay_as_they_are() {
    let mut world = World::with(&["shop"]).backed_up();
    let status = world.get(REQUEST)["status"].clone();
    let conditions: Vec<&Value> = status["conditions"].as_array().unwrap().iter().collect();
    let old: Vec<&Value> = conditions.into_iter().filter(|found| found["type"] != "DataProtected").collect();
    world.forge_status(REQUEST, json!({"conditions": old}));
    world.apply(claim("shop/data"));
    world.velero_says(BACKUP, json!({"expiration": "2026-05-01T00:00:00Z"}));
    assert_eq!(world.trace(), "");
    assert_eq!(protected(&world), "/: ");
}

/// Under OADP's CRDs the list of claims is dropped by the API server.
#[test]
fn a_list_that_the_crd_does_not_know_is_not_written_again() {
    let mut world = running(json!({}));
    end(&mut world, "Completed", json!({}));
    world.forge_status(REQUEST, json!({"claims": null}));
    world.trace();
    world.velero_says(BACKUP, json!({"warnings": 2}));
    let trace = world.trace();
    assert_eq!(trace.lines().count(), 1, "{trace}");
    assert_eq!(world.get(REQUEST)["status"]["claims"], Value::Null);
}

#[test]
fn a_data_upload_counts_as_well() {
    let mut world = running(json!({"snapshotMoveData": true}));
    for claim in ["shop/data", "shop/logs"] {
        let status = json!({"phase": "Completed", "progress": {"bytesDone": 3, "totalBytes": 3}});
        world.volume_saved(Kind::DataUpload, BACKUP, claim, status);
    }
    world.settle();
    end(&mut world, "Completed", json!({}));
    assert_eq!(claims(&world), json!([["data", "Saved", 3], ["logs", "Saved", 3]]));
}
