//! NonAdminDownloadRequest: waiting, allowed by policy, visible to the owner only, expired.

use std::time::Duration;

use api::{Kind, labels};
use insta::assert_snapshot;
use planner::policy::Downloads;
use serde_json::{Value, json};

use crate::world::World;
use crate::world::manifests::{nab, nab_with, nar, object};

fn nadr(place: &str, kind: &str, of: &str) -> Value {
    object(Kind::NonAdminDownloadRequest, place, json!({"spec": {"target": {"kind": kind, "name": of}}}))
}

fn completes(world: &mut World, name: &str) {
    world.settle();
    world.velero_starts(name);
    world.settle();
    world.velero_completes(name);
    world.settle();
}

/// The name of the one Velero DownloadRequest there is.
fn only(world: &World) -> String {
    let names = world.names(Kind::DownloadRequest);
    assert_eq!(names.len(), 1, "{names:?}");
    format!("dr {}", names[0])
}

/// Velero answers with a link that lasts ten minutes.
fn velero_answers(world: &mut World) {
    let now: jiff::Timestamp =
        world.get("ns shop")["metadata"]["creationTimestamp"].as_str().unwrap().parse().unwrap();
    let expires = (now + Duration::from_mins(10)).to_string();
    let answer = json!({"phase": "Processed", "downloadURL": "https://s3/log", "expiration": expires});
    world.edit(&only(world), json!({"status": answer}));
}

#[test]
fn it_waits_for_a_backup_and_then_for_its_end() {
    let mut world = World::with(&["shop"]);
    world.tenant_storage("shop/bucket");
    world.apply(nadr("shop/log", "BackupLog", "daily"));
    world.settle();
    let reported = world.condition("nadr shop/log", "NonAdminBackupNotAvailable");
    assert!(reported.contains("there is no NonAdminBackup \"daily\""), "{reported}");
    world.apply(nab_with("shop/daily", json!({"storageLocation": "bucket"})));
    world.settle();
    let reported = world.condition("nadr shop/log", "NonAdminBackupNotAvailable");
    assert!(reported.contains("is not finished"), "{reported}");
    completes(&mut world, "shop-daily-<1>");
    assert_eq!(world.get(&only(&world))["spec"]["target"]["kind"], "BackupLog");
    assert_eq!(world.get("nadr shop/log")["status"]["phase"], "New", "nothing is in the way any more");

    velero_answers(&mut world);
    world.settle();
    let status = world.get("nadr shop/log")["status"].clone();
    assert_eq!(
        (&status["phase"], &status["velero"]["status"]["downloadURL"]),
        (&json!("Created"), &json!("https://s3/log"))
    );
    assert_eq!(status["conditions"].as_array().map(Vec::len), Some(1));

    // Shown, it is silent until its time is over; then both go.
    world.trace();
    world.pass(Duration::from_mins(9));
    assert_eq!(world.trace(), "");
    world.pass(Duration::from_mins(2));
    assert_snapshot!(world.trace(), @r"
    delete DownloadRequest velero/nadr-<d1>
    delete NonAdminDownloadRequest shop/log
    ");
}

#[test]
fn the_clusters_own_storage_opens_with_the_policy() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    completes(&mut world, "shop-daily-<1>");
    world.apply(nadr("shop/how", "BackupResults", "daily"));
    world.apply(nadr("shop/all", "BackupContents", "daily"));
    world.settle();
    assert!(world.names(Kind::DownloadRequest).is_empty());
    world.policy(|policy| policy.downloads.platform_storage = Downloads::Logs);
    world.settle();
    assert_eq!(world.get(&only(&world))["spec"]["target"]["kind"], "BackupResults");
    world.policy(|policy| policy.downloads.platform_storage = Downloads::All);
    world.settle();
    assert_eq!(world.names(Kind::DownloadRequest).len(), 2);
}

