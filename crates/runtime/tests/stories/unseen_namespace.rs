//! nacre does not see the namespaces, for example because it may not list them.

use std::time::Duration;

use api::Kind;
use insta::assert_snapshot;
use serde_json::json;

use crate::world::World;
use crate::world::manifests::{nab, nar, object};

/// The watch on namespaces cannot be late any more.
const LATE: Duration = Duration::from_secs(31);

/// One request of each kind that nobody has decided about.
fn requests(world: &mut World) {
    world.apply(nab("shop/fresh"));
    world.apply(nar("shop/back", "daily"));
    let spec = json!({"spec": {"schedule": "0 3 * * *", "template": {"backupSpec": {}}}});
    world.apply(object(Kind::NonAdminSchedule, "shop/nightly", spec));
    let target = json!({"spec": {"target": {"kind": "BackupLog", "name": "daily"}}});
    world.apply(object(Kind::NonAdminDownloadRequest, "shop/log", target));
    let spec = json!({"provider": "aws", "objectStorage": {"bucket": "b"}});
    let location = json!({"spec": {"backupStorageLocationSpec": spec}});
    world.apply(object(Kind::NonAdminBackupStorageLocation, "shop/bucket", location));
}

#[test]
fn every_kind_of_request_reports_it_once_and_goes_on_by_itself() {
    let mut world = World::with(&["shop"]).backed_up();
    world.mind_storage();
    world.namespaces_are_not_seen();
    requests(&mut world);
    world.settle();
    assert_eq!(world.trace(), "", "the watch may only be late");
    world.pass(LATE);
    let trace = world.trace();
    let reported = trace.lines().filter(|line| line.starts_with("status")).collect::<Vec<_>>().join("\n");
    assert_snapshot!(reported, @r"
    status NonAdminBackup shop/fresh BackingOff Accepted=False/NamespaceNotSeen
    status NonAdminRestore shop/back BackingOff Accepted=False/NamespaceNotSeen
    status NonAdminBackupStorageLocation shop/bucket BackingOff Accepted=False/NamespaceNotSeen
    status NonAdminDownloadRequest shop/log BackingOff Processed=False/NamespaceNotSeen
    status NonAdminSchedule shop/nightly BackingOff Accepted=False/NamespaceNotSeen
    ");
    let shown = world.condition("nab shop/fresh", "Accepted");
    assert_snapshot!(shown, @"False/NamespaceNotSeen: nacre does not see the namespace shop, so nothing is done about this backup; the backup goes on by itself when nacre sees it. Administrators: nacre needs permission to list and watch namespaces; kubectl nacre doctor shows what is missing");
    // Nothing more, however long it lasts.
    world.pass(Duration::from_hours(2));
    assert_eq!(world.trace(), "");

    world.namespaces_are_seen();
    world.settle();
    let seen = [
        world.condition("nab shop/fresh", "Accepted"),
        world.condition("nar shop/back", "Accepted"),
        world.condition("nas shop/nightly", "Accepted"),
        world.condition("nabsl shop/bucket", "Accepted"),
    ];
    assert_snapshot!(seen.join("\n"), @r"
    True/BackupAccepted: the backup is allowed
    True/RestoreAccepted: the restore is allowed
    True/ScheduleAccepted: the schedule is allowed
    False/BslSpecValidation: spec.backupStorageLocationSpec.credential: is missing; name a Secret of this namespace and the key in it
    ");
    assert_eq!(world.condition("nadr shop/log", "Processed"), "Unknown/BeingRead: nacre reads the log");
}

#[test]
fn what_velero_has_keeps_its_status_and_a_deletion_that_waits_reports_why() {
    let mut world = World::with(&["shop"]).backed_up();
    world.namespaces_are_not_seen();
    world.pass(Duration::from_hours(2));
    assert_eq!(world.trace(), "");
    world.edit("nab shop/daily", json!({"spec": {"deleteBackup": true}}));
    world.pass(LATE);
    world.pass(Duration::from_hours(2));
    let deleting = world.condition("nab shop/daily", "Deleting");
    assert!(
        deleting.starts_with("True/DeletionPending: nacre does not see the namespace shop"),
        "{deleting}"
    );
    assert_eq!(world.trace().lines().filter(|line| line.starts_with("status")).count(), 1);
    world.namespaces_are_seen();
    world.settle();
    world.velero_deletes();
    world.settle();
    assert!(!world.has("nab shop/daily") && world.names(Kind::Backup).is_empty());
}
