//! From a tenant's request to a Velero Backup.

use std::time::Duration;

use api::Kind;
use insta::assert_snapshot;
use serde_json::json;

use crate::world::manifests::{nab, nab_with};
use crate::world::{World, short};

#[test]
fn a_backup_is_made_in_three_writes() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    assert_snapshot!(world.trace(), @r"
    hold NonAdminBackup shop/daily
    create Backup velero/shop-daily-<1>
    status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1
    event Normal BackupScheduled: Velero was given the backup as shop-daily-<1>
    ");
    assert_eq!(world.writes(), 3);
}

#[test]
fn what_is_written_is_complete() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    world.settle();
    assert_snapshot!(world.show("backup shop-daily-<1>", "metadata"), @r#"
    {
      "annotations": {
        "nacre.dev/origin-namespace-uid": "<n2>",
        "nacre.dev/origin-uid": "<1>",
        "nacre.dev/queue-tag": "0/0/100/30000",
        "nacre.dev/spec-digest": "08f44b07b5901a25",
        "openshift.io/oadp-nab-origin-name": "daily",
        "openshift.io/oadp-nab-origin-namespace": "shop",
        "velero.io/pod-volume-timeout": "24h"
      },
      "creationTimestamp": "2026-01-01T00:00:00Z",
      "generation": 1,
      "labels": {
        "app.kubernetes.io/managed-by": "oadp-nac-controller",
        "openshift.io/oadp": "True",
        "openshift.io/oadp-nab-origin-nacuuid": "shop-daily-<1>"
      },
      "name": "shop-daily-<1>",
      "namespace": "velero",
      "resourceVersion": "6",
      "uid": "<6:1>"
    }
    "#);
    assert_snapshot!(world.show("backup shop-daily-<1>", "spec"), @r#"
    {
      "excludedResources": [
        "cloudstorages.oadp.openshift.io",
        "dataprotectionapplications.oadp.openshift.io",
        "dataprotectiontests.oadp.openshift.io",
        "nonadminbackups.oadp.openshift.io",
        "nonadminbackupstoragelocationrequests.oadp.openshift.io",
        "nonadminbackupstoragelocations.oadp.openshift.io",
        "nonadmindownloadrequests.oadp.openshift.io",
        "nonadminrestores.oadp.openshift.io",
        "nonadminschedules.oadp.openshift.io",
        "backups.velero.io",
        "restores.velero.io",
        "backupstoragelocations.velero.io",
        "deletebackuprequests.velero.io",
        "downloadrequests.velero.io",
        "serverstatusrequests.velero.io",
        "podvolumebackups.velero.io",
        "podvolumerestores.velero.io",
        "datauploads.velero.io",
        "datadownloads.velero.io",
        "schedules.velero.io",
        "backuprepositories.velero.io",
        "volumesnapshotlocations.velero.io",
        "virtualmachineinstancemigrations.kubevirt.io",
        "securitycontextconstraints",
        "clusterroles",
        "clusterrolebindings",
        "priorityclasses",
        "customresourcedefinitions",
        "virtualmachineclusterinstancetypes",
        "virtualmachineclusterpreferences"
      ],
      "includedNamespaces": [
        "shop"
      ]
    }
    "#);
}

#[test]
fn what_the_tenant_is_shown_is_complete() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    world.settle();
    let mut status = world.get("nab shop/daily")["status"].clone();
    let spec = status["veleroBackup"]["spec"].take();
    assert_eq!(spec, world.get("backup shop-daily-<1>")["spec"]);
    assert_snapshot!(short(&serde_json::to_string_pretty(&status).unwrap()), @r#"
    {
      "conditions": [
        {
          "lastTransitionTime": "2026-01-01T00:00:00Z",
          "message": "the backup is allowed",
          "observedGeneration": 1,
          "reason": "BackupAccepted",
          "status": "True",
          "type": "Accepted"
        },
        {
          "lastTransitionTime": "2026-01-01T00:00:00Z",
          "message": "Velero has the backup",
          "observedGeneration": 1,
          "reason": "BackupScheduled",
          "status": "True",
          "type": "Queued"
        },
        {
          "lastTransitionTime": "2026-01-01T00:00:00Z",
          "message": "the backup is not over yet",
          "observedGeneration": 1,
          "reason": "StillRunning",
          "status": "Unknown",
          "type": "DataProtected"
        }
      ],
      "phase": "Created",
      "queueInfo": {
        "estimatedQueuePosition": 1
      },
      "veleroBackup": {
        "nacuuid": "shop-daily-<1>",
        "name": "shop-daily-<1>",
        "namespace": "velero",
        "spec": null
      }
    }
    "#);
}

#[test]
fn a_long_name_loses_its_end() {
    let mut world = World::with(&["shop", "a-namespace-with-a-long-name"]);
    world.apply(nab("shop/every-night-at-half-past-two"));
    world.apply(nab("a-namespace-with-a-long-name/daily"));
    world.settle();
    assert_snapshot!(world.names(Kind::Backup).join("\n"), @r"
    velero/a-namespace-with-a-long-n-<2>
    velero/shop-every-night-at-half-p-<1>
    ");
}

#[test]
fn the_newer_filters_are_fenced_as_well() {
    let mut world = World::with(&["shop"]);
    world.apply(nab_with("shop/daily", json!({"includedNamespaceScopedResources": ["configmaps"]})));
    world.settle();
    assert_snapshot!(world.show("backup shop-daily-<1>", "spec"), @r#"
    {
      "excludedClusterScopedResources": [
        "securitycontextconstraints",
        "clusterroles",
        "clusterrolebindings",
        "priorityclasses",
        "customresourcedefinitions",
        "virtualmachineclusterinstancetypes",
        "virtualmachineclusterpreferences"
      ],
      "excludedNamespaceScopedResources": [
        "cloudstorages.oadp.openshift.io",
        "dataprotectionapplications.oadp.openshift.io",
        "dataprotectiontests.oadp.openshift.io",
        "nonadminbackups.oadp.openshift.io",
        "nonadminbackupstoragelocationrequests.oadp.openshift.io",
        "nonadminbackupstoragelocations.oadp.openshift.io",
        "nonadmindownloadrequests.oadp.openshift.io",
        "nonadminrestores.oadp.openshift.io",
        "nonadminschedules.oadp.openshift.io",
        "backups.velero.io",
        "restores.velero.io",
        "backupstoragelocations.velero.io",
        "deletebackuprequests.velero.io",
        "downloadrequests.velero.io",
        "serverstatusrequests.velero.io",
        "podvolumebackups.velero.io",
        "podvolumerestores.velero.io",
        "datauploads.velero.io",
        "datadownloads.velero.io",
        "schedules.velero.io",
        "backuprepositories.velero.io",
        "volumesnapshotlocations.velero.io",
        "virtualmachineinstancemigrations.kubevirt.io"
      ],
      "includedNamespaceScopedResources": [
        "configmaps"
      ],
      "includedNamespaces": [
        "shop"
      ]
    }
    "#);
}

#[test]
fn what_the_tenant_left_out_already_is_not_named_twice() {
    let mut world = World::with(&["shop"]);
    world.apply(nab_with("shop/daily", json!({"excludedResources": ["secrets", "clusterroles"]})));
    world.settle();
    let excluded = world.get("backup shop-daily-<1>")["spec"]["excludedResources"].clone();
    let excluded: Vec<_> = excluded.as_array().unwrap().iter().filter_map(|name| name.as_str()).collect();
    assert_eq!(&excluded[..2], ["secrets", "clusterroles"]);
    assert_eq!(excluded.iter().filter(|name| **name == "clusterroles").count(), 1);
}

/// B2
#[test]
fn b2_a_hook_applies_to_the_own_namespace_alone() {
    let mut world = World::with(&["shop"]);
    let exec = json!({"command": ["sync"], "timeout": "30s"});
    let hooks = json!({"resources": [{"name": "flush", "pre": [{"exec": exec}]}]});
    world.apply(nab_with("shop/daily", json!({"hooks": hooks})));
    world.settle();
    let hook = &world.get("backup shop-daily-<1>")["spec"]["hooks"]["resources"][0];
    assert_eq!(hook["includedNamespaces"], json!(["shop"]));
    assert_eq!(hook["pre"][0]["exec"], exec);
}

#[test]
fn a_location_of_the_tenants_becomes_veleros_name_for_it() {
    let mut world = World::with(&["shop"]);
    world.tenant_storage("shop/bucket");
    world.apply(nab_with("shop/daily", json!({"storageLocation": "bucket"})));
    assert_snapshot!(world.trace(), @r"
    hold NonAdminBackup shop/daily
    create Backup velero/shop-daily-<1>
    status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1
    event Normal BackupScheduled: Velero was given the backup as shop-daily-<1>
    ");
    let spec = world.get("backup shop-daily-<1>")["spec"].clone();
    assert_eq!(short(spec["storageLocation"].as_str().unwrap()), "shop-bucket-<l1>");
}

#[test]
fn zeros_that_go_clients_send_are_not_meant() {
    let mut world = World::with(&["shop"]);
    let zeros = json!({"ttl": "0s", "hooks": {}, "metadata": {}, "csiSnapshotTimeout": "0s",
        "itemOperationTimeout": "0s", "storageLocation": ""});
    world.apply(nab_with("shop/daily", zeros));
    world.settle();
    let spec = world.get("backup shop-daily-<1>")["spec"].clone();
    let fields: Vec<_> = spec.as_object().unwrap().keys().cloned().collect();
    assert_eq!(fields, ["excludedResources", "includedNamespaces"]);
}

#[test]
fn a_namespace_nobody_has_told_of_yet_is_waited_for() {
    let mut world = World::with(&["shop"]);
    world.namespaces_are_not_seen();
    world.apply(nab("shop/daily"));
    assert_eq!(world.trace(), "");
    world.namespaces_are_seen();
    world.settle();
    assert_eq!(world.names(Kind::Backup), ["velero/shop-daily-<1>"]);
}

#[test]
fn many_at_once_get_their_places_in_the_queue() {
    let mut world = World::with(&["shop", "office"]);
    world.hand_over_at_once();
    for name in ["shop/a", "office/b", "shop/c"] {
        world.apply(nab(name));
        world.settle();
        world.pass(Duration::from_secs(1));
    }
    assert_snapshot!(world.trace(), @r"
    hold NonAdminBackup shop/a
    create Backup velero/shop-a-<1>
    status NonAdminBackup shop/a Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1
    event Normal BackupScheduled: Velero was given the backup as shop-a-<1>
    hold NonAdminBackup office/b
    create Backup velero/office-b-<2>
    status NonAdminBackup office/b Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=2
    event Normal BackupScheduled: Velero was given the backup as office-b-<2>
    hold NonAdminBackup shop/c
    create Backup velero/shop-c-<3>
    status NonAdminBackup shop/c Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=3
    event Normal BackupScheduled: Velero was given the backup as shop-c-<3>
    ");
}

#[test]
fn each_of_the_same_name_made_later_is_another() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    world.settle();
    world.delete("nab shop/daily");
    world.settle();
    world.apply(nab("shop/daily"));
    world.settle();
    assert_eq!(world.names(Kind::Backup), ["velero/shop-daily-<2>"]);
}
