//! A bed with just enough of KubeVirt in it.

use anyhow::Result;
use bed::Bed;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::{Api, Client};
use serde_json::json;

use crate::program::{Ended, nacre};

pub(crate) const MIGRATE: &str = "kubevirt.io:migrate";
pub(crate) const ROLES: [&str; 4] = ["kubevirt.io:admin", "kubevirt.io:edit", "kubevirt.io:view", MIGRATE];

/// A cluster with KubeVirt's kinds and the namespaces `shop` and `other`.
pub(crate) async fn cluster() -> Result<Bed> {
    furnished(Bed::builder()).await
}

pub(crate) async fn furnished(builder: bed::Builder) -> Result<Bed> {
    let bed = builder.start().await?;
    bed.apply_yaml(include_str!("kubevirt-crds.yaml")).await?;
    for namespace in ["shop", "other", "kubevirt"] {
        bed.namespace(namespace).await?;
    }
    Ok(bed)
}

/// A cluster as KubeVirt 1.4 left it: ann is an admin, ed an editor, vic a viewer of `shop`.
pub(crate) async fn old_cluster() -> Result<Bed> {
    let bed = cluster().await?;
    bed.apply_yaml(include_str!("kubevirt-1.4-roles.yaml")).await?;
    people(&bed).await?;
    Ok(bed)
}

pub(crate) async fn people(bed: &Bed) -> Result<()> {
    for (user, role) in [("ann", "admin"), ("ed", "edit"), ("vic", "view")] {
        bed.bind("shop", user, role).await?;
    }
    Ok(())
}

/// Runs `kubectl nacre migration` as the administrator.
pub(crate) async fn migration(bed: &Bed, arguments: &[&str]) -> Result<Ended> {
    nacre(&bed.kubeconfig(), &[&["migration"], arguments].concat()).await
}

/// Binds a cluster role, in a namespace or everywhere.
pub(crate) async fn bind(
    bed: &Bed,
    namespace: Option<&str>,
    name: &str,
    role: &str,
    subject: serde_json::Value,
) -> Result<()> {
    let kind = if namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": { "name": name, "namespace": namespace },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
        "subjects": [subject],
    });
    bed.apply(&[serde_json::from_value(binding)?]).await
}

pub(crate) fn a_user(name: &str) -> serde_json::Value {
    json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name })
}

pub(crate) fn a_group(name: &str) -> serde_json::Value {
    json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name })
}

pub(crate) fn an_account(namespace: &str, name: &str) -> serde_json::Value {
    json!({ "kind": "ServiceAccount", "namespace": namespace, "name": name })
}

/// The rules of the four roles, for comparison.
pub(crate) async fn rules(client: &Client) -> Result<Vec<(String, Vec<PolicyRule>)>> {
    let api = Api::<ClusterRole>::all(client.clone());
    let mut rules = Vec::new();
    for name in ROLES {
        rules.push((name.to_owned(), api.get(name).await?.rules.unwrap_or_default()));
    }
    Ok(rules)
}
