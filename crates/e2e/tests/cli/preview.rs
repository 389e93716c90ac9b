//! `restore preview`, with real Velero: what it says is what happens.

use std::collections::BTreeMap;
use std::io::Read as _;

use anyhow::{Context as _, Result, bail, ensure};
use api::{NonAdminDownloadRequest, NonAdminRestore};
use e2e::TestCluster;
use flate2::read::MultiGzDecoder;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Pod, ResourceQuota, Secret, ServiceAccount},
};
use kube::{
    Api,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};

use crate::{person::Person, test_cluster};

/// What Velero wrote down about a restore: what it did with each object, by resource and name.
fn what_velero_did(test_cluster: &TestCluster, restore: &str) -> Result<BTreeMap<(String, String), String>> {
    let store = test_cluster.bed.store()?;
    let keys = store.keys(bed::BUCKET)?;
    let key = keys.iter().find(|key| key.contains(restore) && key.ends_with("-resource-list.json.gz"));
    let path = store.path(bed::BUCKET, key.with_context(|| format!("no list of {restore} in {keys:?}"))?);
    let mut text = String::new();
    MultiGzDecoder::new(std::fs::File::open(path)?).read_to_string(&mut text)?;
    let list: BTreeMap<String, Vec<String>> = serde_json::from_str(&text)?;
    let mut done = BTreeMap::new();
    for (kind, entries) in list {
        let resource = match kind.as_str() {
            "v1/ConfigMap" => "configmaps",
            "v1/Secret" => "secrets",
            "v1/ServiceAccount" => "serviceaccounts",
            "v1/Pod" => "pods",
            "apps/v1/Deployment" => "deployments.apps",
            "rbac.authorization.k8s.io/v1/RoleBinding" => "rolebindings.rbac.authorization.k8s.io",
            other => bail!("the story does not know {other}"),
        };
        for entry in entries {
            let (name, did) = entry.rsplit_once('(').context("an entry ends with what was done")?;
            let name = name.rsplit_once('/').map_or(name, |(_, name)| name);
            done.insert((resource.to_owned(), name.to_owned()), did.trim_end_matches(')').to_owned());
        }
    }
    Ok(done)
}

/// A namespace with something of everything, its backup, and what happened since.
async fn lived_in(test_cluster: &TestCluster, ada: &Person<'_>) -> Result<()> {
    let tenant = &ada.tenant;
    for name in ["prices", "gone", "changed"] {
        tenant.create::<ConfigMap>(name, json!({"data": {"tea": "3"}})).await?;
    }
    tenant.create::<Secret>("key", json!({"stringData": {"password": "hello"}})).await?;
    tenant.create::<ServiceAccount>("robot", json!({})).await?;
    let container = json!([{"name": "c", "image": "x"}]);
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": container}});
    let deployment =
        json!({"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": template}});
    tenant.create::<Deployment>("web", deployment).await?;
    tenant.create::<Pod>("shell", json!({"spec": {"containers": container}})).await?;
    let quotas: Api<ResourceQuota> = Api::namespaced(test_cluster.bed.client().await?, &tenant.namespace);
    let quota = json!({"metadata": {"name": "limit"}, "spec": {"hard": {"pods": "10"}}});
    quotas.create(&PostParams::default(), &serde_json::from_value(quota)?).await?;

    ada.says(&["backup", "create", "good", "--wait", "--timeout", "3m"]).await?;
    tenant.delete::<ConfigMap>("gone").await?;
    tenant.delete::<Pod>("shell").await?;
    tenant.edit::<ConfigMap>("changed", json!({"data": {"tea": "4"}})).await?;
    tenant.edit::<Secret>("key", json!({"stringData": {"password": "other"}})).await?;
    tenant.gone::<Pod>("shell").await
}

/// Compares what was said with what Velero did, object by object, both ways.
fn compare(said: &Value, did: &BTreeMap<(String, String), String>) -> Result<()> {
    let mut left = did.clone();
    for object in said["objects"].as_array().context("objects")? {
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let key = (text("resource"), text("name"));
        let done = left.remove(&key);
        let fits = match (object["effect"].as_str(), done.as_deref()) {
            (Some("created"), done) => done == Some("created"),
            (Some("updated"), done) => done == Some("updated"),
            // Velero says failed of what it left because it differs.
            (Some("kept"), done) => done == Some("failed"),
            (Some("same"), done) => matches!(done, Some("skipped" | "failed")),
            (Some("leftOut"), done) => done.is_none(),
            _ => false,
        };
        ensure!(fits, "{object} was said, and Velero's word is {done:?}");
    }
    ensure!(left.is_empty(), "Velero also did {left:?}");
    Ok(())
}

async fn velero_name(ada: &Person<'_>, restore: &str) -> Result<String> {
    let restore = ada.tenant.api::<NonAdminRestore>().get(restore).await?;
    restore.status.and_then(|status| status.velero_restore?.name).context("Velero's name of it")
}

