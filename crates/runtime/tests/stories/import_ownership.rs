//! Backups that Velero imports from storage, and their owner.

use api::velero::{Backup, BackupStorageLocation};
use api::{Kind, labels};
use k8s_openapi::api::core::v1::Namespace;
use planner::Key;
use planner::policy::{Adoption, RequesterMode};
use planner::sync::{Finding, candidates, find, left_by_a_namesake};
use serde_json::{Value, json};

use crate::storage::{available, world};
use crate::world::long;
use crate::world::manifests::{nab, namespace, nar, object};

/// A backup as Velero finds it in storage.
pub(super) fn stored(name: &str, storage: &str, owner: &str, origin: &str) -> Value {
    let name = long(name);
    let rest = json!({
        "metadata": {
            "annotations": {labels::NAB_NAMESPACE: owner, labels::NAB_NAME: origin},
            "labels": {labels::OADP: labels::OADP_VALUE, labels::MANAGED_BY: labels::MANAGED_BY_VALUE,
                labels::NAB_NACUUID: name},
        },
        "spec": {"storageLocation": storage, "includedNamespaces": [owner]},
        "status": {"phase": "Completed", "completionTimestamp": "2025-12-01T00:00:00Z"},
    });
    object(Kind::Backup, &format!("velero/{name}"), rest)
}

#[test]
fn what_velero_finds_in_a_tenants_bucket_is_the_tenants() {
    let mut world = world(&["shop"]);
    let storage = available(&mut world, "shop/bucket", "mine");
    let mut found = stored("shop-daily-<1>", &storage, "shop", "daily");
    // From another cluster, where the namespace had another uid.
    found["metadata"]["annotations"][labels::ORIGIN_NAMESPACE_UID] = json!("elsewhere");
    world.apply(found);
    world.settle();
    let request = world.get("nab shop/daily");
    assert_eq!(request["metadata"]["labels"], json!({labels::SYNCED_FROM: long("shop-daily-<1>")}));
    assert_eq!(request["spec"]["backupSpec"]["storageLocation"], "bucket");
    assert_eq!(request["status"]["phase"], "Created");
    world.apply(nar("shop/back", "daily"));
    world.settle();
    assert_eq!(world.names(Kind::NonAdminBackup), ["shop/daily"]);

    // While its location is missing the owner is unknown, but the request that shows it stays as it is.
    world.delete(&format!("bsl {storage}"));
    assert!(world.collect_garbage().is_empty());
    world.settle();

    // Its request is removed by force: it gets another.
    world.edit("nab shop/daily", json!({"metadata": {"finalizers": null}}));
    world.settle();
    assert!(world.has("nab shop/daily"));
}

#[test]
fn forged_backups_give_nobody_anything_and_stop_nobody() {
    let mut world = world(&["shop", "evil"]);
    let mine = available(&mut world, "shop/bucket", "mine");
    let theirs = available(&mut world, "evil/bucket", "theirs");
    world.apply(stored("real", "default", "shop", "real"));
    world.settle();
    world.apply(stored("planted", &theirs, "shop", "tempting"));
    let mut copied = stored("copied", &theirs, "evil", "copied");
    copied["metadata"]["labels"][labels::NAB_NACUUID] = json!("real");
    world.apply(copied);
    world.apply(stored("unnameable", &theirs, "evil", "../../shop"));
    let mut wide = stored("wide", &theirs, "evil", "wide");
    wide["spec"]["includedNamespaces"] = json!(["evil", "shop"]);
    world.apply(wide);
    let mut new = stored("new", &theirs, "evil", "new");
    new["status"] = json!({"phase": "New"});
    world.apply(new);
    world.apply(stored("lost", "nowhere", "shop", "lost"));
    world.apply(stored("good", &mine, "shop", "good"));
    world.settle();
    assert_eq!(world.names(Kind::NonAdminBackup), ["shop/good", "shop/real"]);
    let reported = world.whole_trace();
    for (name, why) in [
        ("planted", "it says that it belongs to another namespace"),
        ("copied", "its label names another backup"),
        ("unnameable", "no request can have the name"),
        ("wide", "it is not of this namespace alone"),
    ] {
        assert!(
            reported.contains(&format!("BackupIgnored: backup \"{name}\" in this storage is ignored: {why}")),
            "{reported}"
        );
    }
    assert_eq!(
        world.collect_garbage(),
        ["Backup lost"],
        "what nobody can find again goes; forgeries Velero would find"
    );
}

