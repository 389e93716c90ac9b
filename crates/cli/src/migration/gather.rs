//! Reading what decisions need.

use anyhow::{Context as _, Result};
use k8s_openapi::api::{
    admissionregistration::v1::{
        MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ValidatingAdmissionPolicy,
        ValidatingAdmissionPolicyBinding,
    },
    apps::v1::Deployment,
    core::v1::ConfigMap,
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kube::{Api, Client, Resource, ResourceExt as _, api::ListParams};
use planner::migration::{settings, who_can::Rbac};
use serde::de::DeserializeOwned;

/// All of RBAC.
pub(super) async fn rbac(client: &Client) -> Result<Rbac> {
    let (cluster_roles, roles, cluster_role_bindings, role_bindings) =
        tokio::try_join!(list(client), list(client), list(client), list(client))?;
    Ok(Rbac { cluster_roles, roles, cluster_role_bindings, role_bindings })
}

/// Every object of a kind, in every namespace.
pub(super) async fn list<K>(client: &Client) -> Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let listed = Api::<K>::all(client.clone()).list(&ListParams::default()).await;
    Ok(listed.with_context(|| format!("listing {}", K::plural(&())))?.items)
}

/// What was asked for before, if anything was.
pub(super) async fn config(client: &Client) -> Result<Option<ConfigMap>> {
    Ok(Api::namespaced(client.clone(), settings::NAMESPACE).get_opt(settings::NAME).await?)
}

/// The namespace KubeVirt's operator runs in, if it does.
pub(super) async fn virt_operator(client: &Client) -> Result<Option<String>> {
    let operators = ListParams::default().labels("kubevirt.io=virt-operator");
    let found =
        Api::<Deployment>::all(client.clone()).list(&operators).await.context("listing deployments")?;
    let at_work = |deployment: &Deployment| {
        deployment.spec.as_ref().and_then(|spec| spec.replicas).is_none_or(|replicas| replicas > 0)
    };
    Ok(found.items.into_iter().find(at_work).and_then(|deployment| deployment.namespace()))
}

/// The guard's objects, among others of their kinds.
pub(super) struct Guard {
    pub(super) policies: Vec<ValidatingAdmissionPolicy>,
    pub(super) bindings: Vec<ValidatingAdmissionPolicyBinding>,
    pub(super) mutating: Option<(Vec<MutatingAdmissionPolicy>, Vec<MutatingAdmissionPolicyBinding>)>,
    pub(super) cluster_roles: Vec<ClusterRole>,
    pub(super) cluster_role_bindings: Vec<ClusterRoleBinding>,
}

pub(super) async fn guard(client: &Client) -> Result<Guard> {
    let mutating = async {
        match tokio::try_join!(list(client), list(client)) {
            Ok(found) => Ok(Some(found)),
            // An API server before 1.36 has no such policies.
            Err(error) if is_unknown(&error) => Ok(None),
            Err(error) => Err(error),
        }
    };
    let (policies, bindings, mutating, cluster_roles, cluster_role_bindings) =
        tokio::try_join!(list(client), list(client), mutating, list(client), list(client))?;
    Ok(Guard { policies, bindings, mutating, cluster_roles, cluster_role_bindings })
}

fn is_unknown(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 404)
}

/// Whether the API server said that the caller may not ask.
pub(super) fn is_forbidden(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 403)
}
