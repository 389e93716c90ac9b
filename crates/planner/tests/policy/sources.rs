//! The policy in effect when a source cannot be read.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use planner::policy::{Loaded, Policies, Reading, Readings, Source, load};
use serde_json::json;

use super::{application, config_map, reported};

fn text(config_map: Reading<Arc<ConfigMap>>) -> Readings {
    Readings { config_map, applications: Reading::Absent }
}

fn good() -> Policies {
    load(None, &text(config_map("backup: { maxPerNamespace: 3 }"))).policies.unwrap()
}

#[test]
fn what_is_absent_or_not_for_us_says_nothing() {
    for config_map in [Reading::Absent, Reading::Forbidden] {
        for applications in [Reading::Absent, Reading::Forbidden, Reading::Found(Vec::new())] {
            let loaded = load(None, &Readings { config_map: config_map.clone(), applications });
            assert_eq!(loaded, Loaded { policies: Some(Policies::default()), problems: Vec::new() });
        }
    }
}

#[test]
fn an_empty_config_map_says_nothing_and_a_wrong_key_is_told() {
    let empty = load(None, &text(Reading::Found(Arc::default())));
    assert_eq!(empty.policies, Some(Policies::default()));
    let data = Some(BTreeMap::from([("policy.yml".to_owned(), String::new())]));
    let wrong = load(None, &text(Reading::Found(Arc::new(ConfigMap { data, ..ConfigMap::default() }))));
    assert_eq!(reported(&wrong), ["has no key policy.yaml, only policy.yml; rename the key"]);
    assert_eq!(wrong.policies, None);
}

#[test]
fn a_broken_policy_keeps_the_last_good_one() {
    let good = good();
    let broken = [
        config_map("backup: { maxPerNamespace: many }"),
        Reading::Unreadable("connection refused".to_owned()),
    ];
    for config_map in broken {
        let loaded = load(Some(&good), &text(config_map));
        assert_eq!(loaded.policies.as_ref(), Some(&good));
        assert!(loaded.is_outdated());
        assert_eq!(loaded.problems[0].source, Source::ConfigMap);
    }
}

#[test]
fn without_a_last_good_one_there_is_none() {
    let broken = load(None, &text(config_map("backup: { maxPerNamespace: many }")));
    assert_eq!(broken.policies, None);
    assert!(broken.is_outdated());
    let unreadable = Readings {
        config_map: config_map(""),
        applications: Reading::Unreadable("invalid type: string".to_owned()),
    };
    let unreadable = load(None, &unreadable);
    assert_eq!(unreadable.policies, None);
    assert_eq!(reported(&unreadable), ["cannot be read: invalid type: string"]);
    assert_eq!(unreadable.problems[0].source, Source::DataProtectionApplication);
}

#[test]
fn mending_it_is_enough() {
    let broken = load(Some(&good()), &text(config_map("backup: {")));
    let mended = load(broken.policies.as_ref(), &text(config_map("backup: { maxPerNamespace: 7 }")));
    assert!(!mended.is_outdated());
    assert_eq!(mended.policies.unwrap().base().backup.max_per_namespace, Some(7));
}

#[test]
fn one_broken_source_does_not_stop_the_other_from_changing() {
    let before = good();
    let readings = Readings {
        config_map: config_map("backup: {"),
        applications: application(&json!({"nonAdmin": {"requireApprovalForBSL": true}})),
    };
    let loaded = load(Some(&before), &readings);
    assert!(loaded.is_outdated());
    let policies = loaded.policies.unwrap();
    assert_eq!(policies.base().backup.max_per_namespace, Some(3), "what the ConfigMap last said");
    assert!(policies.base().storage_locations.require_approval, "what the application says now");
}

#[test]
fn two_that_contradict_each_other_keep_the_last_good_one() {
    let before = good();
    let readings = Readings {
        config_map: config_map("backup: { enforce: { ttl: 24h } }"),
        applications: application(&json!({"nonAdmin": {"enforceBackupSpec": {"ttl": "48h"}}})),
    };
    let loaded = load(Some(&before), &readings);
    assert_eq!(loaded.policies, Some(before));
    assert!(loaded.is_outdated());
}
