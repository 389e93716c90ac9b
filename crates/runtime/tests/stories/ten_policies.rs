//! "Ten policies you will want", as they are written in docs/ten-policies.md: each is read by the reader of policies, and
//! has the effect that the page describes, with the message that the page shows.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::{Kind, labels};
use k8s_openapi::api::core::v1::ConfigMap;
use planner::Policy;
use planner::admission::{ReviewedObject, review};
use planner::policy::{CONFIG_MAP, KEY, Policies, Reading, Readings, load};
use serde_json::{Value, json};

use crate::schedules::nas;
use crate::storage::{available, bucket, world};
use crate::world::World;
use crate::world::manifests::{nab, nab_with, nar_with, object};

const PAGE: &str = include_str!("../../../../docs/ten-policies.md");

/// One section of the page.
struct Section {
    policy: &'static str,
    messages: Vec<&'static str>,
}

/// The section with this number.
fn section(number: usize) -> Section {
    let text = PAGE.split("\n## ").nth(number).unwrap();
    assert!(text.starts_with(&format!("{number}. ")), "section {number} is not where it should be: {text}");
    let blocks = |fence: &'static str| {
        text.split(fence).skip(1).map(|rest| rest.split("```").next().unwrap().trim_end())
    };
    let policies: Vec<_> = blocks("```yaml\n").collect();
    let [policy] = policies[..] else { panic!("section {number} has {} policies", policies.len()) };
    Section { policy, messages: blocks("```text\n").collect() }
}

/// What a policy of the page comes to.
fn policies(text: &str) -> Policies {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(CONFIG_MAP.to_owned());
    map.data = Some(BTreeMap::from([(KEY.to_owned(), text.to_owned())]));
    let loaded =
        load(None, &Readings { config_map: Reading::Found(Arc::new(map)), applications: Reading::Absent });
    assert!(loaded.problems.is_empty(), "{:?}\n{text}", loaded.problems);
    loaded.policies.unwrap()
}

impl Section {
    fn base(&self) -> Policy {
        Policy::clone(policies(self.policy).base())
    }

    /// Puts it in force, for everybody.
    fn apply(&self, world: &mut World) {
        let policy = self.base();
        world.policy(|now| *now = policy);
        world.settle();
    }

    /// The condition of this object is the message that the page shows.
    fn shows(&self, which: usize, world: &World, object: &str, condition: &str) {
        let found = format!("{condition}={}", world.condition(object, condition));
        assert_eq!(found, self.messages[which]);
    }
}

/// A cluster with this policy in force, in which somebody asks for a backup.
fn asked(section: &Section, spec: Value) -> World {
    let mut world = World::with(&["shop"]);
    section.apply(&mut world);
    world.apply(nab_with("shop/daily", spec));
    world.settle();
    world
}

/// The spec of the Velero Backup.
fn given(world: &World) -> Value {
    world.get(&format!("backup {}", world.velero_name("nab shop/daily")))["spec"].clone()
}

fn finish(world: &mut World, request: &str) {
    let velero = world.velero_name(request);
    world.velero_starts(&velero);
    world.velero_completes(&velero);
    world.settle();
}

#[test]
fn there_are_ten_and_each_shows_what_a_tenant_sees() {
    assert_eq!(PAGE.matches("\n## ").count(), 10);
    for number in 1..=10 {
        assert!(!section(number).messages.is_empty(), "{number}");
    }
}

#[test]
fn one_kept_long_enough_and_not_for_ever() {
    let one = section(1);
    assert_eq!(given(&asked(&one, json!({})))["ttl"], "720h");
    assert_eq!(given(&asked(&one, json!({"ttl": "2160h"})))["ttl"], "2160h");
    one.shows(0, &asked(&one, json!({"ttl": "1h"})), "nab shop/daily", "Accepted");
    let long = asked(&one, json!({"ttl": "2161h"}));
    assert!(long.condition("nab shop/daily", "Accepted").contains("at most 2160h"));
}

#[test]
fn two_a_share_for_each_namespace() {
    let two = section(2);
    let mut world = asked(&two, json!({}));
    world.apply(nab("shop/second"));
    world.settle();
    two.shows(0, &world, "nab shop/second", "Accepted");
    finish(&mut world, "nab shop/daily");
    world.pass(std::time::Duration::from_secs(5));
    assert!(world.condition("nab shop/second", "Accepted").starts_with("True/"), "it starts by itself");
    let Policy { backup, .. } = two.base();
    assert_eq!((backup.max_per_namespace, backup.max_bytes()), (Some(30), Some(500 << 30)));
}

#[test]
fn three_own_buckets_after_a_look() {
    let three = section(3);
    let mut world = world(&["shop"]);
    three.apply(&mut world);
    world.apply(bucket("shop/mine", "mine"));
    let mut elsewhere = bucket("shop/elsewhere", "other");
    elsewhere["spec"]["backupStorageLocationSpec"]["config"]["s3Url"] =
        json!("https://elsewhere.example.com");
    world.apply(elsewhere);
    world.settle();
    three.shows(0, &world, "nabsl shop/mine", "ClusterAdminApproved");
    three.shows(1, &world, "nabsl shop/elsewhere", "Accepted");
    assert!(world.names(Kind::BackupStorageLocation).iter().all(|name| !name.contains("mine")));
    let name = world.velero_name("nabsl shop/mine");
    world.edit(&format!("request {name}"), json!({"spec": {"approvalDecision": "approve"}}));
    world.settle();
    assert!(world.has(&format!("bsl {name}")), "once approved, Velero has it");
    let mut known = bucket("shop/known", "known");
    known["spec"]["backupStorageLocationSpec"]["config"]["s3Url"] = json!("https://store.example.com");
    world.apply(known);
    world.settle();
    assert!(world.condition("nabsl shop/known", "Accepted").starts_with("True/"));
}

