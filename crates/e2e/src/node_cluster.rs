//! nacre on a real node, installed as an administrator installs it: for stories about pods and volumes.
//!
//! ```no_run
//! # async fn story() -> anyhow::Result<()> {
//! let cluster = e2e::NodeCluster::start().await?; // a node with Velero, and nacre in two pods
//! let shop = cluster.tenant("shop", "ada").await?; // a namespace, and somebody with `edit` in it
//! shop.start_pod("db", 8 << 20).await?; // a claim, a pod, and 8 MiB of random bytes in the volume
//! let before = shop.checksum("db").await?;
//! shop.cli(&["backup", "create", "one", "--default-volumes-to-fs-backup", "--wait"]).await?.ok()?;
//! shop.lose_namespace_contents().await?;
//! shop.cli(&["restore", "create", "--from-backup", "one", "--wait"]).await?.ok()?;
//! assert_eq!(shop.checksum("db").await?, before);
//! # Ok(()) }
//! ```
//!
//! A test program has one such cluster for all its stories, each story a namespace of its own (`tests/node/main.rs`).
//! The image holds the release build with its shared libraries, which costs no further build. `NACRE_IMAGE` is an
//! archive of `make image` to use instead: `make long` runs the stories with the image that ships.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use api::NonAdminBackup;
use api::velero::{Backup, Restore};
use bed::{Node, Output, eventually, wait_until};
use image::nacre;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::test_cluster::program;
use crate::{NodeTenant, Site, VELERO, command_line};

/// How long a busy machine may take.
pub(crate) const PATIENCE: Duration = Duration::from_mins(4);
/// The label of stories' namespaces, by which they are found and removed.
const STORY: &str = "nacre.dev/story";
/// The label of nacre's pods.
const PODS: &str = "control-plane=non-admin-controller";
/// What runs pods.
const WORKLOADS: &str = "deployments,statefulsets,daemonsets,cronjobs,jobs,pods";

/// A cluster with Velero, its node agent, and nacre in pods. Dropping it ends what was started for it.
pub struct NodeCluster {
    /// Where it runs.
    pub site: Site,
    /// The image that nacre was installed with.
    pub image: String,
    /// Namespaces of tenants that nobody uses any more.
    finished: Mutex<Vec<String>>,
}

impl NodeCluster {
    /// Whether a node can run here; if not, standard error says why. With `CI=true` it must.
    pub fn can_run() -> Result<bool> {
        if Site::is_existing_named() {
            // Past the test runner, which keeps to itself what a passing test prints.
            writeln!(std::io::stderr(), "skipped, it would disturb a cluster that exists")?;
            return Ok(false);
        }
        let Err(reason) = Node::check_ready() else { return Ok(true) };
        ensure!(
            std::env::var("CI").as_deref() != Ok("true"),
            "CI=true, but no node can run here: {reason:#}"
        );
        // Past the test runner, which keeps to itself what a passing test prints.
        writeln!(std::io::stderr(), "skipped, no node can run here: {reason:#}")?;
        Ok(false)
    }

    /// The cluster that exists, if one was named. nacre must be installed in it.
    pub async fn existing() -> Result<Option<Self>> {
        let Some(site) = Site::existing()? else { return Ok(None) };
        let cluster = Self { site, image: String::new(), finished: Mutex::default() };
        let kinds = ["get", "customresourcedefinition", "nonadminbackups.oadp.openshift.io", "--output=name"];
        cluster
            .site
            .kubectl(&kinds)
            .await?
            .ok()
            .context("nacre is not installed there: kubectl nacre install")?;
        Ok(Some(cluster))
    }

    /// Starts a node, loads nacre's image, and installs nacre.
    pub async fn start() -> Result<Self> {
        let cluster = Self::start_without_nacre().await?;
        cluster.install().await?;
        Ok(cluster)
    }

    /// Starts a node with nacre's image, and installs nothing.
    pub async fn start_without_nacre() -> Result<Self> {
        Self::on(Node::start().await?).await
    }

    /// A node with nacre's image.
    pub(crate) async fn on(node: Node) -> Result<Self> {
        let (archive, image) = image_archive(&node)?;
        node.load_image(&archive).await.with_context(|| format!("loading {}", archive.display()))?;
        Ok(Self { site: Site::Node(Box::new(node)), image, finished: Mutex::default() })
    }

