//! A cluster with Velero and nacre, and consoles of several people.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bed::{Bed, Process, eventually};
use e2e::{Nacre, Tenant, TestCluster};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

const POLICY: &str = "
storageLocations: { requireApproval: true, endpoints: { allow: ['127.0.0.1'] } }
downloads: { platformStorage: all }
backup: { enforce: { csiSnapshotTimeout: 12m } }
";

/// A cluster with Velero and nacre as an installation sets it up, webhook included.
pub(crate) async fn test_cluster() -> Result<&'static TestCluster> {
    static CLUSTER: OnceCell<(TestCluster, Nacre)> = OnceCell::const_new();
    let started = CLUSTER.get_or_try_init(|| async {
        let cluster = TestCluster::build().await?;
        cluster.set_policy(POLICY).await?;
        cluster.admission().await?;
        let (nacre, _) = cluster.start_answering(&cluster.tenant("first", "first").await?, &[]).await?;
        anyhow::Ok((cluster, nacre))
    });
    Ok(&started.await?.0)
}

/// A cluster with the definitions of nacre and Velero and nobody who acts on them, so that a story can say what happens when.
pub(crate) async fn stage() -> Result<&'static TestCluster> {
    static STAGE: OnceCell<TestCluster> = OnceCell::const_new();
    STAGE.get_or_try_init(|| async { TestCluster::build_with_idle_velero().await }).await
}

/// The console on somebody's laptop.
pub(crate) struct Laptop {
    /// The link that was printed, with its code.
    pub(crate) link: String,
    // The console ends with it.
    _process: Process,
}

/// Opens the console as somebody, in this namespace.
pub(crate) async fn laptop(bed: &Bed, namespace: &str, user: Option<&str>) -> Result<Laptop> {
    let mut config: Value = serde_json::from_slice(&std::fs::read(bed.kubeconfig())?)?;
    if let Some(user) = user {
        config["users"][0]["user"]["as"] = json!(user);
        config["users"][0]["user"]["as-groups"] = json!(["system:authenticated"]);
    }
    config["contexts"][0]["context"]["namespace"] = json!(namespace);
    let name = format!("console-{namespace}-{}", user.unwrap_or("admin"));
    let kubeconfig: PathBuf = bed.folder().join(format!("kubeconfig-{name}"));
    std::fs::write(&kubeconfig, config.to_string())?;
    let program = bed.program(e2e::command_line()?, &name, &kubeconfig).args(["console", "--no-open"]);
    let process = program.start()?;
    let link = eventually("the console's link", Duration::from_mins(2), async || {
        let output = process.output();
        let link = output.lines().find(|line| line.starts_with("http://127.0.0.1:"));
        link.map(str::to_owned).context(output.clone())
    });
    let link = process.must_live(link).await?;
    Ok(Laptop { link, _process: process })
}

impl Laptop {
    /// A page of this console.
    pub(crate) fn page(&self, path: &str) -> String {
        let base = self.link.split_once("/start").map_or(self.link.as_str(), |(base, _)| base);
        format!("{base}{path}")
    }
}

/// Somebody who owns a namespace, with something in it.
pub(crate) async fn owner(namespace: &str, user: &str) -> Result<Tenant<'static>> {
    let tenant = test_cluster().await?.tenant(namespace, user).await?;
    let prices = json!({"data": {"tea": "3"}});
    tenant.create::<k8s_openapi::api::core::v1::ConfigMap>("prices", prices).await?;
    Ok(tenant)
}
