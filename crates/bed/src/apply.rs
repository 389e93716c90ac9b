//! Manifests into the cluster, as `kubectl apply --server-side` would.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{GroupVersionKind, TypeMeta};
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::Condition as _;
use kube::{Api, Client, ResourceExt as _, discovery};
use serde_json::Value;

use crate::wait::{eventually, wait_until};

/// The field manager of the bed.
const MANAGER: &str = "bed";
const TIMEOUT: Duration = Duration::from_mins(2);

/// Reads the documents of a YAML text; a `List` counts as its items.
pub fn parse_manifests(yaml: &str) -> Result<Vec<DynamicObject>> {
    let mut objects = Vec::new();
    for document in serde_saphyr::from_multiple::<Value>(yaml).context("reading YAML")? {
        let items = match document {
            Value::Object(mut list) if list.get("kind").is_some_and(|kind| kind == "List") => list
                .remove("items")
                .map(serde_json::from_value::<Vec<Value>>)
                .transpose()?
                .unwrap_or_default(),
            other => vec![other],
        };
        for item in items {
            objects.push(serde_json::from_value(item).context("a document is no Kubernetes object")?);
        }
    }
    Ok(objects)
}

/// Reads one manifest file, or all `*.yaml` files of a folder in the order of their names.
pub fn read_manifests(path: &Path) -> Result<Vec<DynamicObject>> {
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        files = std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
        files.sort();
    }
    let mut objects = Vec::new();
    for file in files {
        let yaml = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        objects.extend(parse_manifests(&yaml).with_context(|| format!("in {}", file.display()))?);
    }
    Ok(objects)
}

/// Applies the objects in order; after custom resource definitions it waits until they are served.
pub(crate) async fn apply(client: &Client, objects: &[DynamicObject]) -> Result<()> {
    let (definitions, others): (Vec<_>, Vec<_>) = objects
        .iter()
        .partition(|object| kind(object).is_ok_and(|kind| kind.kind == "CustomResourceDefinition"));
    futures::future::try_join_all(definitions.iter().map(|object| apply_one(client, object))).await?;
    futures::future::try_join_all(definitions.iter().map(|object| established(client, object.name_any())))
        .await?;
    for object in others {
        apply_one(client, object).await?;
    }
    Ok(())
}

async fn apply_one(client: &Client, object: &DynamicObject) -> Result<()> {
    let kind = kind(object)?;
    let name = object.name_any();
    // The discovery of a fresh kind follows its establishment with a short delay.
    let (resource, capabilities) =
        eventually(&format!("the API server to serve {kind:?}"), TIMEOUT, async || {
            discovery::pinned_kind(client, &kind).await
        })
        .await?;
    let api: Api<DynamicObject> = match (&capabilities.scope, &object.metadata.namespace) {
        (discovery::Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
        (discovery::Scope::Namespaced, Some(namespace)) => {
            Api::namespaced_with(client.clone(), namespace, &resource)
        }
        (discovery::Scope::Namespaced, None) => Api::default_namespaced_with(client.clone(), &resource),
    };
    api.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(object))
        .await
        .with_context(|| format!("applying {} {name}", kind.kind))?;
    Ok(())
}

async fn established(client: &Client, name: String) -> Result<()> {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let what = format!("CustomResourceDefinition {name} to be established");
    wait_until(&what, TIMEOUT, definitions, &name, |definition| {
        is_crd_established().matches_object(definition).then_some(())
    })
    .await
}

fn kind(object: &DynamicObject) -> Result<GroupVersionKind> {
    let types: &TypeMeta = object.types.as_ref().context("an object without apiVersion and kind")?;
    GroupVersionKind::try_from(types).with_context(|| format!("apiVersion {}", types.api_version))
}
