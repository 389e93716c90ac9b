//! Velero, outside the cluster but with its service account's permissions.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::access::Access;
use crate::apply::{apply, parse_manifests};
use crate::binaries::Binaries;
use crate::ports::free_ports;
use crate::process::{Process, Program};
use crate::store::{REGION, Store};
use crate::wait::wait_until;

/// The bucket of the default location.
pub const BUCKET: &str = "platform";
/// How long one start of the server may take.
const TIMEOUT: Duration = Duration::from_secs(90);
/// How often it is started before that counts as a failure.
const STARTS: usize = 3;

/// Puts a disk of so many bytes in place of a folder, and starts the rest of its arguments. It ends with them.
const SMALL_DISK: &str = r#"set -e; mount -t tmpfs -o "size=$2" small "$1"; shift 2; exec "$@""#;

/// Velero as installed on a bed; the server may be stopped and started.
#[derive(Debug)]
pub(crate) struct Velero {
    server: Mutex<Option<Process>>,
    program: PathBuf,
    folder: PathBuf,
    kubeconfig: PathBuf,
    namespace: String,
    flags: Vec<String>,
    /// How many bytes its temporary folder holds, if that is limited.
    disk: Option<usize>,
}

/// Velero's custom resource definitions as the real program prints them. Needs no cluster.
pub(crate) async fn definitions(binaries: &Binaries) -> Result<Vec<DynamicObject>> {
    let output = tokio::process::Command::new(binaries.path("velero"))
        .args(["install", "--crds-only", "--dry-run", "-o", "yaml"])
        .kill_on_drop(true)
        .output()
        .await?;
    ensure!(output.status.success(), "velero install: {}", String::from_utf8_lossy(&output.stderr));
    parse_manifests(&String::from_utf8(output.stdout)?)
}

/// Everything that Velero's own installer creates besides the CRDs, with a default location in `store`.
fn objects(namespace: &str, store: &Store, flags: &[String], prefix: &str) -> Vec<Value> {
    let metadata = |name: &str| json!({ "name": name, "namespace": namespace });
    let labels = json!({ "component": "velero" });
    let place = if prefix.is_empty() {
        json!({ "bucket": BUCKET })
    } else {
        json!({ "bucket": BUCKET, "prefix": prefix })
    };
    let args: Vec<_> = ["server"].into_iter().chain(flags.iter().map(String::as_str)).collect();
    vec![
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } }),
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata("velero") }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": { "name": format!("velero-{namespace}") },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "kind": "ServiceAccount", "name": "velero", "namespace": namespace }],
        }),
        // Every restore looks for this Deployment and ends PartiallyFailed without it.
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata("velero"),
            "spec": {
                "replicas": 0,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": {
                        "serviceAccountName": "velero",
                        "containers": [{ "name": "velero", "image": "velero/velero:v1.18.3", "args": args }],
                    },
                },
            },
        }),
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata("cloud-credentials"),
            "stringData": { "cloud": store.credentials() },
        }),
        json!({
            "apiVersion": "velero.io/v1",
            "kind": "BackupStorageLocation",
            "metadata": metadata("default"),
            "spec": {
                "provider": "aws",
                "default": true,
                "objectStorage": place,
                "config": { "region": REGION, "s3ForcePathStyle": "true", "s3Url": store.url() },
            },
        }),
    ]
}

impl Velero {
    /// Installs Velero without starting it, with its own backups below a prefix of the bucket.
    pub(crate) async fn install(
        binaries: &Binaries,
        folder: &Path,
        access: &Access,
        store: &Store,
        (namespace, prefix): (&str, &str),
        flags: Vec<String>,
        definitions: &[DynamicObject],
    ) -> Result<Self> {
        store.make_bucket(BUCKET)?;
        let client = access.admin_client().await?;
        apply(&client, definitions).await?;
        let objects: Vec<DynamicObject> = objects(namespace, store, &flags, prefix)
            .into_iter()
            .map(serde_json::from_value)
            .collect::<Result<_, _>>()?;
        apply(&client, &objects).await?;
        let folder = folder.join(if prefix.is_empty() { "velero" } else { prefix });
        // Velero runs every file it finds in its plugin folder.
        let plugins = folder.join("plugins");
        fs::create_dir_all(&plugins)?;
        fs::create_dir_all(folder.join("tmp"))?;
        // As `velero install` does it, the location names no credential: Velero would write its file again for each use, in
        // place, and whatever reads it at that moment fails.
        fs::create_dir_all(folder.join(".aws"))?;
        fs::write(folder.join(".aws/credentials"), store.credentials())?;
        symlink(binaries.path("velero-plugin-for-aws"), plugins.join("velero-plugin-for-aws"))
            .context("linking Velero's plugin")?;
        Ok(Self {
            server: Mutex::new(None),
            program: binaries.path("velero"),
            folder,
            kubeconfig: access.service_account_kubeconfig(namespace, "velero").await?,
            namespace: namespace.to_owned(),
            flags,
            disk: None,
        })
    }

