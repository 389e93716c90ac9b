//! Files for `kubectl nacre policy check`.

use planner::policy::examine;

use super::loaded;

fn reported(text: &str) -> Vec<String> {
    examine(text).problems.iter().map(ToString::to_string).collect()
}

const TYPO: &str = "backup:\n  tll: { max: 48h }\n";
const UNKNOWN: &str = "2:3: backup.tll: there is no such field; known here: defaults, enforce, ttl, maxPerNamespace, maxActivePerNamespace, maxBytesPerNamespace, maxWorkPerDay, atLimit, hooks, hookTimeout, volumes, delete";

fn map(text: &str) -> String {
    let indented = text.replace('\n', "\n    ");
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: nacre-policy }}\ndata:\n  policy.yaml: |\n    {indented}\n"
    )
}

const APPLICATION: &str = "apiVersion: oadp.openshift.io/v1alpha1\nkind: DataProtectionApplication\nmetadata: { name: dpa }\n\
     spec: { nonAdmin: { enforceBackupSpec: { includedNamespaces: [shop], snapshotVolumes: true } } }\n";

#[test]
fn a_policy_is_read_as_such_or_out_of_its_config_map() {
    assert_eq!(reported(TYPO), [UNKNOWN]);
    assert_eq!(reported(&map(TYPO)), [UNKNOWN]);
    assert!(examine(TYPO).plain && !examine(&map(TYPO)).plain);
    assert!(examine("backup: { ttl: { max: 48h } }").policies.is_some());
    assert_eq!(reported(""), Vec::<String>::new(), "nothing said is nothing wrong");
    assert!(reported("backup: [")[0].starts_with("1:"), "{:?}", reported("backup: ["));
}

#[test]
fn an_application_is_read_in_the_controllers_words() {
    let wrong =
        ["spec.nonAdmin.enforceBackupSpec.includedNamespaces: cannot be set for all tenants; leave it out"];
    assert_eq!(reported(APPLICATION), wrong);
    let dpa = serde_json::json!({"nonAdmin": {"enforceBackupSpec": {"includedNamespaces": ["shop"], "snapshotVolumes": true}}});
    assert_eq!(super::reported(&loaded("", &dpa)), wrong);
}

#[test]
fn both_in_one_file_must_be_satisfied() {
    let fine = APPLICATION.replace("includedNamespaces: [shop], ", "");
    let text =
        format!("kind: Pod\n---\n{}---\n{fine}", map("backup: { enforce: { snapshotVolumes: false } }"));
    let found = examine(&text);
    assert_eq!(found.found, ["ConfigMap nacre-policy", "DataProtectionApplication dpa"]);
    assert!(found.policies.is_none() && reported(&text)[0].contains("make them agree"), "{found:?}");
    let list = format!("kind: List\nitems:\n  - {}", fine.replace('\n', "\n    ").trim_end());
    assert_eq!(reported(&list), Vec::<String>::new());
    assert!(reported("kind: Pod")[0].contains("neither a policy"));
    assert!(reported(&map(TYPO).replace("nacre-policy", "other"))[0].contains("neither a policy"));
}