/// Velero users without nacre have Backups too. Each mark counts: without any one of them it is not a request's.
#[test]
fn backups_that_no_request_asked_for_are_left_alone() {
    for mark in [labels::OADP, labels::MANAGED_BY, labels::NAB_NACUUID] {
        let mut world = world(&["shop"]);
        let mine = available(&mut world, "shop/bucket", "mine");
        world.settle();
        world.trace();
        for (name, storage) in [("by-hand", "default"), ("by-hand-too", &mine)] {
            let mut found = stored(name, storage, "shop", name);
            found["metadata"]["labels"].as_object_mut().unwrap().remove(mark);
            world.apply(found);
        }
        world.settle();
        assert_eq!(world.trace(), "", "without {mark}");
        assert!(world.names(Kind::NonAdminBackup).is_empty(), "without {mark}");
        assert!(world.collect_garbage().is_empty(), "without {mark}");
    }
}

/// A spec as long as nobody writes one would be written into the tenant's namespace; only what it is of is kept.
#[test]
fn a_backup_with_an_absurd_spec_is_shown_without_it() {
    let mut world = world(&["shop"]);
    let mut found = stored("huge", "default", "shop", "web-1.daily");
    found["spec"]["includedResources"] = json!(vec!["x".repeat(1000); 300]);
    world.apply(found);
    world.settle();
    let request = world.get("nab shop/web-1.daily");
    assert_eq!(request["spec"]["backupSpec"], json!({"includedNamespaces": ["shop"]}));
    assert_eq!(request["status"]["phase"], "Created");
}

/// What `kubectl nacre adopt` lists.
#[test]
fn what_a_namesake_left_is_told_apart_from_everything_else() {
    let mut world = world(&["shop"]);
    let storage = available(&mut world, "shop/bucket", "mine");
    let location: BackupStorageLocation =
        serde_json::from_value(world.get(&format!("bsl {storage}"))).unwrap();
    let namespace: Namespace = serde_json::from_value(world.get("ns shop")).unwrap();
    let left = |change: &dyn Fn(&mut Value)| -> Backup {
        let mut left = stored("left", "", "shop", "daily");
        left["metadata"]["annotations"][labels::ORIGIN_NAMESPACE_UID] = json!("earlier");
        change(&mut left);
        serde_json::from_value(left).unwrap()
    };
    let reported = |velero: &Backup| left_by_a_namesake(velero, None, &namespace).map(str::to_owned);
    assert_eq!(reported(&left(&|_| ())).as_deref(), Some("daily"));

    let own = json!(namespace.metadata.uid);
    let others: [&dyn Fn(&mut Value); 5] = [
        &|this| this["metadata"]["annotations"][labels::ORIGIN_NAMESPACE_UID] = own.clone(),
        &|another| another["metadata"]["annotations"][labels::NAB_NAMESPACE] = json!("office"),
        &|by_hand| by_hand["metadata"]["labels"] = json!({}),
        &|on_its_way_out| on_its_way_out["status"]["phase"] = json!("Deleting"),
        &|lost| lost["spec"]["storageLocation"] = json!("nowhere"),
    ];
    for (at, change) in others.into_iter().enumerate() {
        assert_eq!(reported(&left(change)), None, "other {at}");
    }
    let in_a_bucket = left(&|velero| velero["spec"]["storageLocation"] = json!(storage));
    assert_eq!(left_by_a_namesake(&in_a_bucket, Some(&location), &namespace), None);
}

#[test]
fn a_look_at_everything_begins_with_what_is_over() {
    let mut world = world(&["shop"]);
    for (name, status) in [
        ("over", json!({"phase": "Completed", "completionTimestamp": "2025-12-01T00:00:00Z"})),
        ("under-way", json!({"phase": "InProgress", "completionTimestamp": null})),
        ("on-its-way-out", json!({"phase": "Deleting", "completionTimestamp": "2025-12-01T00:00:00Z"})),
    ] {
        let mut found = stored(name, "default", "shop", name);
        found["status"] = status;
        world.apply(found);
    }
    assert_eq!(candidates(&world.state()), [Key::new(Kind::Backup, "velero", "over")]);
}

