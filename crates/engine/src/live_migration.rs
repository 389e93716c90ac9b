//! Reads what live-migration permissions consist of. RBAC and admission policies change so rarely that they are read
//! from the API server for each decision.

use std::fmt::Debug;

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding};
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt};
use live_migration::contest::Repairs;
use live_migration::grant::GRANT;
use live_migration::settings::{self, Settings};
use live_migration::{guard, reconcile};
use planner::rbac::Rbac;
use planner::{Key, Plan};
use serde::de::DeserializeOwned;

use crate::error::{Failure, status};
use crate::execute::Executor;

/// The label of KubeVirt's operator.
pub const VIRT_OPERATOR: &str = "kubevirt.io=virt-operator";

/// What decisions about roles and guard read.
pub struct Seen {
    /// The settings ConfigMap.
    pub config: Option<ConfigMap>,
    /// Every cluster role.
    pub cluster_roles: Vec<ClusterRole>,
    /// Every cluster role binding.
    pub cluster_role_bindings: Vec<ClusterRoleBinding>,
    /// Where KubeVirt's operator runs, if it does.
    pub virt_operator: Option<String>,
    /// Every validating policy.
    pub policies: Vec<ValidatingAdmissionPolicy>,
    /// Their bindings.
    pub bindings: Vec<ValidatingAdmissionPolicyBinding>,
    /// Mutating policies and their bindings; none if the API server does not support them.
    pub mutating: Option<(Vec<MutatingAdmissionPolicy>, Vec<MutatingAdmissionPolicyBinding>)>,
}

impl Seen {
    /// Reads everything.
    pub async fn now(client: &Client) -> Result<Self, kube::Error> {
        let (config, cluster_roles, cluster_role_bindings, virt_operator, policies, bindings, mutating) = tokio::try_join!(
            Self::config(client),
            Box::pin(list(client)),
            Box::pin(list(client)),
            Box::pin(virt_operator(client)),
            Box::pin(list(client)),
            Box::pin(list(client)),
            Box::pin(mutating(client)),
        )?;
        Ok(Self { config, cluster_roles, cluster_role_bindings, virt_operator, policies, bindings, mutating })
    }

    /// The settings ConfigMap alone.
    pub async fn config(client: &Client) -> Result<Option<ConfigMap>, kube::Error> {
        Api::<ConfigMap>::namespaced(client.clone(), settings::NAMESPACE).get_opt(settings::NAME).await
    }

    /// The settings, if there are any and they are valid.
    pub fn settings(&self) -> Result<Option<Settings>, String> {
        self.config.as_ref().map(Settings::read).transpose()
    }

    /// What the decision about roles reads.
    pub fn roles<'a>(
        &'a self,
        settings: &'a Settings,
        repairs: &'a [(String, Timestamp)],
    ) -> reconcile::Observed<'a> {
        reconcile::Observed {
            settings,
            config: self.config.as_ref(),
            cluster_roles: &self.cluster_roles,
            virt_operator: self.virt_operator.as_deref(),
            repairs: Repairs { at: repairs, now: Timestamp::now() },
        }
    }

    /// What the decision about the guard reads.
    pub fn guard<'a>(
        &'a self,
        settings: &'a Settings,
        repairs: &'a [(String, Timestamp)],
    ) -> guard::Observed<'a> {
        let mutating = self.mutating.as_ref();
        guard::Observed {
            settings,
            policies: &self.policies,
            bindings: &self.bindings,
            mutating: mutating.map(|(policies, bindings)| (policies.as_slice(), bindings.as_slice())),
            cluster_roles: &self.cluster_roles,
            cluster_role_bindings: &self.cluster_role_bindings,
            repairs: Repairs { at: repairs, now: Timestamp::now() },
        }
    }
}

/// All of RBAC.
pub async fn rbac(client: &Client) -> Result<Rbac, kube::Error> {
    let (cluster_roles, roles, cluster_role_bindings, role_bindings) = tokio::try_join!(
        Box::pin(list(client)),
        Box::pin(list(client)),
        Box::pin(list(client)),
        Box::pin(list(client))
    )?;
    Ok(Rbac { cluster_roles, roles, cluster_role_bindings, role_bindings })
}

/// The grants nacre made.
pub async fn grants(client: &Client) -> Result<(Vec<ClusterRoleBinding>, Vec<RoleBinding>), kube::Error> {
    let ours = ListParams::default().labels(GRANT);
    let (cluster, namespaced) = (Api::all(client.clone()), Api::all(client.clone()));
    let (cluster, namespaced) = tokio::try_join!(cluster.list(&ours), namespaced.list(&ours))?;
    Ok((cluster.items, namespaced.items))
}

/// Executes a plan that was made without the cache.
pub async fn execute_plan(client: &Client, plan: &Plan) -> Result<(), Failure> {
    let executor = Executor::uncached(client.clone(), settings::NAMESPACE);
    let about = Key {
        kind: api::Kind::ConfigMap,
        namespace: settings::NAMESPACE.to_owned(),
        name: settings::NAME.to_owned(),
    };
    executor.execute(&about, plan).await
}

/// Whether live migration is configured.
pub async fn is_configured(client: &Client) -> Result<bool, kube::Error> {
    Ok(Seen::config(client).await?.is_some())
}

/// Whether the API server knows mutating policies at all.
pub async fn knows_mutating_policies(client: &Client) -> Result<bool, kube::Error> {
    Ok(mutating(client).await?.is_some())
}

async fn list<K>(client: &Client) -> Result<Vec<K>, kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    Ok(Api::<K>::all(client.clone()).list(&ListParams::default()).await?.items)
}

async fn virt_operator(client: &Client) -> Result<Option<String>, kube::Error> {
    let operators = ListParams::default().labels(VIRT_OPERATOR);
    let found = Api::<Deployment>::all(client.clone()).list(&operators).await?;
    let at_work = |deployment: &Deployment| {
        deployment.spec.as_ref().and_then(|spec| spec.replicas).is_none_or(|replicas| replicas > 0)
    };
    Ok(found.items.into_iter().find(at_work).and_then(|deployment| deployment.namespace()))
}

type Mutating = (Vec<MutatingAdmissionPolicy>, Vec<MutatingAdmissionPolicyBinding>);

async fn mutating(client: &Client) -> Result<Option<Mutating>, kube::Error> {
    match tokio::try_join!(list(client), list(client)) {
        Ok(found) => Ok(Some(found)),
        // An API server before 1.36 has no such policies.
        Err(error) if status(&error).is_some_and(|status| status.code == 404) => Ok(None),
        Err(error) => Err(error),
    }
}
