//! Volumes that cannot end do not hold anybody up.

use std::time::Duration;

use api::Kind;
use insta::assert_snapshot;
use serde_json::json;

use crate::world::World;
use crate::world::manifests::{nab, nar};
use crate::world::replay::Spared;

const RESTORE: &str = "shop-again-p-<r1>";
const OTHER: &str = "office-thei-p-<r2>";

/// Two tenants, whose restores Velero has started: their volumes wait for a node agent.
fn restoring() -> World {
    let mut world = World::with(&["shop", "office"]);
    world.node_agent_runs();
    for (backup, velero, space) in
        [("shop/daily", "shop-daily-<1>", "shop"), ("office/daily", "office-daily-<2>", "office")]
    {
        world.apply(nab(backup));
        world.settle();
        world.velero_starts(velero);
        world.velero_saves(velero, space, "Completed");
        world.velero_completes(velero);
    }
    for (request, velero, space) in [("shop/again", RESTORE, "shop"), ("office/theirs", OTHER, "office")] {
        world.apply(nar(request, "daily"));
        world.settle();
        world.velero_starts(velero);
        let claim = world.claim(&format!("{space}/data"), Some(velero));
        let pod = world.restored_pod(&format!("{space}/db"), velero);
        world.velero_writes(velero, space, &pod, &claim);
    }
    world.settle();
    world.trace();
    world
}

fn volume(world: &World, restore: &str) -> serde_json::Value {
    world.get(&format!("PodVolumeRestore {restore}-v"))
}