#[test]
fn a_name_that_is_taken_gets_an_end() {
    let mut world = world(&["shop"]);
    world.apply(nab("shop/daily"));
    world.settle();
    world.apply(stored("shop-daily-<7>", "default", "shop", "daily"));
    world.settle();
    let requests = world.names(Kind::NonAdminBackup);
    assert_eq!(requests.len(), 2);
    assert!(requests[1].starts_with("shop/daily-"), "{requests:?}");
    assert_eq!(world.get(&format!("nab {}", requests[1]))["status"]["phase"], "Created");
}

#[test]
fn a_namespace_made_anew_gets_its_namesakes_backups_only_from_an_administrator() {
    let found = |name: &str| {
        let mut found = stored(name, "default", "shop", name);
        found["metadata"]["annotations"][labels::ORIGIN_NAMESPACE_UID] = json!("earlier");
        found
    };
    let mut world = world(&["shop"]);
    world.apply(found("one"));
    world.settle();
    assert!(world.names(Kind::NonAdminBackup).is_empty());
    assert!(world.whole_trace().contains("Warning BackupHeldBack"));
    assert!(world.collect_garbage().is_empty(), "it waits for an administrator");

    // Given to another namesake: still not. Given to this one: there.
    let record =
        |uid: &str| object(Kind::ConfigMap, "velero/nacre-adoptions", json!({"data": {"shop": uid}}));
    world.apply(record("another"));
    world.settle();
    assert!(world.names(Kind::NonAdminBackup).is_empty());
    let uid = world.get("ns shop")["metadata"]["uid"].as_str().unwrap().to_owned();
    world.edit("cm nacre-adoptions", json!({"data": {"shop": uid}}));
    world.settle();
    assert_eq!(world.names(Kind::NonAdminBackup), ["shop/one"]);
    assert_eq!(world.get("nab shop/one")["status"]["phase"], "Created");

    assert!(world.get("nab shop/one")["metadata"]["annotations"][labels::REQUESTER].is_null());

    // For disaster recovery, whoever has the name.
    let mut world = self::world(&["shop"]);
    world.policy(|policy| policy.sync.adoption = Adoption::Name);
    world.apply(found("two"));
    world.settle();
    assert_eq!(world.names(Kind::NonAdminBackup), ["shop/two"]);
    assert_eq!(world.get("nab shop/two")["status"]["phase"], "Created");
    world.policy(|policy| policy.sync.adoption = Adoption::Approval);
    world.settle();
    assert_eq!(world.get("nab shop/two")["status"]["phase"], "Created", "what was given is not taken back");
}

/// What an administrator gave carries that administrator's name; what was merely found in storage nobody asked for.
#[test]
fn what_was_adopted_carries_the_name_of_who_adopted_it() {
    let found = |name: &str, namespace: &str| {
        let mut found = stored(name, "default", "shop", name);
        found["metadata"]["annotations"][labels::ORIGIN_NAMESPACE_UID] = json!(namespace);
        found["metadata"]["annotations"][labels::REQUESTER] = json!("ada");
        found
    };
    let mut world = world(&["shop"]);
    // A record that nobody left is wanted by the policy, and stops nothing here: Velero is given nothing to do.
    world.policy(|policy| policy.requester.unrecorded = RequesterMode::Enforce);
    let uid = world.get("ns shop")["metadata"]["uid"].as_str().unwrap().to_owned();
    world.apply(found("own", &uid));
    world.apply(found("left", "earlier"));
    let given = json!({"data": {"shop": uid, "shop.requester": "root"}});
    world.apply(object(Kind::ConfigMap, "velero/nacre-adoptions", given));
    world.settle();
    let by = |name: &str| {
        let request = world.get(&format!("nab shop/{name}"));
        assert_eq!(request["status"]["phase"], "Created", "{name}");
        let metadata = serde_json::from_value(request["metadata"].clone()).unwrap();
        planner::requester::of(&metadata).user().map(str::to_owned)
    };
    assert_eq!(by("left").as_deref(), Some("root"));
    assert_eq!(by("own"), None);
    // Who asked for the backup itself stays known to administrators, and decides who may delete its data.
    let velero = world.get("backup left")["metadata"]["annotations"].clone();
    assert_eq!((&velero[labels::REQUESTER], &velero[labels::ADOPTED_BY]), (&json!("ada"), &json!("root")));
}