/// Without any policy: no link, and what the log says about the namespace.
#[test]
fn logs_in_the_clusters_own_storage_are_read_by_nacre() {
    let mut world = World::with(&["shop", "office"]);
    world.apply(nab("shop/daily"));
    completes(&mut world, "shop-daily-<1>");
    world.apply(nar("shop/again", "daily"));
    completes(&mut world, "shop-again-p-<r1>");
    for (request, kind, of, field) in
        [("log", "BackupLog", "daily", "backup"), ("how", "RestoreLog", "again", "restore")]
    {
        world.apply(nadr(&format!("shop/{request}"), kind, of));
        world.settle();
        let request = format!("nadr shop/{request}");
        assert_eq!(world.condition(&request, "Processed"), "Unknown/BeingRead: nacre reads the log");
        let velero = world.velero_name(&format!("{} shop/{of}", if of == "daily" { "nab" } else { "nar" }));
        let log = format!(
            "level=info msg=one name=prices namespace=shop\nlevel=info msg=two name=plans namespace=office\n\
             level=warning msg=three {field}=velero/{velero}\nlevel=warning msg=four {field}=velero/other\n"
        );
        world.nacre_reads_log(&request, &log);
        world.settle();
        let status = world.get(&request)["status"].clone();
        let lines = ["level=info msg=one namespace=shop name=prices", "level=warning msg=three"];
        assert_eq!(status["log"], json!({"lines": lines, "leftOut": 2}));
        assert_eq!(
            (&status["phase"], &status["conditions"][0]["status"]),
            (&json!("Created"), &json!("True"))
        );
        assert!(world.names(Kind::DownloadRequest).is_empty(), "nobody gets a link");
    }
    // It is silent until its time is over, and then it goes.
    world.trace();
    world.pass(Duration::from_mins(9));
    assert_eq!(world.trace(), "");
    world.pass(Duration::from_mins(2));
    assert_snapshot!(world.trace(), @r"
    delete NonAdminDownloadRequest shop/how
    delete NonAdminDownloadRequest shop/log
    ");
}

#[test]
fn a_restores_files_are_where_its_backup_is() {
    let mut world = World::with(&["shop"]);
    world.tenant_storage("shop/bucket");
    world.apply(nab_with("shop/daily", json!({"storageLocation": "bucket"})));
    completes(&mut world, "shop-daily-<1>");
    world.apply(nar("shop/again", "daily"));
    world.apply(nadr("shop/log", "RestoreLog", "again"));
    world.settle();
    let reported = world.condition("nadr shop/log", "NonAdminRestoreNotAvailable");
    assert!(reported.contains("is not finished"), "{reported}");
    completes(&mut world, "shop-again-t-<r1>");
    let target = world.get(&only(&world))["spec"]["target"].clone();
    assert_eq!(target["name"].as_str().map(str::to_owned), Some(world.velero_name("nar shop/again")));
}

/// D4
#[test]
fn d4_copied_names_and_labels_reach_nothing() {
    let mut world = World::with(&["shop", "evil"]);
    world.policy(|policy| policy.downloads.platform_storage = Downloads::All);
    world.apply(nab("shop/daily"));
    completes(&mut world, "shop-daily-<1>");
    let stolen = world.velero_name("nab shop/daily");
    let mut copy = nab("evil/copy");
    copy["metadata"]["labels"] = json!({labels::SYNCED_FROM: stolen});
    world.apply(copy);
    world.apply(nab("evil/told"));
    world.settle();
    world.forge_status(
        "nab evil/told",
        json!({"phase": "Created", "veleroBackup": {"name": stolen, "nacuuid": stolen}}),
    );
    for (request, target) in [("a", "copy"), ("b", "daily"), ("c", stolen.as_str())] {
        world.apply(nadr(&format!("evil/{request}"), "BackupContents", target));
    }
    world.settle();
    assert!(world.names(Kind::DownloadRequest).is_empty());
}

#[test]
fn the_velero_object_goes_with_its_request_also_while_nacre_is_down() {
    for down in [false, true] {
        let mut world = World::with(&["shop"]);
        world.tenant_storage("shop/bucket");
        world.apply(nab_with("shop/daily", json!({"storageLocation": "bucket"})));
        completes(&mut world, "shop-daily-<1>");
        world.apply(nadr("shop/log", "BackupLog", "daily"));
        world.settle();
        only(&world);
        if down {
            world.dies_after(world.writes());
            world.apply(nab("shop/other"));
            world.settle();
            assert!(world.is_down());
        }
        world.delete("nadr shop/log");
        world.settle();
        assert_eq!(world.names(Kind::DownloadRequest).len(), usize::from(down));
        if down {
            world.restart();
        }
        world.settle();
        assert!(world.names(Kind::DownloadRequest).is_empty(), "down: {down}");
    }
}
