//! Somebody with a kubeconfig and `kubectl nacre`.

use std::path::PathBuf;

use anyhow::Result;
use e2e::{Tenant, TestCluster};
use serde_json::{Value, json};

use crate::program::{Ended, nacre};

/// A tenant who has nothing but a kubeconfig and the program.
pub(crate) struct Person<'a> {
    pub(crate) tenant: Tenant<'a>,
    pub(crate) kubeconfig: PathBuf,
}

impl<'a> Person<'a> {
    /// Somebody with the `admin` role in a namespace of their own, and a kubeconfig that says so.
    pub(crate) async fn new(test_cluster: &'a TestCluster, namespace: &str, user: &str) -> Result<Self> {
        let tenant = test_cluster.tenant(namespace, user).await?;
        let mut config: Value = serde_json::from_slice(&std::fs::read(test_cluster.bed.kubeconfig())?)?;
        // The bed has no passwords but the helper's own: everybody else is acted for.
        config["users"][0]["user"]["as"] = json!(user);
        config["users"][0]["user"]["as-groups"] = json!(["system:authenticated"]);
        config["contexts"][0]["context"]["namespace"] = json!(namespace);
        let kubeconfig = test_cluster.bed.folder().join(format!("kubeconfig-{namespace}"));
        std::fs::write(&kubeconfig, config.to_string())?;
        Ok(Self { tenant, kubeconfig })
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
