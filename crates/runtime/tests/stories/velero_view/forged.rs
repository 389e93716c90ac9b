//! Forged copies and stale copies have no effect.

use std::time::Duration;

use api::Kind;
use insta::assert_snapshot;
use serde_json::json;

use super::{asked, copies, with_a_backup, world};
use crate::world::manifests::{nab, object};

#[test]
fn forged_copies_lead_nowhere() {
    let mut world = with_a_backup();
    world.apply(nab("rival/secret"));
    world.settle();
    world.velero_starts("rival-secret-<2>");
    world.velero_completes("rival-secret-<2>");
    world.settle();
    let before = world.writes();
    let rivals = world.get("backup rival-secret-<2>");
    // A complete backup that never was, under a name of its own, and under Velero's name of somebody else's.
    for name in ["stolen", "rival-secret-<2>"] {
        let forged = json!({
            "metadata": {"labels": rivals["metadata"]["labels"], "annotations": rivals["metadata"]["annotations"]},
            "spec": {"storageLocation": "default", "includedNamespaces": ["rival"]},
            "status": {"phase": "Completed", "completionTimestamp": "2026-01-01T00:00:00Z"},
        });
        world.apply(object(Kind::Backup, &format!("shop/{name}"), forged));
    }
    world.settle();
    assert_eq!(world.writes(), before, "left alone");
    // Nothing is restored from it, no link leads to it, and nothing is deleted by it.
    for (at, name) in ["stolen", "rival-secret-<2>"].into_iter().enumerate() {
        let name = crate::world::long(name);
        let wish = json!({"spec": {"backupName": name, "includedNamespaces": ["*"]}});
        world.apply(object(Kind::Restore, &format!("shop/theft-{at}"), wish.clone()));
        let target = json!({"spec": {"target": {"kind": "BackupContents", "name": name}}});
        world.apply(object(Kind::DownloadRequest, &format!("shop/link-{at}"), target));
        world.apply(object(
            Kind::DeleteBackupRequest,
            &format!("shop/gone-{at}"),
            json!({"spec": {"backupName": name}}),
        ));
        world.settle();
        assert_eq!(world.get(&format!("restore shop/theft-{at}"))["status"]["phase"], "FailedValidation");
        let link = world.get(&format!("dr shop/link-{at}"))["status"]["downloadURL"].clone();
        assert!(
            link.as_str().unwrap().starts_with("refused:spec.target.name: there is no NonAdminBackup"),
            "{link}"
        );
        let said = world.get(&format!("dbr shop/gone-{at}"))["status"].clone();
        assert!(said["errors"][0].as_str().unwrap().contains("there is no backup"), "{said}");
    }
    assert_eq!(world.get("backup rival-secret-<2>"), rivals);
    assert_eq!(world.names(Kind::Restore).iter().filter(|name| name.starts_with("velero/")).count(), 0);
    assert_eq!(
        world.names(Kind::DeleteBackupRequest).iter().filter(|name| name.starts_with("velero/")).count(),
        0
    );
    assert_eq!(
        world.names(Kind::DownloadRequest).iter().filter(|name| name.starts_with("velero/")).count(),
        0
    );
    // What was refused goes by itself.
    world.pass(Duration::from_mins(11));
    assert!(
        world.names(Kind::DownloadRequest).is_empty() && world.names(Kind::DeleteBackupRequest).is_empty()
    );
}

#[test]
fn a_namespace_with_a_velero_of_its_own_is_not_ours_to_answer() {
    let mut world = world();
    let own = json!({"spec": {"provider": "aws", "objectStorage": {"bucket": "own"}}});
    world.apply(object(Kind::BackupStorageLocation, "shop/default", own));
    world.apply(asked("shop/theirs", json!({})));
    let target = json!({"spec": {"target": {"kind": "BackupLog", "name": "theirs"}}});
    world.apply(object(Kind::DownloadRequest, "shop/log", target));
    assert_snapshot!(world.trace(), @"");
}

#[test]
fn a_copy_that_outlived_its_request_while_nacre_was_down_is_not_taken_for_a_request() {
    let mut world = with_a_backup();
    let kept = world.get("backup shop/daily");
    world.dies_after(world.writes());
    world.delete("nab shop/daily");
    world.rest();
    world.restart();
    world.settle();
    assert!(copies(&world).is_empty());
    // Even one that says it is new.
    let mut left = kept;
    left["status"] = json!({});
    left["metadata"] = json!({"name": "daily", "namespace": "shop", "labels": left["metadata"]["labels"]});
    world.apply(left);
    world.settle();
    assert!(copies(&world).is_empty() && world.names(Kind::NonAdminBackup).is_empty());
}