/// H14: a pod is deleted while its volume is being restored, so that Velero waits for hours and nobody else's restore starts
#[test]
fn h14_a_restore_whose_pod_is_gone_ends_soon_and_the_neighbours_goes_on() {
    let mut world = restoring();
    let neighbour = volume(&world, OTHER);
    world.delete("Pod shop/db");
    assert_snapshot!(world.trace(), @r#"status NonAdminRestore shop/again Created Accepted=True/RestoreAccepted Queued=True/RestoreScheduled queue=1 velero=InProgress fileSystemPodVolumeRestores={"new":1,"total":1}"#);
    assert_snapshot!(world.condition("nar shop/again", "DataRestored"), @r#"Unknown/StillRunning: claim "data" waits: pod "db" is gone"#);
    world.pass(Duration::from_mins(1));
    assert_eq!(volume(&world, RESTORE)["spec"]["cancel"], json!(null));
    world.pass(Duration::from_mins(1));
    assert_snapshot!(world.trace(), @r#"
    patch PodVolumeRestore velero/shop-again-p-<r1>-v {"spec":{"cancel":true},"status":{"message":"cancelled by nacre: pod \"db\", into which the data was to be written, is gone"}}
    event Warning VolumeCancelled: PodVolumeRestore shop-again-p-<r1>-v: cancelled by nacre: pod "db", into which the data was to be written, is gone
    "#);
    world.volume_is(RESTORE, json!({"phase": "Canceled"}));
    world.velero_ends(RESTORE, "PartiallyFailed", json!({"errors": 1}));
    world.settle();
    assert_snapshot!(world.condition("nar shop/again", "DataRestored"), @r#"False/VolumesCancelled: volume data of claim "data" was NOT restored: cancelled by nacre: pod "db", into which the data was to be written, is gone. To try again: kubectl nacre restore create --from-backup daily --replace"#);
    assert_eq!(volume(&world, OTHER), neighbour);
}

/// H14: a restored pod that its owner deletes and holds by a finalizer, ends, or starts without its data
#[test]
fn h14_a_pod_that_never_receives_its_data_holds_nobody_up() {
    let done = json!([{"name": "restore-wait", "state": {"terminated": {"exitCode": 0}}}]);
    for (change, why) in [
        (json!({"metadata": {"finalizers": ["x.example/y"]}}), "it is being deleted"),
        (json!({"status": {"phase": "Failed"}}), "it has ended"),
        (json!({"status": {"phase": "Running"}}), "it runs already"),
        (json!({"status": {"initContainerStatuses": done}}), "its init container restore-wait has ended"),
    ] {
        let mut world = restoring();
        world.edit("Pod shop/db", change.clone());
        if change["metadata"].is_object() {
            world.delete("Pod shop/db");
        }
        world.pass(Duration::from_mins(2));
        let reason = volume(&world, RESTORE)["status"]["message"].clone();
        let expected = format!("cancelled by nacre: pod \"db\" does not wait for the data: {why}");
        assert_eq!(reason, json!(expected));
        assert_eq!(volume(&world, OTHER)["spec"]["cancel"], json!(null));
    }
}

/// H14
/// planted: nothing is cancelled
#[test]
fn h14_where_nothing_is_cancelled_everybody_would_wait_for_a_pod_that_is_gone() {
    let cancelled = |pod_gone: Option<&str>| {
        let mut world = restoring();
        if let Some(time) = pod_gone {
            world.policy(|policy| policy.volumes.pod_gone = time.into());
        }
        world.delete("Pod shop/db");
        world.pass(Duration::from_hours(3));
        volume(&world, RESTORE)["spec"]["cancel"] == json!(true)
    };
    assert!(cancelled(None));
    assert!(!cancelled(Some("0")), "the planted weakness");
}

#[test]
fn what_waits_in_the_queue_of_a_node_is_left_alone() {
    let mut world = restoring();
    world.pass(Duration::from_hours(10));
    assert_eq!(volume(&world, RESTORE)["spec"]["cancel"], json!(null));
}

#[test]
fn what_makes_no_progress_is_cancelled_and_what_does_is_not() {
    let mut world = restoring();
    // How long nothing happened is not known after a restart, which the replay makes at any time.
    world.stop_recording();
    for restore in [RESTORE, OTHER] {
        world.volume_is(restore, json!({"phase": "InProgress"}));
    }
    for step in 1..5 {
        world.pass(Duration::from_mins(9));
        world.volume_is(OTHER, json!({"progress": {"bytesDone": step, "totalBytes": 9}}));
        world.settle();
    }
    assert_eq!(volume(&world, RESTORE)["spec"]["cancel"], json!(true));
    assert_eq!(
        volume(&world, RESTORE)["status"]["message"],
        "cancelled by nacre: there was no progress for 30m"
    );
    assert_eq!(volume(&world, OTHER)["spec"]["cancel"], json!(null));
}

#[test]
fn what_velero_does_not_cancel_is_ended() {
    let mut world = restoring();
    world.stop_recording();
    world.delete("Pod shop/db");
    world.pass(Duration::from_mins(7));
    assert_eq!(volume(&world, RESTORE)["status"]["phase"], json!(null));
    world.pass(Duration::from_mins(2));
    assert_eq!(volume(&world, RESTORE)["status"]["phase"], "Canceled");
}

#[test]
fn without_a_node_agent_nacre_ends_it_at_once() {
    let mut world = restoring();
    // After a crash nacre does not remember since when it is gone.
    world.spare(Spared::Crashes);
    world.delete("DaemonSet node-agent");
    world.delete("Pod shop/db");
    world.pass(Duration::from_mins(2));
    assert_eq!(volume(&world, RESTORE)["status"]["phase"], "Canceled");
    // The request shows it when nacre looks again.
    world.pass(Duration::from_mins(1));
}

/// Velero waits for it until the end of the day, and everybody else waits for Velero.
#[test]
fn volumes_that_no_node_agent_will_ever_take_are_given_up() {
    let mut world = restoring();
    world.apply(nab("shop/late"));
    world.settle();
    world.velero_starts("shop-late-<3>");
    world.velero_saves("shop-late-<3>", "shop", "");
    world.settle();
    world.pass(Duration::from_mins(50));
    // After a crash nacre does not remember since when it is gone.
    world.spare(Spared::Crashes);
    world.delete("DaemonSet node-agent");
    world.settle();
    assert_snapshot!(world.condition("nar shop/again", "DataRestored"), @r#"Unknown/StillRunning: claim "data" waits: Velero's node agent does not run, ask your administrators"#);
    world.pass(Duration::from_mins(29));
    let saved = "PodVolumeBackup shop-late-<3>-v";
    for waits in [volume(&world, RESTORE), world.get(saved)] {
        assert_eq!(waits["spec"]["cancel"], json!(null), "{waits}");
    }
    world.pass(Duration::from_mins(1));
    for ended in [volume(&world, RESTORE), volume(&world, OTHER), world.get(saved)] {
        assert_eq!(ended["status"]["phase"], "Canceled", "{ended}");
        assert_eq!(ended["status"]["message"], "cancelled by nacre: no node agent has run for 30m");
    }
    // The requests show it when nacre looks again.
    world.pass(Duration::from_mins(1));
    world.velero_ends("shop-late-<3>", "PartiallyFailed", json!({"errors": 1}));
    world.settle();
    assert_snapshot!(world.condition("nab shop/late", "DataProtected"), @r#"False/ClaimsNotSaved: volume data of claim "data" is NOT in this backup: cancelled by nacre: no node agent has run for 30m. What to do: look at the log of the backup (kubectl nacre backup logs), then create a new backup"#);
}

#[test]
fn a_node_agent_that_comes_back_takes_what_waits_for_it() {
    let mut world = restoring();
    // After a crash nacre does not remember since when it is gone.
    world.spare(Spared::Crashes);
    world.delete("DaemonSet node-agent");
    world.pass(Duration::from_mins(29));
    world.node_agent_runs();
    world.pass(Duration::from_mins(10));
    world.delete("DaemonSet node-agent");
    world.pass(Duration::from_mins(29));
    assert_eq!(volume(&world, RESTORE)["spec"]["cancel"], json!(null));
}

#[test]
fn nacre_that_may_not_cancel_goes_on_reporting() {
    let mut world = restoring();
    world.refuse(Kind::PodVolumeRestore, false, 403);
    world.delete("Pod shop/db");
    world.rest_for(Duration::from_mins(10));
    world.velero_progresses(RESTORE, 3, 4);
    world.rest_for(Duration::from_mins(1));
    assert_eq!(
        world.get("nar shop/again")["status"]["veleroRestore"]["status"]["progress"]["itemsRestored"],
        3
    );
    world.relent();
    world.rest_for(Duration::from_mins(10));
    assert_eq!(volume(&world, RESTORE)["spec"]["cancel"], json!(true));
}

#[test]
fn deleting_a_restore_that_velero_works_on_cancels_its_volumes_first() {
    let mut world = restoring();
    world.delete("nar shop/again");
    assert_snapshot!(world.trace(), @r#"
    status NonAdminRestore shop/again Deleting Accepted=True/RestoreAccepted Queued=True/RestoreScheduled Deleting=True/DeletionPending(Velero is at work on it: volumes are being cancelled, and the Velero Restore is removed when Velero has ended it) queue=1 velero=InProgress fileSystemPodVolumeRestores={"new":1,"total":1}
    patch PodVolumeRestore velero/shop-again-p-<r1>-v {"spec":{"cancel":true},"status":{"message":"cancelled by nacre: the request is being deleted"}}
    event Warning VolumeCancelled: PodVolumeRestore shop-again-p-<r1>-v: cancelled by nacre: the request is being deleted
    "#);
    assert!(world.has(&format!("restore {RESTORE}")), "deleting it now would leave Velero waiting for ever");
    world.volume_is(RESTORE, json!({"phase": "Canceled"}));
    world.velero_ends(RESTORE, "PartiallyFailed", json!({"errors": 1}));
    world.settle();
    world.velero_tidies();
    world.settle();
    assert!(!world.has("nar shop/again") && !world.has(&format!("restore {RESTORE}")));
}

#[test]
fn deleting_a_backup_that_velero_works_on_cancels_its_volumes_first() {
    for with_data in [false, true] {
        let mut world = World::with(&["shop"]);
        world.node_agent_runs();
        world.apply(nab("shop/daily"));
        world.settle();
        world.velero_starts("shop-daily-<1>");
        world.velero_saves("shop-daily-<1>", "shop", "InProgress");
        world.settle();
        if with_data {
            world.edit("nab shop/daily", json!({"spec": {"deleteBackup": true}}));
        } else {
            world.delete("nab shop/daily");
        }
        world.settle();
        let volume = "PodVolumeBackup shop-daily-<1>-v";
        assert_eq!(world.get(volume)["spec"]["cancel"], json!(true), "with data: {with_data}");
        assert!(world.has("backup shop-daily-<1>"));
        world.edit(volume, json!({"status": {"phase": "Canceled"}}));
        world.velero_ends("shop-daily-<1>", "PartiallyFailed", json!({"errors": 1}));
        world.pass(Duration::from_mins(1));
        world.velero_deletes();
        world.pass(Duration::from_mins(1));
        assert!(
            !world.has("nab shop/daily") && !world.has("backup shop-daily-<1>"),
            "with data: {with_data}"
        );
    }
}
