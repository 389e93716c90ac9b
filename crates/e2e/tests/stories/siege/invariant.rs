//! What must hold whatever a tenant's backup says: nothing outside the tenant's namespace has changed, and in the
//! namespace there is nothing that the tenant could not have created. Who could have is asked of the API server.

use std::collections::BTreeMap;

use anyhow::Result;
use bed::Bed;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::discovery::{Discovery, Scope};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::grammar::ESCAPED;
use super::objects::{HOME, VICTIM};
use e2e::VELERO;

/// What changes by itself.
const RESTLESS: [&str; 5] = [
    "events",
    "events.events.k8s.io",
    "leases.coordination.k8s.io",
    "componentstatuses",
    // The API server's own record of the addresses of Services.
    "ipaddresses.networking.k8s.io",
];

/// A namespace with the level *baseline*, to have the API server judge pods by.
const JUDGE: &str = "baseline";

/// Where an object is: resource, namespace, name.
pub(super) type Place = (String, String, String);

/// Every object of the cluster.
pub(super) type Picture = BTreeMap<Place, Value>;

pub(super) struct Invariant {
    client: Client,
    tenant: Client,
    kinds: Vec<(ApiResource, bool)>,
}

impl Invariant {
    /// Learns which kinds there are, and gives the tenant permissions for those that operators offer to tenants.
    pub(super) async fn new(bed: &Bed) -> Result<Self> {
        let client = bed.client().await?;
        bed.apply_yaml(include_str!("tenants.yaml")).await?;
        let served = Discovery::new(client.clone()).run().await?;
        let kinds = served
            .groups()
            .flat_map(kube::discovery::ApiGroup::recommended_resources)
            .filter(|(_, capabilities)| capabilities.supports_operation("list"))
            .map(|(resource, capabilities)| (resource, capabilities.scope == Scope::Namespaced))
            .filter(|(resource, _)| !RESTLESS.contains(&folder(resource).as_str()))
            .collect();
        let ada = bed.client_as("ada", &[]).await?;
        bed.wait_allowed("ada", HOME, "create", "kubevirt.io", "virtualmachines").await?;
        Ok(Self { client, tenant: ada, kinds })
    }

    /// Everything there is.
    pub(super) async fn picture(&self) -> Result<Picture> {
        let mut picture = Picture::new();
        for (resource, _) in &self.kinds {
            let all = Api::<DynamicObject>::all_with(self.client.clone(), resource);
            for object in all.list(&ListParams::default()).await? {
                let mut object = serde_json::to_value(&object)?;
                object["apiVersion"] = json!(resource.api_version);
                object["kind"] = json!(resource.kind);
                let metadata = &mut object["metadata"];
                let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
                let place = (folder(resource), text("namespace"), text("name"));
                for field in ["resourceVersion", "managedFields", "generation"] {
                    metadata.as_object_mut().map(|metadata| metadata.remove(field));
                }
                if place.1 != HOME {
                    object.as_object_mut().map(|object| object.remove("status"));
                }
                picture.insert(place, object);
            }
        }
        Ok(picture)
    }

    /// What is wrong now that was not before. The names of Velero's Restores are those of the tenant.
    pub(super) async fn broken(
        &self,
        before: &Picture,
        after: &Picture,
        restore: &Value,
    ) -> Result<Vec<String>> {
        let mut broken = Vec::new();
        for place in before.keys().filter(|place| !after.contains_key(*place)) {
            if place.1 != HOME {
                broken.push(format!("{place:?} is gone"));
            }
        }
        for (place, object) in after.iter().filter(|(place, object)| before.get(*place) != Some(*object)) {
            if place.1 == HOME {
                broken.extend(self.privileged(place, object).await?);
            } else if !by_velero_itself(place, object, restore) {
                let what = if before.contains_key(place) { "changed" } else { "new" };
                broken.push(format!("{place:?} is {what}: {object}"));
            }
        }
        Ok(broken)
    }

