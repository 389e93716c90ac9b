//! A policy that vanishes stays in force for ten minutes, over a restart too.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use planner::policy::{
    IN_FORCE, InForce, LastPolicy, Policies, Reading, Readings, STAYS_IN_FORCE, Source, in_force,
};
use planner::{Action, Policy};
use serde_json::{Value, json};

use super::{application, config_map, named_application};

const APPROVAL: &str = "storageLocations: { requireApproval: true }";

fn start() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().unwrap()
}

fn after(seconds: i64) -> Timestamp {
    start() + SignedDuration::from_secs(seconds)
}

fn nothing() -> Readings {
    Readings { config_map: Reading::Absent, applications: Reading::Absent }
}

fn text(text: &str) -> Readings {
    Readings { config_map: config_map(text), ..nothing() }
}

fn dpa(spec: &Value) -> Readings {
    Readings { applications: application(spec), ..nothing() }
}

/// nacre as it runs: it remembers the policy and what each source last said.
#[derive(Default)]
struct Nacre {
    policies: Option<Policies>,
    last: LastPolicy,
    copy: Option<ConfigMap>,
}

impl Nacre {
    fn reads(&mut self, readings: &Readings, now: Timestamp) -> InForce {
        let found = in_force(self.policies.as_ref(), &self.last, readings, now);
        self.policies.clone_from(&found.loaded.policies);
        self.last.clone_from(&found.last);
        match self.last.write("velero", self.copy.as_ref()) {
            None => {}
            Some(Action::Create(object)) => {
                let mut map: ConfigMap = serde_json::from_value(object.body).unwrap();
                assert_eq!(map.metadata.name.as_deref(), Some(IN_FORCE));
                map.metadata.uid = Some("uid".to_owned());
                map.metadata.resource_version = Some("1".to_owned());
                self.copy = Some(map);
            }
            Some(Action::Patch(_, body)) => {
                let data = self.copy.as_mut().unwrap().data.get_or_insert_default();
                for (key, value) in body["data"].as_object().unwrap() {
                    match value.as_str() {
                        Some(text) => drop(data.insert(key.clone(), text.to_owned())),
                        None => drop(data.remove(key)),
                    }
                }
            }
            Some(other) => panic!("{other:?}"),
        }
        assert_eq!(self.last.write("velero", self.copy.as_ref()), None, "written once");
        found
    }

    /// Everything in memory is lost; the copy in the cluster is not.
    fn restarted(self) -> Self {
        Self { policies: None, last: LastPolicy::read(self.copy.as_ref()), copy: self.copy }
    }

    fn policy(&self) -> Arc<Policy> {
        self.policies.as_ref().unwrap().base().clone()
    }

    fn asks_for_approval(&self) -> bool {
        self.policy().storage_locations.require_approval
    }
}

fn running(readings: &Readings) -> Nacre {
    let mut nacre = Nacre::default();
    assert!(nacre.reads(readings, start()).vanished.is_empty());
    nacre
}

#[test]
fn for_ten_minutes_nothing_changes_and_then_nothing_is_limited() {
    let mut nacre = running(&text(APPROVAL));
    let before = nacre.policies.clone();
    for seconds in [2, 30, 599] {
        let found = nacre.reads(&nothing(), after(seconds));
        assert_eq!(found.loaded.policies, before, "after {seconds} s");
        assert!(found.loaded.problems.is_empty());
        assert_eq!(found.vanished.len(), 1);
        assert_eq!((found.vanished[0].since, found.vanished[0].until), (after(2), after(602)));
        assert_eq!(
            found.vanished[0].to_string(),
            "ConfigMap nacre-policy vanished at 2026-11-16T12:00:02Z; its policy stays in force until 2026-11-16T12:10:02Z"
        );
    }
    let found = nacre.reads(&nothing(), after(602));
    assert!(found.vanished.is_empty() && !nacre.asks_for_approval());
    // And it does not come back with a restart.
    assert_eq!(nacre.copy.as_ref().unwrap().data.as_ref().unwrap().len(), 0);
    let mut nacre = nacre.restarted();
    assert!(nacre.reads(&nothing(), after(603)).vanished.is_empty());
    assert!(!nacre.asks_for_approval());
}

#[test]
fn put_back_it_counts_as_written_at_once() {
    let mut nacre = running(&text(APPROVAL));
    nacre.reads(&nothing(), after(2));
    let found = nacre.reads(&text("storageLocations: { requireApproval: false }"), after(4));
    assert!(found.vanished.is_empty() && !nacre.asks_for_approval(), "whoever means it says so");
    // The ten minutes are counted again.
    let mut nacre = running(&text(APPROVAL));
    nacre.reads(&nothing(), after(2));
    nacre.reads(&text(APPROVAL), after(500));
    nacre.reads(&nothing(), after(700));
    assert!(nacre.asks_for_approval());
}

#[test]
fn a_restart_does_not_open_what_was_closed() {
    // Before it vanished, while it is gone, and while nacre was away.
    let mut nacre = running(&text(APPROVAL)).restarted();
    let found = nacre.reads(&nothing(), after(100));
    assert!(nacre.asks_for_approval());
    assert_eq!(found.vanished[0].until, after(700), "nobody saw it go");

    let mut nacre = nacre.restarted();
    nacre.reads(&nothing(), after(699));
    assert!(nacre.asks_for_approval());
    nacre.reads(&nothing(), after(700));
    assert!(!nacre.asks_for_approval(), "restarts do not make it longer");
}

