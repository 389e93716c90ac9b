//! Copies follow Velero's objects, are re-created when deleted, and are removed with the view.

use api::{Kind, labels};
use insta::assert_snapshot;
use planner::Action;
use planner::policy::VeleroView;
use serde_json::json;

use super::{asked, brief, copies, label, marks, with_a_backup, world};
use crate::world::World;
use crate::world::manifests::{nab, nar, object};

#[test]
fn a_copy_follows_velero_by_one_write_for_each_change() {
    let mut world = world();
    world.apply(nab("shop/daily"));
    assert_snapshot!(brief(&mut world), @r"
    hold NonAdminBackup shop/daily
    create Backup velero/shop-daily-<1>
    status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1
    event Normal BackupScheduled: Velero was given the backup as shop-daily-<1>
    create Backup shop/daily
    ");
    world.velero_starts("shop-daily-<1>");
    assert_snapshot!(brief(&mut world), @r"
    status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1 velero=InProgress
    event Normal BackupStarted: Velero has started the backup
    patch Backup shop/daily
    ");
    let before = world.writes();
    world.velero_progresses("shop-daily-<1>", 3, 7);
    world.settle();
    assert_eq!(world.writes() - before, 2, "the request and the copy");
    world.velero_completes("shop-daily-<1>");
    world.settle();
    assert_snapshot!(marks(&world, "backup shop/daily"), @r"
    nacre.dev/origin-namespace-uid: <n2>
    nacre.dev/origin-uid: <1>
    nacre.dev/spec-digest: 08f44b07b5901a25
    openshift.io/oadp-nab-origin-name: daily
    openshift.io/oadp-nab-origin-namespace: shop
    velero.io/pod-volume-timeout: 24h
    app.kubernetes.io/managed-by: oadp-nac-controller
    nacre.dev/shown: copy
    openshift.io/oadp: True
    openshift.io/oadp-nab-origin-nacuuid: shop-daily-<1>
    velero.io/exclude-from-backup: true
    ");
    let (copy, truth) = (world.get("backup shop/daily"), world.get("backup shop-daily-<1>"));
    assert_eq!((&copy["spec"], &copy["status"]), (&truth["spec"], &truth["status"]));
}

#[test]
fn what_is_changed_or_removed_comes_back_and_changes_nothing_outside() {
    let mut world = with_a_backup();
    let truth = world.get("backup shop-daily-<1>");
    let copy = world.get("backup shop/daily");
    world.edit(
        "backup shop/daily",
        json!({
            "metadata": {"labels": {labels::SHOWN: null, labels::NAB_NACUUID: "rival-daily-x"}, "annotations": {labels::NAB_NAMESPACE: "rival"}},
            "spec": {"includedNamespaces": ["rival"], "storageLocation": "theirs", "hooks": {"resources": []}},
            "status": {"phase": "Failed", "errors": 7},
        }),
    );
    world.settle();
    let mended = world.get("backup shop/daily");
    for part in ["spec", "status"] {
        assert_eq!(mended[part], copy[part], "{part}");
    }
    assert_eq!(mended["metadata"]["labels"], copy["metadata"]["labels"]);
    assert_eq!(mended["metadata"]["annotations"], copy["metadata"]["annotations"]);
    world.delete("backup shop/daily");
    world.settle();
    assert_eq!(world.get("backup shop/daily")["status"], copy["status"]);
    assert_eq!(world.get("backup shop-daily-<1>"), truth);
    assert_eq!(world.names(Kind::NonAdminBackup), ["shop/daily"]);
}

#[test]
fn marks_of_other_programs_stay() {
    let mut world = with_a_backup();
    world.edit("backup shop/daily", json!({"metadata": {"labels": {"team": "tea"}}}));
    assert_snapshot!(world.trace(), @"");
}

#[test]
fn a_copy_goes_with_its_request_and_the_copies_with_the_label() {
    let mut world = with_a_backup();
    world.apply(nar("shop/back", "daily"));
    world.settle();
    world.tenant_storage("shop/bucket");
    world.settle();
    assert_eq!(
        copies(&world),
        ["Backup shop/daily", "Restore shop/back", "BackupStorageLocation shop/bucket"]
    );
    world.delete("nar shop/back");
    world.settle();
    assert_eq!(copies(&world), ["Backup shop/daily", "BackupStorageLocation shop/bucket"]);

    // Only ours: what somebody else put there stays.
    let foreign = json!({"spec": {}, "status": {"phase": "Completed"}});
    world.apply(object(Kind::Backup, "shop/foreign", foreign));
    label(&mut world, json!("false"));
    world.settle();
    assert_eq!(copies(&world), ["Backup shop/foreign"]);
    label(&mut world, json!("true"));
    world.settle();
    assert_eq!(
        copies(&world),
        ["Backup shop/daily", "Backup shop/foreign", "BackupStorageLocation shop/bucket"]
    );
}

#[test]
fn the_policy_can_say_all_or_off() {
    let mut world = with_a_backup();
    world.apply(nab("rival/weekly"));
    world.settle();
    assert_eq!(copies(&world), ["Backup shop/daily"]);
    world.policy(|policy| policy.views.velero = VeleroView::All);
    world.settle();
    assert_eq!(copies(&world), ["Backup rival/weekly", "Backup shop/daily"]);
    world.policy(|policy| policy.views.velero = VeleroView::Off);
    world.settle();
    assert!(copies(&world).is_empty());
}

#[test]
fn while_nobody_can_tell_what_is_allowed_copies_stay_as_they_are() {
    let mut world = with_a_backup();
    world.policy_cannot_be_read();
    label(&mut world, json!(null));
    assert_snapshot!(world.trace(), @"");
    assert_eq!(copies(&world), ["Backup shop/daily"]);
}

#[test]
fn with_nobody_to_see_it_nothing_is_made() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    world.settle();
    world.apply(asked("shop/asked", json!({})));
    let before = world.writes();
    world.settle();
    assert_eq!(copies(&world), ["Backup shop/asked"], "only what somebody put there");
    assert_eq!(world.writes(), before);
    assert_eq!(world.names(Kind::NonAdminBackup), ["shop/daily"]);
}

/// So that copies whose label went while nacre was down are found, and nobody looks where there never were any.
#[test]
fn it_is_noted_that_there_may_be_copies_from_before_the_first_until_after_the_last() {
    let mut world = World::with(&["shop"]);
    assert!(!planner::velero_view::in_use(&world.state()));
    label(&mut world, json!("true"));
    assert!(planner::velero_view::in_use(&world.state()));
    let (plan, over) = planner::velero_view::record(&world.state());
    let [Action::Create(note)] = plan.actions.as_slice() else { panic!("{plan:?}") };
    assert!(!over);
    world.apply(note.body.clone());
    assert!(planner::velero_view::record(&world.state()).0.actions.is_empty());
    world.apply(nab("shop/daily"));
    world.settle();
    assert_eq!(copies(&world), ["Backup shop/daily"]);
    // The label is gone, the copy is yet to go.
    label(&mut world, json!(null));
    assert!(planner::velero_view::in_use(&world.state()));
    assert_eq!(planner::velero_view::record(&world.state()), (planner::Plan::done(), false));
    world.settle();
    let (plan, over) = planner::velero_view::record(&world.state());
    assert!(
        over && matches!(plan.actions.as_slice(), [Action::Delete(note)] if note.name == planner::velero_view::RECORD)
    );
}