/// The bytes in a tenant's bucket are the tenant's: a name in them is nobody's.
#[test]
fn what_a_tenants_bucket_says_about_who_adopted_it_is_not_believed() {
    let mut world = world(&["shop"]);
    let storage = available(&mut world, "shop/bucket", "mine");
    let mut found = stored("planted", &storage, "shop", "planted");
    found["metadata"]["annotations"][labels::ADOPTED_BY] = json!("root");
    found["metadata"]["annotations"][labels::REQUESTER] = json!("root");
    world.apply(found);
    world.settle();
    let request = world.get("nab shop/planted");
    assert_eq!(request["status"]["phase"], "Created");
    assert!(request["metadata"]["annotations"][labels::REQUESTER].is_null(), "{request}");
}

#[test]
fn a_namespace_that_comes_later_finds_its_backups() {
    let mut world = world(&[]);
    world.apply(stored("shop-daily", "default", "shop", "daily"));
    world.settle();
    assert!(world.collect_garbage().is_empty(), "the namespace may come back");
    world.apply(namespace("shop"));
    world.settle();
    assert_eq!(world.names(Kind::NonAdminBackup), ["shop/daily"]);
}

/// Others that are taken for its own would keep it from its owner, and its own taken for others' would double it.
#[test]
fn a_backup_with_a_request_gets_no_second_one() {
    let mut world = world(&["shop"]);
    world.apply(nab("shop/made"));
    world.apply(stored("found", "default", "shop", "found"));
    world.settle();
    let made = world.velero_name("nab shop/made");
    world.velero_starts(&made);
    world.velero_completes(&made);
    world.settle();
    assert_eq!(world.names(Kind::NonAdminBackup), ["shop/found", "shop/made"]);
    for name in [made.as_str(), "found"] {
        let velero: Backup = serde_json::from_value(world.get(&format!("backup {name}"))).unwrap();
        assert_eq!(find(&world.state(), &velero), Finding::Settled, "{name}");
    }
}

/// A status is a hint, which a tenant may have written.
#[test]
fn a_request_that_only_claims_a_backup_does_not_keep_it_from_its_owner() {
    let mut world = world(&["shop"]);
    world.apply(nab("shop/greedy"));
    world.settle();
    world.forge_status("nab shop/greedy", json!({"phase": "Created", "veleroBackup": {"nacuuid": "found"}}));
    let found = stored("found", "default", "shop", "found");
    world.apply(found.clone());
    // Whoever of the two is decided about first.
    let found = serde_json::from_value(found).unwrap();
    assert!(matches!(find(&world.state(), &found), Finding::Wanted(..)));
    world.settle();
    assert_eq!(world.names(Kind::NonAdminBackup), ["shop/found", "shop/greedy"]);
}

#[test]
fn closed_namespaces_get_no_requests() {
    let mut world = world(&["shop", "closed", "leaving"]);
    world.policy(|policy| policy.namespaces.excluded.push("closed".to_owned()));
    world.edit("ns leaving", json!({"metadata": {"finalizers": ["kept"]}}));
    world.delete("ns leaving");
    for name in ["closed", "leaving", "velero"] {
        world.apply(stored(name, "default", name, name));
    }
    world.settle();
    assert!(world.names(Kind::NonAdminBackup).is_empty());
    assert!(!world.whole_trace().contains("BackupHeldBack"));
}

#[test]
fn only_names_that_a_request_can_have_are_taken_from_storage() {
    let mut world = world(&["shop"]);
    let mine = available(&mut world, "shop/bucket", "mine");
    let long = "x".repeat(64);
    for (at, origin) in ["-a", "a-", "a_b", "a..b", "A", ""].into_iter().enumerate() {
        world.apply(stored(&format!("odd-{at}"), &mine, "shop", origin));
    }
    world.apply(stored(&long, &mine, "shop", "longer-than-a-label"));
    world.apply(stored(&long[1..], &mine, "shop", "as-long-as-a-label"));
    world.settle();
    assert_eq!(world.names(Kind::NonAdminBackup), ["shop/as-long-as-a-label"]);
    assert_eq!(world.whole_trace().matches("BackupIgnored").count(), 7);
}
