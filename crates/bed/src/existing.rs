//! A cluster that somebody else made and runs, reached by a kubeconfig file. Nothing of it is started or stopped here.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use kube::api::DynamicObject;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::process::Command;

use crate::apply::apply;
use crate::binaries::Binaries;
use crate::folder::Folder;
use crate::run::{Output, output};

/// A cluster that exists, and somebody who may do everything in it.
#[derive(Debug)]
pub struct ExistingCluster {
    kubeconfig: PathBuf,
    binaries: Option<Binaries>,
    folder: Folder,
}

impl ExistingCluster {
    /// The cluster of the current context of this file. Its user must be allowed to impersonate others.
    pub fn new(kubeconfig: &Path) -> Result<Self> {
        ensure!(kubeconfig.is_file(), "there is no kubeconfig file {}", kubeconfig.display());
        let kubeconfig = kubeconfig.canonicalize()?;
        Ok(Self { kubeconfig, binaries: Binaries::find().ok(), folder: Folder::temporary()? })
    }

    /// A folder for files of the caller.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The file it was made from.
    pub fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig.clone()
    }

    /// A client of the administrator.
    pub async fn client(&self) -> Result<Client> {
        self.client_by(&self.kubeconfig).await
    }

    /// The same with the permissions of somebody else, who is impersonated.
    pub async fn client_as(&self, user: &str, groups: &[&str]) -> Result<Client> {
        self.client_by(&self.write_as(user, groups, "default")?).await
    }

    /// Writes a kubeconfig file for somebody with this namespace as default.
    pub fn kubeconfig_as(&self, user: &str, namespace: &str) -> Result<PathBuf> {
        self.write_as(user, &[], namespace)
    }

    async fn client_by(&self, kubeconfig: &Path) -> Result<Client> {
        let file = Kubeconfig::read_from(kubeconfig)?;
        let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        config.headers.push(("user-agent".parse()?, crate::USER_AGENT.parse()?));
        Ok(Client::try_from(config)?)
    }

    fn write_as(&self, user: &str, groups: &[&str], namespace: &str) -> Result<PathBuf> {
        // Paths in it become absolute.
        let mut file = Kubeconfig::read_from(&self.kubeconfig)?;
        let name = file.current_context.clone().context("the kubeconfig file has no current context")?;
        let context = file.contexts.iter_mut().find(|context| context.name == name);
        let context = context.and_then(|context| context.context.as_mut());
        let context = context.with_context(|| format!("the kubeconfig file has no context {name:?}"))?;
        context.namespace = Some(namespace.to_owned());
        let account = context.user.clone().with_context(|| format!("context {name:?} has no user"))?;
        let account = file.auth_infos.iter_mut().find(|one| one.name == account);
        let account = account.and_then(|account| account.auth_info.as_mut()).context("no such user")?;
        account.impersonate = Some(user.to_owned());
        // The API server adds this group for everyone who logs in, but not for the impersonated.
        let groups = groups.iter().copied().chain(["system:authenticated"]).map(str::to_owned).collect();
        account.impersonate_groups = Some(groups);
        let path = self.folder().join(format!("{namespace}.{user}"));
        // JSON is YAML.
        std::fs::write(&path, serde_json::to_string_pretty(&file)?)?;
        Ok(path)
    }

    /// Runs a program as whoever this kubeconfig is for. `kubectl` is the one of `make tools`, or the one in `PATH`.
    pub async fn run_as(
        &self,
        kubeconfig: &Path,
        program: impl AsRef<Path>,
        args: &[&str],
    ) -> Result<Output> {
        let program = program.as_ref();
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let built = self.binaries.as_ref().map(|built| built.path(&name)).filter(|path| path.is_file());
        let mut command = Command::new(built.as_deref().unwrap_or(program));
        command.env("KUBECONFIG", kubeconfig).stdin(Stdio::null()).kill_on_drop(true);
        output(command, &name, args).await
    }

    /// Applies objects by server-side apply, as the administrator.
    pub async fn apply(&self, objects: &[DynamicObject]) -> Result<()> {
        apply(&self.client().await?, objects).await
    }
}