fn effect<'a>(said: &'a Value, resource: &str, name: &str) -> &'a Value {
    let objects = said["objects"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = objects.iter().find(|object| object["resource"] == resource && object["name"] == name);
    found.unwrap_or(&Value::Null)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_says_exactly_what_happens() -> Result<()> {
    let test_cluster = test_cluster().await?;
    let ada = Person::new(test_cluster, "preview", "ada").await?;
    lived_in(test_cluster, &ada).await?;

    // Something stays as it is, so it needs attention; and nothing is changed by looking.
    let said = ada.nacre(&["restore", "preview", "--from-backup", "good", "-o", "json"]).await?.json(3)?;
    assert_eq!(effect(&said, "configmaps", "gone")["effect"], "created");
    assert_eq!(effect(&said, "pods", "shell")["effect"], "created");
    assert_eq!(effect(&said, "configmaps", "prices")["effect"], "same");
    assert_eq!(effect(&said, "configmaps", "changed")["differences"][0]["field"], "data.tea");
    let secret = effect(&said, "secrets", "key");
    assert_eq!(secret["differences"], json!([{"field": "data.password"}]), "no values: {secret}");
    assert_eq!(
        effect(&said, "resourcequotas", "limit")["by"],
        "the administrators' policy, restore.fromPlatformStorage"
    );
    assert_eq!(effect(&said, "namespaces", "preview")["by"], "nacre never restores it");
    assert!(ada.tenant.api::<ConfigMap>().get_opt("gone").await?.is_none());

    // The same by the flag, as a page.
    let ended = ada.nacre(&["restore", "create", "--from-backup", "good", "--dry-run=server"]).await?;
    assert_eq!(ended.code, Some(3), "{ended:#?}");
    assert!(ended.stdout.contains("it exists; other than in the backup: data.tea"), "{ended:#?}");
    assert!(ada.tenant.api::<NonAdminRestore>().list(&ListParams::default()).await?.items.is_empty());

    ada.nacre(&["restore", "create", "back", "--from-backup", "good", "--wait", "--timeout", "3m"]).await?;
    compare(&said, &what_velero_did(test_cluster, &velero_name(&ada, "back").await?)?)?;

    // Filters are the request's own: nothing is missed.
    let only = [
        "restore",
        "preview",
        "--from-backup",
        "good",
        "--include-resources",
        "serviceaccounts",
        "-o",
        "json",
    ];
    let said = ada.nacre(&only).await?.json(0)?;
    assert_eq!(effect(&said, "configmaps", "prices")["by"], "the request, includedResources");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_of_an_update_says_what_changes() -> Result<()> {
    let test_cluster = test_cluster().await?;
    let ada = Person::new(test_cluster, "preview-update", "ada").await?;
    lived_in(test_cluster, &ada).await?;
    let update = ["--from-backup", "good", "--existing-resource-policy", "update"];
    let said = ada.nacre(&[&["restore", "preview", "-o", "json"], &update[..]].concat()).await?;
    // The quota does not come back, by policy.
    let said = said.json(3)?;
    assert_eq!(effect(&said, "configmaps", "changed")["effect"], "updated");
    ada.nacre(&[&["restore", "create", "back", "--wait", "--timeout", "3m"], &update[..]].concat()).await?;
    compare(&said, &what_velero_did(test_cluster, &velero_name(&ada, "back").await?)?)
}

/// By default no link into the cluster's own storage is handed out: nacre reads the list of objects itself. With the names
/// alone much can be said.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_contents_a_preview_is_made_of_names() -> Result<()> {
    let test_cluster = test_cluster().await?;
    // By default, and where the list may be downloaded.
    for (namespace, name) in [("preview-closed", "bob"), ("preview-names", "eve")] {
        let person = Person::new(test_cluster, namespace, name).await?;
        for name in ["prices", "stays"] {
            person.tenant.create::<ConfigMap>(name, json!({"data": {"tea": "3"}})).await?;
        }
        person.says(&["backup", "create", "good", "--wait", "--timeout", "3m"]).await?;
        person.tenant.delete::<ConfigMap>("prices").await?;
        let ended = person.nacre(&["restore", "preview", "--from-backup", "good", "-o", "json"]).await?;
        // Whether what exists differs is not known.
        let said = ended.json(3)?;
        assert_eq!(effect(&said, "configmaps", "prices")["effect"], "created", "{said}");
        assert_ne!(effect(&said, "configmaps", "stays")["effect"], "created", "{said}");
        assert!(
            said["unknown"][0].as_str().is_some_and(|why| why.contains("the contents cannot be fetched")),
            "{said}"
        );
        let left = person.tenant.api::<NonAdminDownloadRequest>().list(&ListParams::default()).await?;
        assert!(left.items.is_empty(), "{left:#?}");
    }
    Ok(())
}