    /// Installs nacre as an administrator does, and waits until its pods are available and the webhook answers.
    pub async fn install(&self) -> Result<String> {
        let args = ["install", "--image", &self.image, "--wait", "--timeout", "4m"];
        let printed = self.cli(&args).await?.ok()?;
        self.until_webhook_answers().await?;
        Ok(printed)
    }

    /// Waits until the API server asks nacre's webhook through its Service. What is asked for is refused by nothing else.
    pub async fn until_webhook_answers(&self) -> Result<()> {
        let probe = json!({
            "apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
            "metadata": { "name": "probe" }, "spec": { "backupSpec": { "includeClusterResources": true } },
        });
        let file = self.site.folder().join("probe.json");
        std::fs::write(&file, probe.to_string())?;
        let file = format!("--filename={}", file.display());
        eventually("the webhook to be asked through its Service", PATIENCE, async || {
            let asked =
                self.site.kubectl(&["create", "--dry-run=server", "--namespace=default", &file]).await?;
            ensure!(asked.stderr.contains("requests.nacre.dev"), "not refused by the webhook: {asked:?}");
            Ok(())
        })
        .await
    }

    /// Velero's namespace.
    pub fn velero(&self) -> &str {
        match &self.site {
            Site::Node(node) => node.velero_namespace(),
            Site::Existing(_) => VELERO,
        }
    }

    /// Runs a shell command as an administrator types it, `kubectl nacre` included.
    pub async fn type_command(&self, command: &str) -> Result<Output> {
        let plugin = command_line()?;
        let plugins = plugin.parent().context("the command line is in no folder")?.display();
        let enter = self.site.node()?.folder().join("enter");
        let typed = format!("PATH={plugins}:$PATH; {command}");
        self.site.run_as(&self.site.kubeconfig(), &enter, &["sh", "-c", &typed]).await
    }

    /// Runs `kubectl nacre` as an administrator.
    pub async fn cli(&self, args: &[&str]) -> Result<Output> {
        self.site.run_as(&self.site.kubeconfig(), command_line()?, args).await
    }

