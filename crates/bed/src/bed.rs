//! The bed as a whole: what to start, and what it offers once it runs.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::apply::apply;
use crate::audit::Audit;
use crate::binaries::Binaries;
use crate::control_plane::{ControlPlane, Settings, is_busy_port};
use crate::folder::Folder;
use crate::process::Program;
use crate::store::Store;
use crate::velero::{self, Velero};

/// A port that was free may be taken by somebody else before its program gets there. Twice is bad luck.
const TRIES: usize = 3;

/// A running cluster; dropping it stops everything and removes its folder.
#[derive(Debug)]
pub struct Bed {
    // Dropped from top to bottom: whoever needs something goes before it.
    velero: Option<Velero>,
    more_veleros: Mutex<Vec<Velero>>,
    store: Option<Store>,
    pub(crate) control_plane: ControlPlane,
    pub(crate) binaries: Binaries,
    pub(crate) folder: Folder,
}

/// What a bed shall consist of.
#[derive(Debug, Clone)]
pub struct Builder {
    store: bool,
    velero: bool,
    velero_is_idle: bool,
    velero_namespace: String,
    velero_flags: Vec<String>,
    velero_disk: Option<usize>,
    folder: Option<PathBuf>,
    control_plane: Settings,
}

impl Builder {
    /// Also an S3 store.
    #[must_use]
    pub fn with_store(mut self) -> Self {
        self.store = true;
        self
    }

    /// Also Velero, and the S3 store it needs.
    #[must_use]
    pub fn with_velero(mut self) -> Self {
        self.velero = true;
        self.with_store()
    }

    /// The same, but Velero's server is not started: for those who play it by hand.
    #[must_use]
    pub fn with_idle_velero(mut self) -> Self {
        self.velero_is_idle = true;
        self.with_velero()
    }

    /// Velero's namespace, by default `velero`.
    #[must_use]
    pub fn velero_namespace(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.velero_namespace);
        self
    }

    /// One more flag of `velero server`.
    #[must_use]
    pub fn velero_flag(mut self, flag: &str) -> Self {
        self.velero_flags.push(flag.to_owned());
        self
    }

    /// A temporary folder of so many bytes for Velero, as a limit of ephemeral storage gives its pod. It is empty again
    /// after a restart.
    #[must_use]
    pub fn velero_disk(mut self, bytes: usize) -> Self {
        self.velero_disk = Some(bytes);
        self
    }

    /// One more flag of kube-apiserver.
    #[must_use]
    pub fn api_server_flag(mut self, flag: &str) -> Self {
        self.control_plane.api_server_flags.push(flag.to_owned());
        self
    }

    /// The audit log holds reads too, not only writes.
    #[must_use]
    pub fn audit_reads(mut self) -> Self {
        self.control_plane.audit_reads = true;
        self
    }

    /// Lives in this folder, which stays, instead of a temporary one.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Starts it all and waits until it can be used.
    pub async fn start(self) -> Result<Bed> {
        let binaries = Binaries::find()?;
        for _ in 1..TRIES {
            // Boxed, since a test's thread has a small stack and this is a large future.
            match Box::pin(self.try_start(&binaries)).await {
                Err(error) if is_busy_port(&error) => {}
                outcome => return outcome,
            }
        }
        Box::pin(self.try_start(&binaries)).await
    }

    async fn try_start(&self, binaries: &Binaries) -> Result<Bed> {
        let folder = match &self.folder {
            Some(path) => Folder::named(path)?,
            None => Folder::temporary()?,
        };
        let path = folder.path();
        let store =
            async { if self.store { Store::start(binaries, path).await.map(Some) } else { Ok(None) } };
        let definitions =
            async { if self.velero { velero::definitions(binaries).await } else { Ok(Vec::new()) } };
        let control_plane = ControlPlane::start(binaries, path, &self.control_plane);
        let (control_plane, store, definitions) = tokio::try_join!(control_plane, store, definitions)?;
        let velero = match &store {
            Some(store) if self.velero => {
                let (place, flags) = ((self.velero_namespace.as_str(), ""), self.velero_flags.clone());
                let access = &control_plane.access;
                let velero =
                    Velero::install(binaries, path, access, store, place, flags, &definitions).await?;
                let velero = velero.on_small_disk(self.velero_disk);
                let client = access.admin_client().await?;
                if self.velero_is_idle {
                    velero.stay_idle(&client).await?;
                } else {
                    velero.start(&client).await?;
                }
                Some(velero)
            }
            _ => None,
        };
        Ok(Bed {
            velero,
            more_veleros: Mutex::default(),
            store,
            control_plane,
            binaries: binaries.clone(),
            folder,
        })
    }
}

impl Bed {
    /// A control plane, to which more can be added.
    pub fn builder() -> Builder {
        Builder {
            store: false,
            velero: false,
            velero_is_idle: false,
            velero_namespace: "velero".to_owned(),
            velero_flags: Vec::new(),
            velero_disk: None,
            folder: None,
            control_plane: Settings::default(),
        }
    }

    /// Where its files and logs are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The address of the API server.
    pub fn server(&self) -> &str {
        self.control_plane.access.server()
    }