    /// The same, with a temporary folder of so many bytes.
    pub(crate) fn on_small_disk(self, bytes: Option<usize>) -> Self {
        Self { disk: bytes, ..self }
    }

    /// Says of the default location what the server would say, which is not started.
    pub(crate) async fn stay_idle(&self, client: &Client) -> Result<()> {
        let locations = api(client, &self.namespace, "BackupStorageLocation");
        let status = Patch::Merge(json!({ "status": { "phase": "Available" } }));
        locations.patch("default", &PatchParams::default(), &status).await?;
        Ok(())
    }

    /// Starts the server if it does not run, and waits until the default location is available.
    ///
    /// On a busy machine Velero sometimes hangs between its first lines and its first work, silently
    /// (seen once in some hundred starts). Then it is started again, as a kubelet does by a probe.
    pub(crate) async fn start(&self, client: &Client) -> Result<()> {
        if self.runs() {
            return Ok(());
        }
        let mut tries = 0;
        loop {
            tries += 1;
            // What an earlier server found of the location would not show that this one works.
            let unknown = Patch::Merge(json!({ "status": { "lastValidationTime": null } }));
            let locations = api(client, &self.namespace, "BackupStorageLocation");
            locations.patch("default", &PatchParams::default(), &unknown).await?;
            let server = self.program()?.start()?;
            match self.until_available(&server, client).await {
                Ok(()) => {
                    *self.lock() = Some(server);
                    return Ok(());
                }
                Err(_) if server.is_running() && tries < STARTS => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn until_available(&self, server: &Process, client: &Client) -> Result<()> {
        let locations = api(client, &self.namespace, "BackupStorageLocation");
        let available =
            wait_until("the default location to be available", TIMEOUT, locations, "default", |location| {
                let status = &location?.data["status"];
                (status["phase"] == "Available" && status["lastValidationTime"].is_string()).then_some(())
            });
        server.must_do(available).await
    }

    /// Whether the server was started and has not exited.
    pub(crate) fn runs(&self) -> bool {
        self.lock().as_ref().is_some_and(Process::is_running)
    }

    /// Kills the server and its plugins.
    pub(crate) fn stop(&self) {
        drop(self.lock().take());
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    fn program(&self) -> Result<Program> {
        let [metrics, profiler] = free_ports()?;
        // Velero keeps credentials under the temporary folder and repositories under the home: beds must not share.
        let program = Program::new(&self.program, self.folder.join("server.log"))
            .env("KUBECONFIG", self.kubeconfig.display().to_string())
            .env("HOME", self.folder.display().to_string())
            .env("TMPDIR", self.folder.join("tmp").display().to_string())
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .without_env("AWS_SHARED_CREDENTIALS_FILE")
            .without_env("AWS_ACCESS_KEY_ID")
            .without_env("AWS_SECRET_ACCESS_KEY")
            .without_env("AWS_PROFILE")
            .args(["server", "--namespace", &self.namespace])
            .arg(format!("--plugin-dir={}", self.folder.join("plugins").display()))
            .arg(format!("--metrics-address=127.0.0.1:{metrics}"))
            .arg(format!("--profiler-address=127.0.0.1:{profiler}"))
            .args(&self.flags);
        let Some(bytes) = self.disk else { return Ok(program) };
        let starter = ["unshare", "--mount", "--map-root-user", "bash", "-c", SMALL_DISK, "small disk"];
        let folder = self.folder.join("tmp").display().to_string();
        Ok(program.within(starter.map(String::from).into_iter().chain([folder, bytes.to_string()])))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Process>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The API of one of Velero's kinds, by its singular name: `Backup`, `Restore`, `BackupStorageLocation`.
pub(crate) fn api(client: &Client, namespace: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("velero.io", "v1", kind));
    Api::namespaced_with(client.clone(), namespace, &resource)
}