#[test]
fn the_same_holds_for_an_application() {
    let spec = json!({"nonAdmin": {"enable": true, "requireApprovalForBSL": true, "enforceBackupSpec": {"snapshotVolumes": false}},
        "configuration": {"velero": {"defaultPlugins": ["aws"]}}});
    let other = json!({"configuration": {}});
    let another =
        Readings { applications: Reading::Found(vec![named_application("other", &other)]), ..nothing() };
    let empty = Readings { applications: Reading::Found(Vec::new()), ..nothing() };
    for gone in [nothing(), empty, another] {
        let mut nacre = running(&dpa(&spec)).restarted();
        let found = nacre.reads(&gone, after(2));
        assert!(nacre.asks_for_approval());
        assert_eq!(nacre.policy().backup.enforce.snapshot_volumes, Some(false));
        assert_eq!(found.vanished[0].source, Source::DataProtectionApplication);
        assert!(found.vanished[0].to_string().starts_with("DataProtectionApplication dpa vanished"));
        assert!(
            !nacre.copy.clone().unwrap().data.unwrap()["dataprotectionapplication.json"]
                .contains("configuration")
        );
        nacre.reads(&gone, after(602));
        assert!(!nacre.asks_for_approval());
    }
    // One that is there and says no more is taken at its word, as OADP does.
    let mut nacre = running(&dpa(&spec));
    assert!(nacre.reads(&dpa(&other), after(2)).vanished.is_empty());
    assert!(!nacre.asks_for_approval());
}

#[test]
fn switching_an_application_on_and_off_is_no_policy() {
    let spec = |enable: bool, more: &Value| {
        let mut block = json!({"enable": enable});
        block.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"nonAdmin": block})
    };
    let mut nacre = running(&dpa(&spec(true, &json!({}))));
    assert!(nacre.copy.is_none(), "it limits nothing");
    nacre.reads(&dpa(&spec(true, &json!({"requireApprovalForBSL": true}))), after(1));
    let copy = nacre.copy.clone();
    nacre.reads(&dpa(&spec(false, &json!({"requireApprovalForBSL": true}))), after(2));
    assert_eq!(nacre.copy, copy, "nothing is written");
    nacre.reads(&nothing(), after(3));
    assert!(nacre.asks_for_approval());
}

#[test]
fn an_emptied_config_map_is_gone_and_an_empty_text_is_a_word() {
    let mut nacre = running(&text(APPROVAL));
    let emptied = Readings { config_map: Reading::Found(Arc::default()), ..nothing() };
    assert_eq!(nacre.reads(&emptied, after(2)).vanished.len(), 1);
    assert!(nacre.asks_for_approval());
    assert!(nacre.reads(&text(""), after(4)).vanished.is_empty());
    assert!(!nacre.asks_for_approval());
    assert!(nacre.reads(&nothing(), after(6)).vanished.is_empty(), "nothing is missed");
}

#[test]
fn a_broken_policy_that_vanishes_leaves_the_last_good_one_in_force() {
    let mut nacre = running(&text(APPROVAL));
    assert!(nacre.reads(&text("storageLocations: {"), after(2)).loaded.is_outdated());
    let mut nacre = nacre.restarted();
    let found = nacre.reads(&nothing(), after(4));
    assert!(!found.loaded.is_outdated() && nacre.asks_for_approval());
}

#[test]
fn one_broken_source_does_not_keep_the_other_from_being_remembered() {
    let broken = Reading::Unreadable("invalid type: string".to_owned());
    let both = Readings { config_map: config_map(APPROVAL), applications: broken.clone() };
    let mut nacre = running(&both);
    assert_eq!(nacre.policies, None);
    let mut mended = nacre.reads(&Readings { config_map: Reading::Absent, applications: broken }, after(2));
    assert_eq!((nacre.policies.clone(), mended.vanished.len()), (None, 1));
    mended = nacre.reads(&nothing(), after(4));
    assert!(nacre.asks_for_approval() && mended.vanished.len() == 1);
}

#[test]
fn what_contradicts_the_other_source_is_not_remembered() {
    let dpa = application(&json!({"nonAdmin": {"enforceBackupSpec": {"ttl": "48h"}}}));
    let with = |config_map| Readings { config_map, applications: dpa.clone() };
    let mut nacre = running(&with(config_map(APPROVAL)));
    let odd = nacre.reads(&with(config_map("backup: { enforce: { ttl: 24h } }")), after(2));
    assert!(odd.loaded.is_outdated());
    let gone = nacre.reads(&with(Reading::Absent), after(4));
    assert!(!gone.loaded.is_outdated() && nacre.asks_for_approval());
}

#[test]
fn a_clock_that_is_set_back_or_a_forged_time_makes_it_no_longer() {
    let mut nacre = running(&text(APPROVAL));
    nacre.reads(&nothing(), after(2));
    let data = nacre.copy.as_mut().unwrap().data.as_mut().unwrap();
    data.insert("policy.yaml.vanished".to_owned(), "9999-01-01T00:00:00Z".to_owned());
    let mut nacre = nacre.restarted();
    assert_eq!(nacre.reads(&nothing(), after(10)).vanished[0].until, after(10) + STAYS_IN_FORCE);
}
