//! Somebody with a kubeconfig and `kubectl nacre`.

use std::path::PathBuf;

use anyhow::Result;
use bed::Bed;
use e2e::{Tenant, TestCluster};
use serde_json::{Value, json};

use crate::program::{Ended, nacre};

/// A tenant who has nothing but a kubeconfig and the program.
pub(crate) struct Person<'a> {
    pub(crate) tenant: Tenant<'a>,
    pub(crate) kubeconfig: PathBuf,
}

/// A kubeconfig that says who somebody is, and which namespace is theirs.
fn kubeconfig(bed: &Bed, namespace: &str, user: &str, file: &str) -> Result<PathBuf> {
    let mut config: Value = serde_json::from_slice(&std::fs::read(bed.kubeconfig())?)?;
    // The bed has no passwords but the helper's own: everybody else is acted for.
    config["users"][0]["user"]["as"] = json!(user);
    config["users"][0]["user"]["as-groups"] = json!(["system:authenticated"]);
    config["contexts"][0]["context"]["namespace"] = json!(namespace);
    let path = bed.folder().join(format!("kubeconfig-{file}"));
    std::fs::write(&path, config.to_string())?;
    Ok(path)
}

impl<'a> Person<'a> {
    /// Somebody with the `admin` role in a namespace of their own, and a kubeconfig that says so.
    pub(crate) async fn new(test_cluster: &'a TestCluster, namespace: &str, user: &str) -> Result<Self> {
        let tenant = test_cluster.tenant(namespace, user).await?;
        let kubeconfig = kubeconfig(&test_cluster.bed, namespace, user, namespace)?;
        Ok(Self { tenant, kubeconfig })
    }

    /// The kubeconfig of somebody who may only look at this namespace's requests.
    pub(crate) async fn viewer(&self, user: &str) -> Result<PathBuf> {
        self.colleague(user, &["nacre:view"]).await
    }

    /// The kubeconfig of somebody with these ClusterRoles in this namespace.
    pub(crate) async fn colleague(&self, user: &str, roles: &[&str]) -> Result<PathBuf> {
        let namespace = &self.tenant.namespace;
        for role in roles {
            let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": {"name": format!("{user}-{}", role.replace(':', "-")), "namespace": namespace},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]});
            self.tenant.bed.apply_yaml(&binding.to_string()).await?;
        }
        kubeconfig(self.tenant.bed, namespace, user, &format!("{namespace}-{user}"))
    }

    /// Runs `kubectl nacre`.
    pub(crate) async fn nacre(&self, arguments: &[&str]) -> Result<Ended> {
        nacre(&self.kubeconfig, arguments).await
    }

    /// Runs it, and returns what it printed if it ended well.
    pub(crate) async fn says(&self, arguments: &[&str]) -> Result<String> {
        self.nacre(arguments).await?.with(0)
    }
}
