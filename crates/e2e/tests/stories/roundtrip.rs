//! A namespace with a bit of everything is backed up, emptied and restored, and compared object by object.

use std::collections::BTreeMap;

use anyhow::Result;
use e2e::TestCluster;
use kube::api::{DeleteParams, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

/// What the tenant has.
const NAMESPACE: &str = include_str!("namespace.yaml");

/// The kinds that are compared, and those that stay away.
const BACK: [(&str, &str, &str); 9] = [
    ("", "v1", "ConfigMap"),
    ("", "v1", "Secret"),
    ("", "v1", "Service"),
    ("", "v1", "ServiceAccount"),
    ("apps", "v1", "Deployment"),
    ("rbac.authorization.k8s.io", "v1", "Role"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    ("networking.k8s.io", "v1", "NetworkPolicy"),
    ("example.com", "v1", "Recipe"),
];
const AWAY: [(&str, &str, &str); 2] = [("", "v1", "ResourceQuota"), ("", "v1", "LimitRange")];

fn api(client: &Client, (group, version, kind): (&str, &str, &str)) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(client.clone(), "shop", &resource)
}

/// What the API server makes in every namespace by itself, and what lets the tenant in.
fn given(name: &str) -> bool {
    matches!(name, "default" | "kube-root-ca.crt" | "admin-ada")
}

/// Everything, by kind and name, without what the API server or Velero writes on its own account.
async fn everything(client: &Client) -> Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for kind in BACK {
        for object in api(client, kind).list(&ListParams::default()).await?.items {
            if !given(&object.name_any()) {
                all.insert(format!("{} {}", kind.2, object.name_any()), essence(&object)?);
            }
        }
    }
    Ok(all)
}

fn essence(object: &DynamicObject) -> Result<Value> {
    let mut labels = object.labels().clone();
    labels.retain(|key, _| !key.starts_with("velero.io/"));
    let mut value = serde_json::to_value(&object.data)?;
    value["labels"] = json!(labels);
    value["annotations"] = json!(object.annotations());
    if let Some(fields) = value.as_object_mut() {
        fields.remove("status");
        if let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) {
            // The address is assigned again.
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
    }
    Ok(value)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_lost_comes_back_as_it_was() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    let _nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    test_cluster.bed.apply_yaml(NAMESPACE).await?;
    // Velero looks for new kinds when it starts, and then every five minutes.
    test_cluster.bed.velero_stop()?;
    test_cluster.bed.velero_start().await?;
    let client = test_cluster.bed.client().await?;
    let before = everything(&client).await?;
    assert_eq!(before.len(), 9, "{:#?}", before.keys());

    shop.back_up("daily").await?;
    assert_eq!(shop.backup_ends("daily").await?, "Completed");
    for kind in BACK.into_iter().chain(AWAY) {
        for object in api(&client, kind).list(&ListParams::default()).await?.items {
            if !given(&object.name_any()) {
                api(&client, kind).delete(&object.name_any(), &DeleteParams::default()).await?;
            }
        }
    }
    assert_eq!(everything(&client).await?, BTreeMap::new());

    shop.restore("back", "daily").await?;
    assert_eq!(shop.restore_ends("back").await?, "Completed");
    let after = everything(&client).await?;
    for (what, was) in &before {
        assert_eq!(after.get(what), Some(was), "{what}");
    }
    assert_eq!(after.len(), before.len(), "{:?}", after.keys());
    for kind in AWAY {
        let found = api(&client, kind).list(&ListParams::default()).await?.items;
        assert!(found.is_empty(), "{} are for administrators", kind.2);
    }
    Ok(())
}
