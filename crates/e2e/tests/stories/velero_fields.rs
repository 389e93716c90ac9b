//! The specs have every field of the real Velero: a field that nacre does not handle fails here.

use anyhow::{Context, Result};
use bed::programs;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;
use tokio::process::Command;

/// The definitions the velero binary prints.
async fn velero_definitions() -> Result<Vec<CustomResourceDefinition>> {
    let velero = programs()?.join("velero");
    let printed = Command::new(velero)
        .args(["install", "--crds-only", "--dry-run", "-o", "json"])
        .env("KUBECONFIG", "/dev/null")
        .output()
        .await?;
    let list: Value =
        serde_json::from_slice(&printed.stdout).context("reading what velero install printed")?;
    let items = list["items"].as_array().context("a list")?.iter();
    items.map(|item| Ok(serde_json::from_value(item.clone())?)).collect()
}

fn spec_of(crd: &CustomResourceDefinition) -> Result<Value> {
    let schema = serde_json::to_value(&crd.spec.versions[0].schema)?;
    Ok(schema["openAPIV3Schema"]["properties"]["spec"].clone())
}

/// Every path of fields below a schema. What is kept unread, such as init containers, has none.
fn paths(schema: &Value, above: &str, into: &mut Vec<String>) {
    for (name, below) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{above}.{name}");
        into.push(path.clone());
        paths(below, &path, into);
        paths(&below["items"], &path, into);
    }
}

fn fields(schema: &Value) -> Vec<String> {
    let mut all = Vec::new();
    paths(schema, "", &mut all);
    all.sort();
    all
}

/// B3
/// planted: a field of Velero's is unknown to nacre
#[tokio::test]
async fn b3_every_field_velero_has_is_decided_about() -> Result<()> {
    let theirs = velero_definitions().await?;
    let ours = api::crds();
    for (velero, tenant, field) in [
        ("Backup", "NonAdminBackup", "backupSpec"),
        ("Restore", "NonAdminRestore", "restoreSpec"),
        ("BackupStorageLocation", "NonAdminBackupStorageLocation", "backupStorageLocationSpec"),
    ] {
        let find = |list: &[CustomResourceDefinition], kind: &str| {
            list.iter().find(|crd| crd.spec.names.kind == kind).cloned().with_context(|| format!("no {kind}"))
        };
        let wanted = fields(&spec_of(&find(&theirs, velero)?)?);
        let spec = spec_of(&find(&ours, tenant)?)?["properties"][field].clone();
        let found = fields(&spec);
        assert!(wanted.len() > 10, "{velero} has fields");
        assert_eq!(found, wanted, "{velero}: the fields of Velero (right) are not those of {tenant} (left)");
        // The planted weakness: of a field that nacre does not know, or does not know any more, the comparison says so.
        let properties = spec["properties"].as_object().context("properties")?;
        for name in properties.keys() {
            let mut without = spec.clone();
            without["properties"].as_object_mut().context("properties")?.remove(name);
            assert_ne!(fields(&without), wanted, "{velero}: nobody would notice that {name} is missing");
        }
    }
    Ok(())
}