    /// The kubeconfig file of the bed's own helper, who is in `system:masters`.
    pub fn kubeconfig(&self) -> PathBuf {
        self.control_plane.access.admin_kubeconfig()
    }

    /// A client in `system:masters`. It belongs to the async runtime it is made in.
    pub async fn client(&self) -> Result<Client> {
        self.control_plane.access.admin_client().await
    }

    /// A client that acts as somebody else, by impersonation; `system:authenticated` is added to the groups.
    pub async fn client_as(&self, user: &str, groups: &[&str]) -> Result<Client> {
        self.control_plane.access.client_as(user, groups).await
    }

    /// The same with extra fields of the user, by key and value.
    pub async fn client_with_extra(
        &self,
        user: &str,
        groups: &[&str],
        extra: &[(&str, &str)],
    ) -> Result<Client> {
        let mut config = self.control_plane.access.config_as(user, groups).await?;
        for (key, value) in extra {
            let name = format!("impersonate-extra-{}", key.replace('/', "%2f"));
            config.headers.push((name.parse()?, value.parse()?));
        }
        Ok(Client::try_from(config)?)
    }

    /// Writes a kubeconfig file for a ServiceAccount that exists and returns its path.
    pub async fn service_account_kubeconfig(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        self.control_plane.access.service_account_kubeconfig(namespace, name).await
    }

    /// A client with a ServiceAccount's own token and rights.
    pub async fn service_account_client(&self, namespace: &str, name: &str) -> Result<Client> {
        let kubeconfig = self.service_account_kubeconfig(namespace, name).await?;
        Ok(Client::try_from(self.control_plane.access.config(&kubeconfig, crate::USER_AGENT).await?)?)
    }

    /// Applies objects by server-side apply; custom resource definitions come first and are waited for.
    pub async fn apply(&self, objects: &[DynamicObject]) -> Result<()> {
        apply(&self.client().await?, objects).await
    }

    /// Applies the documents of a YAML text.
    pub async fn apply_yaml(&self, yaml: &str) -> Result<()> {
        self.apply(&crate::parse_manifests(yaml)?).await
    }

    /// Applies a manifest file, or all of a folder.
    pub async fn apply_path(&self, path: &Path) -> Result<()> {
        self.apply(&crate::read_manifests(path)?).await
    }

    /// The audit log.
    pub fn audit(&self) -> Audit<'_> {
        Audit { log: &self.control_plane.audit_log, access: &self.control_plane.access, forward: None }
    }

    /// A program to run against this bed, with its output in the bed's folder and `KUBECONFIG` set.
    pub fn program(&self, path: impl Into<PathBuf>, log: &str, kubeconfig: &Path) -> Program {
        Program::new(path, self.folder().join(log)).env("KUBECONFIG", kubeconfig.display().to_string())
    }

    /// The S3 store.
    pub fn store(&self) -> Result<&Store> {
        self.store.as_ref().context("this bed was started without a store")
    }

    /// The namespace Velero lives in.
    pub fn velero_namespace(&self) -> Result<&str> {
        Ok(self.velero()?.namespace())
    }

    /// Kills the API server, starts it again, and waits until it is ready.
    pub async fn restart_api_server(&self) -> Result<()> {
        self.control_plane.restart_api_server().await
    }

    /// Stops etcd where it is, or lets it go on: meanwhile the API server answers nobody.
    pub fn pause_etcd(&self, pause: bool) -> Result<()> {
        self.control_plane.pause_etcd(pause)
    }

    /// Kills Velero's server, for instance to play Velero by hand.
    pub fn velero_stop(&self) -> Result<()> {
        self.velero()?.stop();
        Ok(())
    }

    /// Whether Velero's server runs: it was started, and has not exited since.
    pub fn velero_runs(&self) -> Result<bool> {
        Ok(self.velero()?.runs())
    }

    /// Starts a Velero in another namespace, with its own backups below a prefix of that name in the same bucket.
    pub async fn another_velero(&self, namespace: &str, flags: &[&str]) -> Result<()> {
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let (access, place) = (&self.control_plane.access, (namespace, namespace));
        let velero =
            Velero::install(&self.binaries, self.folder(), access, self.store()?, place, flags, &[]).await?;
        velero.start(&self.client().await?).await?;
        self.more_veleros.lock().unwrap_or_else(PoisonError::into_inner).push(velero);
        Ok(())
    }

    /// Starts Velero's server again.
    pub async fn velero_start(&self) -> Result<()> {
        self.velero()?.start(&self.client().await?).await
    }

    /// The API of one of Velero's kinds in Velero's namespace, by its singular name: `Backup`, `Restore`.
    pub async fn velero_api(&self, kind: &str) -> Result<Api<DynamicObject>> {
        Ok(velero::api(&self.client().await?, self.velero()?.namespace(), kind))
    }

    /// Plays Velero by hand: merges `status` into that of an object of Velero's.
    pub async fn velero_status(&self, kind: &str, name: &str, status: Value) -> Result<()> {
        let patch = Patch::Merge(json!({ "status": status }));
        // Velero's kinds have no status subresource.
        self.velero_api(kind).await?.patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    fn velero(&self) -> Result<&Velero> {
        self.velero.as_ref().context("this bed was started without Velero")
    }
}