#[test]
fn four_only_the_clusters_storage() {
    let four = section(4);
    let mut world = World::with(&["shop"]);
    world.tenant_storage("shop/bucket");
    four.apply(&mut world);
    world.apply(nab_with("shop/daily", json!({"storageLocation": "bucket"})));
    world.apply(nab("shop/theirs"));
    world.settle();
    four.shows(0, &world, "nab shop/daily", "Accepted");
    assert!(world.condition("nab shop/theirs", "Accepted").starts_with("True/"));
}

#[test]
fn five_only_tenants_own_storage() {
    let five = section(5);
    five.shows(0, &asked(&five, json!({})), "nab shop/daily", "Accepted");
    let mut world = world(&["shop"]);
    five.apply(&mut world);
    available(&mut world, "shop/bucket", "mine");
    world.apply(nab_with("shop/daily", json!({"storageLocation": "bucket"})));
    world.settle();
    assert!(world.condition("nab shop/daily", "Accepted").starts_with("True/"));
    assert_eq!(five.base().restore.from_tenant_storage.max_items, 20_000);
}

#[test]
fn six_a_nightly_backup_of_every_namespace() {
    let six = section(6);
    let mut world = World::with(&["shop"]);
    six.apply(&mut world);
    world.settle();
    assert_eq!(world.get("nas shop/nightly")["spec"]["retention"], json!({"keepDaily": 7, "keepWeekly": 4}));
    assert!(world.condition("nas shop/nightly", "Accepted").starts_with("True/"));
    let few = nas("shop/few", "0 2 * * *", json!({"retention": {"keepDaily": 1}}));
    let asked = ReviewedObject {
        kind: Kind::NonAdminSchedule,
        namespace: "shop",
        name: "few",
        object: &few,
        old: None,
    };
    assert_eq!(review(&world.state(), &asked).refusal.as_deref(), Some(six.messages[0]));
}

#[test]
fn seven_no_data_that_exists_only_in_the_cluster() {
    let seven = section(7);
    assert_eq!(given(&asked(&seven, json!({})))["snapshotMoveData"], true);
    seven.shows(0, &asked(&seven, json!({"snapshotMoveData": false})), "nab shop/daily", "Accepted");
}

#[test]
fn eight_no_commands_in_pods() {
    let eight = section(8);
    let hooks = json!({"resources": [{"name": "flush"}]});
    eight.shows(0, &asked(&eight, json!({"hooks": hooks})), "nab shop/daily", "Accepted");
    let mut world = asked(&eight, json!({}));
    finish(&mut world, "nab shop/daily");
    world.apply(nar_with("shop/back", json!({"backupName": "daily", "hooks": hooks})));
    world.settle();
    assert!(world.condition("nar shop/back", "Accepted").contains("does not allow hooks"));
}

#[test]
fn nine_everything_in_the_open() {
    let nine = section(9);
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    world.settle();
    finish(&mut world, "nab shop/daily");
    let target = json!({"spec": {"target": {"kind": "BackupResults", "name": "daily"}}});
    world.apply(object(Kind::NonAdminDownloadRequest, "shop/how", target));
    world.settle();
    nine.shows(0, &world, "nadr shop/how", "NonAdminBackupStorageLocationNotUsed");
    nine.apply(&mut world);
    assert_eq!(world.names(Kind::DownloadRequest).len(), 1, "Velero makes a link");
    let copies = world.names(Kind::Backup).into_iter().filter(|name| name.starts_with("shop/")).count();
    assert_eq!(copies, 1, "the owners see Velero's Backup");
    assert!(world.get("ns shop")["metadata"]["labels"][labels::VELERO_VIEW].is_null(), "without any label");
    world.policy(|now| *now = Policy::default());
    world.settle();
    let copies = world.names(Kind::Backup).into_iter().filter(|name| name.starts_with("shop/")).count();
    assert_eq!(copies, 0, "they vanish when it is switched off");
}

#[test]
fn ten_more_for_those_who_pay_for_it() {
    let ten = section(10);
    let mut world = asked(&ten, json!({}));
    world.apply(nab("shop/second"));
    world.settle();
    ten.shows(0, &world, "nab shop/second", "Accepted");
    let gold = BTreeMap::from([("nacre.dev/tier".to_owned(), "gold".to_owned())]);
    let policy = policies(ten.policy).for_namespace("shop", &gold);
    assert_eq!((policy.backup.max_per_namespace, policy.queue.weight), (Some(1000), 300));
    world.policy(|now| *now = Policy::clone(&policy));
    world.settle();
    assert!(world.condition("nab shop/second", "Accepted").starts_with("True/"));
}
