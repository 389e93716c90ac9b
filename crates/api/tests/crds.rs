//! The CRDs in `deploy/crds` match the Rust types.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::Path;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// `make gen` sets this to write the files instead of comparing them.
const WRITE: &str = "NACRE_GEN";

#[test]
fn the_shipped_definitions_are_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
    for crd in api::crds() {
        let file = folder.join(format!("{}.yaml", crd.spec.names.plural));
        let wanted = serde_saphyr::to_string(&crd).unwrap();
        if std::env::var_os(WRITE).is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&file, &wanted).unwrap();
        }
        let found = fs::read_to_string(&file).unwrap_or_default();
        assert!(found == wanted, "{} is stale: run `make gen`", file.display());
    }
    let shipped = fs::read_dir(&folder).unwrap().count();
    assert_eq!(shipped, api::crds().len(), "deploy/crds has a file nobody generates");
}

fn schema(crd: &CustomResourceDefinition) -> Value {
    serde_json::to_value(crd.spec.versions[0].schema.as_ref().unwrap()).unwrap()["openAPIV3Schema"].take()
}

fn definition(kind: &str) -> CustomResourceDefinition {
    api::crds().into_iter().find(|crd| crd.spec.names.kind == kind).unwrap()
}

/// `kubectl explain nonadminbackup.status.conditions` is where a person looks up a reason.
#[test]
fn every_condition_and_reason_is_explained() {
    let explained: Vec<String> = api::crds()
        .iter()
        .map(|crd| {
            let status = &schema(crd)["properties"]["status"]["properties"];
            status["conditions"]["description"].as_str().unwrap_or_default().to_owned()
        })
        .collect();
    let explained = explained.join(" ");
    let source = include_str!("../src/condition.rs");
    let constants = source.lines().filter_map(|line| line.strip_prefix("pub const ")?.split('"').nth(1));
    // Those of OADP's DataProtectionApplication, whose CRD is OADP's own.
    let constants = constants.filter(|word| !["Reconciled", "Complete"].contains(word));
    let words: Vec<_> = explained.split(|c: char| !c.is_alphanumeric()).collect();
    let silent: Vec<_> = constants.clone().filter(|word| !words.contains(word)).collect();
    assert_eq!(silent, [""; 0], "not in the description of any status.conditions");
    assert!(constants.count() > 50);
}

/// Every field of a schema without a description, at any depth.
fn silent_fields(schema: &Value, path: &str, found: &mut (usize, Vec<String>)) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        found.0 += 1;
        if field["description"].as_str().is_none_or(|text| text.trim().is_empty()) {
            found.1.push(path.clone());
        }
        silent_fields(field, &path, found);
    }
    for below in ["items", "additionalProperties"] {
        if schema[below].is_object() {
            silent_fields(&schema[below], path, found);
        }
    }
}

#[test]
fn kubectl_explains_every_field() {
    let mut found = (0, Vec::new());
    for crd in api::crds() {
        silent_fields(&schema(&crd), &crd.spec.names.plural, &mut found);
    }
    let (fields, silent) = found;
    assert_eq!(silent, [""; 0]);
    assert!(fields > 500, "only {fields} fields were found");
}

#[test]
fn names_are_those_released_clients_use() {
    let names: Vec<_> = api::crds()
        .iter()
        .map(|crd| {
            let columns = crd.spec.versions[0].additional_printer_columns.iter().flatten();
            let columns: Vec<_> = columns.map(|column| column.name.clone()).collect();
            let short = crd.spec.names.short_names.clone().unwrap_or_default().join(",");
            format!("{} {} {short} [{}]", crd.spec.group, crd.spec.names.plural, columns.join(" "))
        })
        .collect();
    assert_eq!(
        names,
        [
            "oadp.openshift.io nonadminbackups nab [Request-Phase Velero-Phase Data-Protected Starts Age Waits]",
            "oadp.openshift.io nonadminrestores nar [Request-Phase Velero-Phase Data-Restored Starts Age Waits]",
            "oadp.openshift.io nonadminbackupstoragelocations nabsl [Request-Approved Request-Phase Velero-Phase Age]",
            "oadp.openshift.io nonadminbackupstoragelocationrequests nabslrequest \
             [Request-Phase Request-Namespace Request-Name Age]",
            "oadp.openshift.io nonadmindownloadrequests nadr [Request-Phase Age]",
            "oadp.openshift.io nonadminschedules nas [Request-Phase Velero-Phase Next-Run Paused Age]",
            "oadp.openshift.io dataprotectionapplications dpa []",
        ]
    );
}

/// Why a request waits is in plain `kubectl get`, without `-o wide`.
#[test]
fn why_a_request_waits_is_shown_by_default() {
    for kind in ["NonAdminBackup", "NonAdminRestore"] {
        let version = &definition(kind).spec.versions[0];
        let columns = version.additional_printer_columns.as_deref().unwrap_or_default();
        let waits = columns.iter().find(|column| column.name == "Waits").unwrap();
        assert_eq!(waits.priority.unwrap_or_default(), 0, "{kind}");
        assert_eq!(columns.last(), Some(waits), "a sentence is the last column");
    }
}

#[test]
fn spec_is_required_and_every_phase_of_velero_is_accepted() {
    for crd in api::crds() {
        let required = schema(&crd)["required"].clone();
        assert!(required.as_array().unwrap().contains(&Value::from("spec")), "{}", crd.spec.names.kind);
    }
    let backup = schema(&definition("NonAdminBackup"));
    let phases = &backup["properties"]["status"]["properties"]["veleroBackup"]["properties"]["status"]["properties"]
        ["phase"]["enum"];
    for phase in ["Queued", "ReadyToStart", "WaitingForPluginOperationsPartiallyFailed"] {
        assert!(phases.as_array().unwrap().contains(&Value::from(phase)), "{phase}");
    }
}

#[test]
fn kinds_agree_with_the_types() {
    for crd in api::crds() {
        let kind = api::Kind::ALL.iter().find(|kind| kind.name() == crd.spec.names.kind).unwrap();
        assert_eq!(kind.group_resource(), format!("{}.{}", crd.spec.names.plural, crd.spec.group));
        assert_eq!(kind.version(), crd.spec.versions[0].name);
    }
}

#[test]
fn a_field_nobody_decided_about_is_refused_at_any_depth() {
    let read =
        |spec: Value| serde_json::from_value::<api::NonAdminBackupSpec>(spec).map_err(|e| e.to_string());
    assert!(read(serde_json::json!({"backupSpec": {"ttl": "24h"}})).is_ok());
    let error = read(serde_json::json!({"backupSpec": {"ttl": "24h", "runAs": "root"}})).unwrap_err();
    assert!(error.starts_with("runAs: this controller knows no such field"), "{error}");
    let nested = serde_json::json!({"backupSpec": {"hooks": {"resources": [{"name": "x", "image": "y"}]}}});
    let error = read(nested).unwrap_err();
    assert!(error.contains("hooks") && error.contains("image"), "{error}");
}

#[test]
fn the_zero_of_a_non_pointer_field_is_read_as_unset_and_other_empty_values_are_kept() {
    let spec: api::velero::BackupSpec = serde_json::from_value(serde_json::json!({
        "ttl": "0s", "hooks": {}, "csiSnapshotTimeout": "0s", "storageLocation": "", "metadata": {},
        "snapshotVolumes": false, "includedResources": [], "orderedResources": {},
    }))
    .unwrap();
    let kept = serde_json::json!({"snapshotVolumes": false, "includedResources": [], "orderedResources": {}});
    assert_eq!(serde_json::to_value(spec).unwrap(), kept);
}