    /// Makes a namespace, and a user who has the `edit` role in it and no other permission.
    pub async fn tenant(&self, namespace: &str, user: &str) -> Result<NodeTenant<'_>> {
        let namespace = &self.site.namespace(namespace);
        self.delete_finished_workloads(namespace).await?;
        let metadata = json!({ "name": namespace, "labels": { STORY: "true" } });
        let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": { "name": format!("edit-{user}"), "namespace": namespace },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit" },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
        });
        self.site.apply(&[serde_json::from_value(object)?, serde_json::from_value(binding)?]).await?;
        // Without it no pod can be made.
        let accounts = Api::<ServiceAccount>::namespaced(self.site.client().await?, namespace);
        wait_until("the default ServiceAccount", PATIENCE, accounts, "default", |account| {
            account.map(|_| ())
        })
        .await?;
        let tenant = NodeTenant::new(self, namespace, user).await?;
        eventually("the tenant's permissions", PATIENCE, async || {
            tenant.kubectl(&["auth", "can-i", "create", "nonadminbackups.oadp.openshift.io"]).await?.ok()
        })
        .await?;
        Ok(tenant)
    }

    /// Nobody uses this tenant any more.
    pub(crate) fn finish(&self, namespace: &str) {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner).push(namespace.to_owned());
    }

    /// Deletes the workloads of tenants that nobody uses any more, but for the tenant of this namespace, who is used again.
    /// A restored pod keeps the CPU that Velero's init container asked for: 19 of them fill a node with two cores.
    async fn delete_finished_workloads(&self, but: &str) -> Result<()> {
        let finished = std::mem::take(&mut *self.finished.lock().unwrap_or_else(PoisonError::into_inner));
        for namespace in finished.iter().filter(|namespace| *namespace != but) {
            // A story may have deleted the namespace itself.
            let delete = ["delete", WORKLOADS, "--all", "--namespace", namespace, "--wait=false"];
            self.site.kubectl(&delete).await?;
        }
        Ok(())
    }

    /// Sets the policy, as an administrator. Empty text allows what nacre allows by default.
    pub async fn set_policy(&self, text: &str) -> Result<()> {
        let policy = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "nacre-policy", "namespace": self.velero() },
            "data": { "policy.yaml": if text.is_empty() { "{}" } else { text } },
        });
        self.site.apply(&[serde_json::from_value(policy)?]).await
    }

    /// Sets or removes (`None`) a label of a namespace, as an administrator.
    pub async fn label_namespace(&self, namespace: &str, label: &str, value: Option<&str>) -> Result<()> {
        let namespaces = Api::<Namespace>::all(self.site.client().await?);
        let change = Patch::Merge(json!({ "metadata": { "labels": { label: value } } }));
        namespaces.patch(namespace, &PatchParams::default(), &change).await?;
        Ok(())
    }

    /// Takes Velero's node agent away from every node, or puts it back, and waits until that is so.
    pub async fn node_agent(&self, runs: bool) -> Result<()> {
        let client = self.site.client().await?;
        let agents = Api::<DaemonSet>::namespaced(client.clone(), VELERO);
        let nowhere = if runs { json!(null) } else { json!({ "nacre.dev/no-such-node": "true" }) };
        let change = Patch::Merge(json!({ "spec": { "template": { "spec": { "nodeSelector": nowhere } } } }));
        agents.patch("node-agent", &PatchParams::default(), &change).await?;
        if !runs {
            let (at_once, agent) =
                (DeleteParams::default().grace_period(0), ListParams::default().labels("name=node-agent"));
            Api::<Pod>::namespaced(client, VELERO).delete_collection(&at_once, &agent).await?;
        }
        wait_until("the node agents", PATIENCE, agents, "node-agent", |agents| {
            let (wanted, status) = (agents?.metadata.generation, agents?.status.as_ref()?);
            (status.observed_generation == wanted && (status.number_ready > 0) == runs).then_some(())
        })
        .await
    }

    /// Makes the cluster what stories expect, whatever a story did to it: nacre installed and ready, a Velero that is
    /// cluster-admin, a node agent, no policy, no restrictions on Velero's namespace, and nothing that waits, at nacre or at Velero.
    pub async fn tidy_up(&self) -> Result<()> {
        self.set_policy("").await?;
        self.node_agent(true).await?;
        self.label_namespace(VELERO, "pod-security.kubernetes.io/enforce", None).await?;
        let deployments = Api::<Deployment>::namespaced(self.site.client().await?, VELERO);
        if deployments.get_opt("non-admin-controller").await?.is_none() {
            self.install().await?;
        }
        self.unfence().await?;
        self.velero_as_installed().await?;
        self.nacre_pods_ready(2).await?;
        self.delete_requests().await?;
        self.empty_velero_queue().await
    }

    /// Deletes the backups that stories asked for. Those that wait for their turn would be given to Velero during the
    /// next stories: of a flood of 500, for half an hour. What Velero has made stays.
    async fn delete_requests(&self) -> Result<()> {
        let client = self.site.client().await?;
        let of_stories = ListParams::default().labels(STORY);
        for namespace in Api::<Namespace>::all(client.clone()).list(&of_stories).await?.items {
            let requests = Api::<NonAdminBackup>::namespaced(client.clone(), &namespace.name_any());
            requests.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
        }
        Ok(())
    }

    /// Gives Velero cluster-admin back, if a story took it away and ended half-way.
    async fn unfence(&self) -> Result<()> {
        let velero = format!("--as=system:serviceaccount:{VELERO}:velero");
        let may = ["auth", "can-i", "create", "namespaces", "--all-namespaces", &velero];
        if self.site.kubectl(&may).await?.stdout.trim() == "yes" {
            return Ok(());
        }
        let account = format!("--serviceaccount={VELERO}:velero");
        let bind =
            ["create", "clusterrolebinding", "velero-unfenced", "--clusterrole=cluster-admin", &account];
        self.site.kubectl(&bind).await?.ok()?;
        self.cli(&["install", "--fence=false", "--wait", "--timeout", "4m"]).await?.ok()?;
        Ok(())
    }

    /// Takes from Velero the flag and the limits that a fence brings, and waits until it runs.
    async fn velero_as_installed(&self) -> Result<()> {
        let deployments = Api::<Deployment>::namespaced(self.site.client().await?, VELERO);
        let mut velero = deployments.get("velero").await?;
        let pod = velero.spec.as_mut().and_then(|spec| spec.template.spec.as_mut());
        let container = pod.and_then(|pod| pod.containers.first_mut()).context("no container")?;
        let of_fence = |flag: &String| flag.starts_with("--disable-informer-cache");
        let flagged = container.args.iter().flatten().any(of_fence);
        let limits = container.resources.as_mut().and_then(|resources| resources.limits.take());
        if flagged || limits.is_some_and(|limits| !limits.is_empty()) {
            container.args.iter_mut().for_each(|args| args.retain(|flag| !of_fence(flag)));
            deployments.replace("velero", &PostParams::default(), &velero).await?;
        }
        let rollout = ["rollout", "status", "deployment/velero", "-n", VELERO, "--timeout=4m"];
        self.site.kubectl(&rollout).await?.ok().map(drop)
    }

    /// Removes what waits at Velero, and waits for what it works on: it does one thing after the other, and a story after
    /// this one would wait for all of it.
    async fn empty_velero_queue(&self) -> Result<()> {
        let backups = Api::<Backup>::namespaced(self.site.client().await?, VELERO);
        let restores = Api::<Restore>::namespaced(self.site.client().await?, VELERO);
        let waits =
            |phase: Option<&str>| matches!(phase, None | Some("" | "New" | "Queued" | "ReadyToStart"));
        let works = |phase: Option<&str>| {
            matches!(phase, Some("InProgress" | "WaitingForPluginOperations" | "Finalizing"))
        };
        eventually("Velero to have nothing to do", PATIENCE * 2, async || {
            let mut busy = Vec::new();
            for backup in backups.list(&ListParams::default()).await?.items {
                let phase = backup.status.as_ref().and_then(|status| status.phase.as_deref());
                if waits(phase) {
                    backups.delete(&backup.name_any(), &DeleteParams::default()).await?;
                } else if works(phase) {
                    busy.push(backup.name_any());
                }
            }
            for restore in restores.list(&ListParams::default()).await?.items {
                let phase = restore.status.as_ref().and_then(|status| status.phase.as_deref());
                if waits(phase) || works(phase) {
                    busy.push(restore.name_any());
                }
            }
            ensure!(busy.is_empty(), "it works on {busy:?}");
            Ok(())
        })
        .await
    }

    /// nacre's pods that are not being deleted.
    pub async fn nacre_pods(&self) -> Result<Vec<Pod>> {
        let pods = Api::<Pod>::namespaced(self.site.client().await?, self.velero());
        let found = pods.list(&ListParams::default().labels(PODS)).await?.items;
        Ok(found.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect())
    }

    /// Waits until so many pods of nacre are Ready and no others are there, and returns their names.
    pub async fn nacre_pods_ready(&self, number: usize) -> Result<Vec<String>> {
        eventually("nacre's pods to be Ready", PATIENCE, async || {
            let pods = self.nacre_pods().await?;
            let ready = pods.iter().filter(|pod| is_ready(pod)).count();
            ensure!(ready == number && pods.len() == number, "{ready} of {} pods are Ready", pods.len());
            Ok(pods.iter().map(Pod::name_any).collect())
        })
        .await
    }

    /// The pod that is leader; waits while nobody is.
    pub async fn leader(&self) -> Result<String> {
        let leases = Api::<Lease>::namespaced(self.site.client().await?, "kube-system");
        eventually("a leader", PATIENCE, async || {
            let holder = leases.get("nacre").await?.spec.and_then(|spec| spec.holder_identity);
            let holder = holder.unwrap_or_default();
            // It is "namespace/pod_random".
            let pod = holder.rsplit_once('/').and_then(|(_, rest)| Some(rest.rsplit_once('_')?.0));
            anyhow::Ok(pod.with_context(|| format!("no pod in {holder:?}"))?.to_owned())
        })
        .await
    }
}

/// Whether a pod is Ready.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True")
}

/// The archive of nacre's image, and the image's name.
fn image_archive(node: &Node) -> Result<(PathBuf, String)> {
    if let Some(archive) = std::env::var_os("NACRE_IMAGE").filter(|archive| !archive.is_empty()) {
        return Ok((archive.into(), format!("localhost/nacre:{}", nacre::VERSION)));
    }
    let name = "localhost/nacre:test".to_owned();
    let archive = node.folder().join("nacre.tar");
    let program = program()?;
    let programs = program.parent().context("nacre is in no folder")?;
    nacre::test_image(&name, programs)?.write(&archive)?;
    Ok((archive, name))
}
