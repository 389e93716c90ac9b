//! What somebody else's CRDs lack is named with what is not seen for that: on OADP a note, since they are its own.

use api::Kind;
use serde_json::{Value, json};

use super::crds::MissingParts;
use super::oadp_tests::oadp;
use super::tests::{examine, healthy, policy};
use super::*;

/// Fields of statuses that OADP's CRDs do not have.
const NEW: [&str; 5] = ["claims", "claimsNotListed", "results", "objects", "log"];
const COLUMNS: [&str; 4] = ["Data-Protected", "Data-Restored", "Starts", "Waits"];

fn crds(seen: &mut Observed) -> impl Iterator<Item = &mut Object> {
    let is_crd = |wanted: &Object| wanted.kind == Kind::CustomResourceDefinition;
    seen.installed.iter_mut().filter(move |(wanted, _)| is_crd(wanted)).filter_map(|(_, found)| match found {
        Reading::Found(found) => Some(found),
        _ => None,
    })
}

fn forget(object: &mut Value, name: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove(name);
    }
}

/// CRDs that nacre did not make, and that are older.
fn with_older_crds(mut seen: Observed) -> Observed {
    for crd in crds(&mut seen) {
        crd.body["metadata"]["labels"] = json!({});
        let version = &mut crd.body["spec"]["versions"][0];
        if let Some(columns) = version["additionalPrinterColumns"].as_array_mut() {
            columns.retain(|column| !COLUMNS.contains(&column["name"].as_str().unwrap()));
        }
        let schema = &mut version["schema"]["openAPIV3Schema"]["properties"];
        schema["spec"]["description"] = json!("in other words");
        for field in NEW {
            forget(&mut schema["status"]["properties"], field);
        }
        let status = &mut schema["status"]["properties"];
        if status["queueInfo"].is_object() {
            status["queueInfo"]["properties"] = json!({"estimatedQueuePosition": {"type": "integer"}});
        }
        if status["veleroBackup"].is_object() {
            let velero = &mut status["veleroBackup"]["properties"]["status"]["properties"];
            velero["phase"]["enum"].as_array_mut().unwrap().retain(|phase| phase != "Queued");
            forget(velero, "queuePosition");
        }
        forget(&mut schema["spec"]["properties"]["backupSpec"]["properties"], "volumeGroupSnapshotLabelKey");
    }
    seen
}

/// What is said of CRDs.
fn about_crds(seen: &Observed) -> String {
    let findings =
        examine(seen).into_iter().filter(|one| one.area == Area::Nacre && one.message.contains("CRDs"));
    let lines = findings.map(|one| {
        let fix = one.fix.map_or_else(String::new, |fix| format!("\n  -> {fix}"));
        format!("{:?} {}{fix}", one.verdict, one.message)
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn on_oadp_a_note_names_what_its_crds_cost() {
    insta::assert_snapshot!(about_crds(&with_older_crds(oadp(&[]))), @"Note nacre works with OADP's CRDs, which lack fields (nonadminbackups, nonadminrestores, nonadmindownloadrequests): tenants do not see the state of each claim, Velero's errors and warnings but the first, start times outside of messages, lists of objects of backups in the cluster's own storage, logs of backups in the cluster's own storage; `kubectl get` has no columns Data-Protected, Data-Restored, Starts, Waits; requests cannot set spec.backupSpec.volumeGroupSnapshotLabelKey; statuses leave out status.veleroBackup.status.phase=Queued, status.veleroBackup.status.queuePosition. `kubectl nacre render --only request-crds -n openshift-adp | kubectl apply --server-side --force-conflicts -f -` adds them, until OADP applies its own again; downloads.platformStorage: logs in the policy hands out links to logs and lists instead");
}

#[test]
fn elsewhere_it_is_a_warning_with_one_command() {
    insta::assert_snapshot!(about_crds(&with_older_crds(healthy())), @r"
    Warning CRDs of somebody else lack something nacre uses (nonadminbackups, nonadminrestores, nonadmindownloadrequests): tenants do not see the state of each claim, Velero's errors and warnings but the first, start times outside of messages, lists of objects of backups in the cluster's own storage, logs of backups in the cluster's own storage; `kubectl get` has no columns Data-Protected, Data-Restored, Starts, Waits; requests cannot set spec.backupSpec.volumeGroupSnapshotLabelKey; statuses leave out status.veleroBackup.status.phase=Queued, status.veleroBackup.status.queuePosition. A newer version of whoever made them may have it; downloads.platformStorage: logs in the policy hands out links to logs and lists instead
      -> kubectl nacre render --only request-crds -n velero | kubectl apply --server-side --force-conflicts -f -
    ");
}

/// With links nacre reads nothing for tenants.
#[test]
fn lists_and_logs_are_not_missed_where_the_policy_hands_out_links() {
    let mut seen = oadp(&[]);
    seen.policy = policy("downloads: {platformStorage: logs}");
    for crd in crds(&mut seen) {
        crd.body["metadata"]["labels"] = json!({});
        let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
        for field in ["objects", "log"] {
            forget(crd.body.pointer_mut(status).unwrap(), field);
        }
    }
    assert_eq!(about_crds(&seen), "Ok all 6 CRDs are there and current");
    seen.policy = policy("{}");
    let note = about_crds(&seen);
    for words in ["lists of objects of", "logs of backups", "downloads.platformStorage: logs"] {
        assert!(note.starts_with("Note") && note.contains(words), "{note}");
    }
}

#[test]
fn other_descriptions_and_more_fields_are_no_matter() {
    let mut seen = oadp(&[]);
    for crd in crds(&mut seen) {
        crd.body["metadata"]["labels"] = json!({});
        let schema = &mut crd.body["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        schema["description"] = json!("in other words");
        schema["properties"]["status"]["properties"]["more"] = json!({"type": "string"});
    }
    assert_eq!(about_crds(&seen), "Ok all 6 CRDs are there and current");
}

/// Every path of a schema to a field, or to a list of values.
fn places(schema: &Value, path: &str, all: &mut Vec<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}/properties/{name}");
        all.push(path.clone());
        places(field, &path, all);
    }
    if schema["items"].is_object() {
        places(&schema["items"], &format!("{path}/items"), all);
    }
}

/// Whichever field is missing: what it costs is named.
#[test]
fn no_field_is_missing_silently() {
    let mut seen = healthy();
    let mut count = 0;
    for crd in crds(&mut seen) {
        let root = "/spec/versions/0/schema/openAPIV3Schema";
        let mut all = Vec::new();
        places(crd.body.pointer(root).unwrap(), root, &mut all);
        for place in all {
            let (parent, name) = place.rsplit_once('/').unwrap();
            let mut found = crd.clone();
            forget(found.body.pointer_mut(parent).unwrap(), name);
            let words = MissingParts::of(crd, &found).words();
            let known = words.starts_with("tenants do not see ");
            assert!(known || words.ends_with(name), "{place}: {words:?}");
            count += 1;
        }
        assert_eq!(MissingParts::of(crd, crd), MissingParts::default());
    }
    assert!(count > 300, "{count}");
}