    /// What the tenant could not have made of an object in its namespace.
    async fn privileged(&self, place: &Place, object: &Value) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let (resource, _, _) = place;
        let Some((kind, _)) = self.kinds.iter().find(|(kind, _)| folder(kind) == *resource) else {
            return Ok(wrong);
        };
        // They are for the history of a workload alone, and come back with it.
        let history = resource == "controllerrevisions.apps";
        if let Some(refusal) = forbidden(&self.tenant, HOME, kind, object.clone()).await?.filter(|_| !history)
        {
            wrong.push(format!("{place:?} could not be created by the tenant: {refusal}"));
        }
        let template =
            object.pointer("/spec/jobTemplate/spec/template").or_else(|| object.pointer("/spec/template"));
        let template = template
            .or_else(|| object.get("template"))
            .or_else(|| (object["kind"] == "Pod").then_some(object));
        if let Some(template) = template.filter(|template| template["spec"]["containers"].is_array()) {
            let pod = json!({"metadata": {"name": "x", "annotations": template["metadata"]["annotations"]},
                "spec": template["spec"]});
            let pods = ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&());
            if let Some(refusal) = forbidden(&self.client, JUDGE, &pods, pod).await? {
                wrong.push(format!("{place:?} is privileged: {refusal}"));
            }
        }
        if ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"]
            .contains(&object["type"].as_str().unwrap_or_default())
        {
            wrong.push(format!("{place:?} is a credential of Kubernetes'"));
        }
        if object.pointer("/status/loadBalancer/ingress").is_some() {
            wrong.push(format!("{place:?} has a forged status"));
        }
        if names_victim(&object["spec"]) || object.pointer("/spec/source/volumeSnapshotContentName").is_some()
        {
            wrong.push(format!("{place:?} takes data from elsewhere: {}", object["spec"]));
        }
        Ok(wrong)
    }

    /// Makes room for the next restore.
    pub(super) async fn tidy_up(&self, before: &Picture, after: &Picture) -> Result<()> {
        for (resource, namespace, name) in after.keys().filter(|place| !before.contains_key(*place)) {
            let Some((kind, namespaced)) = self.kinds.iter().find(|(kind, _)| folder(kind) == *resource)
            else {
                continue;
            };
            let api: Api<DynamicObject> = if *namespaced {
                Api::namespaced_with(self.client.clone(), namespace, kind)
            } else {
                Api::all_with(self.client.clone(), kind)
            };
            let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            let at_once = DeleteParams::default().grace_period(0);
            // It may be gone with something else.
            let _ = api.delete(name, &at_once).await;
            let _ = api.patch(name, &PatchParams::default(), &free).await;
        }
        Ok(())
    }
}

fn folder(resource: &ApiResource) -> String {
    if resource.group.is_empty() {
        resource.plural.clone()
    } else {
        format!("{}.{}", resource.plural, resource.group)
    }
}

/// Why somebody may not create an object like this one; none if they may, or if the object is no good.
async fn forbidden(
    client: &Client,
    namespace: &str,
    kind: &ApiResource,
    like: Value,
) -> Result<Option<String>> {
    let mut object = like;
    let given = object["metadata"].take();
    let name = format!("{}-again", given["name"].as_str().unwrap_or_default());
    object["metadata"] = json!({"name": name, "namespace": namespace, "labels": given["labels"], "annotations": given["annotations"]});
    object["apiVersion"] = json!(kind.api_version);
    object["kind"] = json!(kind.kind);
    // The addresses that the API server gave out are taken.
    for field in ["clusterIP", "clusterIPs", "healthCheckNodePort"] {
        object["spec"].as_object_mut().map(|spec| spec.remove(field));
    }
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, kind);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    match api.create(&dry, &serde_json::from_value(object)?).await {
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(Some(status.message)),
        Ok(_) | Err(kube::Error::Api(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What Velero writes in its own namespace for any restore: the Restore, what it learns about its locations, and the
/// operations by which volumes of the tenant come back.
fn by_velero_itself((resource, namespace, name): &Place, object: &Value, restore: &Value) -> bool {
    let uid = restore.pointer("/metadata/uid");
    let labels = &object["metadata"]["labels"];
    let owned = object.pointer("/metadata/ownerReferences/0/uid") == restore.pointer("/metadata/uid");
    let target =
        object.pointer("/spec/pod/namespace").or_else(|| object.pointer("/spec/targetVolume/namespace"));
    namespace == VELERO
        && match resource.as_str() {
            "restores.velero.io" => *name == restore["metadata"]["name"],
            "podvolumerestores.velero.io" | "datadownloads.velero.io" => {
                owned && target.is_some_and(|target| target == HOME)
            }
            // What a data mover said about a volume, kept for the claim. Velero removes it, unless the restore fails early.
            "configmaps" => {
                labels["velero.io/resource-usage"] == "DataUpload"
                    && Some(&labels["velero.io/restore-uid"]) == uid
            }
            _ => false,
        }
}

/// Whether any field of this name has this value.
fn names_victim(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            fields.iter().any(|(key, value)| (key == "namespace" && value == VICTIM) || names_victim(value))
        }
        Value::Array(items) => items.iter().any(names_victim),
        _ => false,
    }
}

/// Files that Velero unpacked where they do not belong. It unpacks into folders of its temporary one, and leaves those of
/// archives that it cannot read.
pub(super) fn escaped(bed: &Bed) -> Result<Vec<String>> {
    let velero = bed.folder().join("velero");
    let temporary = velero.join("tmp");
    let mut found = Vec::new();
    let mut folders = vec![bed.folder().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(ESCAPED)) {
                found.push(path.display().to_string());
            } else if path.is_dir()
                && !path.is_symlink()
                && folder != temporary
                && (folder != bed.folder() || path == velero)
            {
                folders.push(path);
            }
        }
    }
    for folder in
        [bed.folder().parent(), bed.folder().parent().and_then(std::path::Path::parent)].into_iter().flatten()
    {
        if folder.join(ESCAPED).exists() {
            found.push(folder.join(ESCAPED).display().to_string());
        }
    }
    Ok(found)
}
