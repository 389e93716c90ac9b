//! Where each value comes from, as `kubectl nacre policy show` prints it.

use std::fmt::Write as _;

use planner::policy::Setting;
use serde_json::json;

use super::{labels, loaded, policies};

const TEXT: &str = "
backup:
  ttl: { max: 48h }
  enforce: { snapshotVolumes: false }
storageLocations: { requireApproval: false }
sync: { period: 5m }
overrides:
  - selector: { matchLabels: { nacre.dev/tier: gold } }
    backup: { maxPerNamespace: 9, ttl: { max: 96h } }
";

fn lines(settings: &[Setting], fields: &[&str]) -> String {
    let mut text = String::new();
    for setting in settings.iter().filter(|setting| fields.contains(&setting.field.as_str())) {
        let from: Vec<String> = setting.from.iter().map(ToString::to_string).collect();
        writeln!(text, "{} = {} ({})", setting.field, setting.value, from.join(" and ")).unwrap();
    }
    text
}

const FIELDS: [&str; 8] = [
    "backup.enforce.snapshotVolumes",
    "backup.enforce.ttl",
    "backup.ttl.max",
    "backup.maxPerNamespace",
    "storageLocations.requireApproval",
    "storageLocations.providers",
    "sync.period",
    "garbageCollection.period",
];

#[test]
fn each_value_has_somebody_to_ask() {
    let dpa = json!({"nonAdmin": {"enforceBackupSpec": {"snapshotVolumes": false, "ttl": "24h"},
        "requireApprovalForBSL": true, "backupSyncPeriod": "10m", "garbageCollectionPeriod": "24h"}});
    let policies = loaded(TEXT, &dpa).policies.unwrap();
    insta::assert_snapshot!(lines(&policies.settings(None), &FIELDS), @r#"
    backup.enforce.snapshotVolumes = false (nacre-policy 4:31 and DataProtectionApplication)
    backup.enforce.ttl = "24h" (DataProtectionApplication)
    backup.ttl.max = "48h" (nacre-policy 3:15)
    garbageCollection.period = "24h" (DataProtectionApplication)
    storageLocations.providers = ["aws","azure","gcp"] (default)
    storageLocations.requireApproval = true (DataProtectionApplication)
    sync.period = "5m" (nacre-policy 6:17)
    "#);
}

#[test]
fn an_override_says_which_one_it_is() {
    let policies = policies(TEXT);
    let gold = policies.override_for("shop", &labels(&[("nacre.dev/tier", "gold")]));
    assert_eq!((gold, policies.override_for("shop", &labels(&[]))), (Some(0), None));
    insta::assert_snapshot!(lines(&policies.settings(gold), &FIELDS), @r#"
    backup.enforce.snapshotVolumes = false (nacre-policy 4:31)
    backup.maxPerNamespace = 9 (nacre-policy 9:32, overrides[0])
    backup.ttl.max = "96h" (nacre-policy 9:47, overrides[0])
    garbageCollection.period = "24h" (default)
    storageLocations.providers = ["aws","azure","gcp"] (default)
    storageLocations.requireApproval = false (nacre-policy 5:38)
    sync.period = "5m" (nacre-policy 6:17)
    "#);
    let overridden = policies.overridden();
    assert_eq!(overridden[0].0, "nacre.dev/tier=gold");
    let fields: Vec<&str> = overridden[0].1.iter().map(|setting| setting.field.as_str()).collect();
    assert_eq!(fields, ["backup.maxPerNamespace", "backup.ttl.max"]);
}
