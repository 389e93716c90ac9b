//! Who may talk to the API server, and how: tokens, kubeconfig files, clients.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};

/// Tells the bed's own requests from everybody else's in the audit log.
pub const USER_AGENT: &str = concat!("bed/", env!("CARGO_PKG_VERSION"));

/// Longer than any test or demo: Velero and nacre get their token once and for all.
const TOKEN_SECONDS: i64 = 7 * 24 * 3600;

/// The way to one API server.
#[derive(Debug)]
pub(crate) struct Access {
    server: String,
    ca: PathBuf,
    folder: PathBuf,
    admin_token: String,
    controller_manager_token: String,
}

impl Access {
    /// Writes the kubeconfig files of the administrator and the controller manager.
    pub(crate) fn new(folder: &Path, server: String, ca: PathBuf) -> Result<Self> {
        let access = Self {
            server,
            ca,
            folder: folder.join("kubeconfig"),
            admin_token: random_token()?,
            controller_manager_token: random_token()?,
        };
        fs::create_dir_all(&access.folder)?;
        access.write("admin", &access.admin_token)?;
        access.write("kube-controller-manager", &access.controller_manager_token)?;
        Ok(access)
    }

    /// The content of the API server's token file: nobody else needs one, users are impersonated.
    pub(crate) fn token_file(&self) -> String {
        let (admin, manager) = (&self.admin_token, &self.controller_manager_token);
        format!("{admin},bed,bed,system:masters\n{manager},system:kube-controller-manager,kcm\n")
    }

    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    pub(crate) fn admin_kubeconfig(&self) -> PathBuf {
        self.path("admin")
    }

    pub(crate) fn controller_manager_kubeconfig(&self) -> PathBuf {
        self.path("kube-controller-manager")
    }

    pub(crate) async fn admin_client(&self) -> Result<Client> {
        Ok(Client::try_from(self.config(&self.admin_kubeconfig(), USER_AGENT).await?)?)
    }

    pub(crate) async fn client_as(&self, user: &str, groups: &[&str]) -> Result<Client> {
        Ok(Client::try_from(self.config_as(user, groups).await?)?)
    }

    /// What a client of somebody else is made from: the administrator impersonates them.
    pub(crate) async fn config_as(&self, user: &str, groups: &[&str]) -> Result<Config> {
        let mut config = self.config(&self.admin_kubeconfig(), USER_AGENT).await?;
        config.auth_info.impersonate = Some(user.to_owned());
        // The API server adds this group for everyone who logs in, but not for the impersonated.
        let everyone = std::iter::once("system:authenticated");
        let groups = groups.iter().copied().chain(everyone).map(str::to_owned).collect();
        config.auth_info.impersonate_groups = Some(groups);
        Ok(config)
    }

    /// Writes the kubeconfig file of somebody who is impersonated, with this namespace as default.
    pub(crate) fn write_as(&self, user: &str, namespace: &str) -> Result<PathBuf> {
        let path = self.write(&format!("{namespace}.{user}"), &self.admin_token)?;
        let mut config: Value = serde_json::from_slice(&fs::read(&path)?)?;
        config["users"][0]["user"]["as"] = json!(user);
        config["users"][0]["user"]["as-groups"] = json!(["system:authenticated"]);
        config["contexts"][0]["context"]["namespace"] = json!(namespace);
        fs::write(&path, format!("{config:#}\n"))?;
        Ok(path)
    }

    /// Writes a kubeconfig file for a ServiceAccount that exists, with a token of its own.
    pub(crate) async fn service_account_kubeconfig(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        let accounts = Api::<ServiceAccount>::namespaced(self.admin_client().await?, namespace);
        let spec =
            TokenRequestSpec { expiration_seconds: Some(TOKEN_SECONDS), ..TokenRequestSpec::default() };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let made: TokenRequest = accounts
            .create_subresource("token", name, &PostParams::default(), &request)
            .await
            .with_context(|| format!("asking for a token of ServiceAccount {namespace}/{name}"))?;
        let token = made.status.and_then(|status| status.token).context("the API server gave no token")?;
        self.write(&format!("{namespace}.{name}"), &token)
    }

    /// What a client is made from. Clients themselves belong to the async runtime they were made in, so none is kept.
    pub(crate) async fn config(&self, kubeconfig: &Path, user_agent: &str) -> Result<Config> {
        let file = Kubeconfig::read_from(kubeconfig)?;
        let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        config.headers.push(("user-agent".parse()?, user_agent.parse()?));
        Ok(config)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes the kubeconfig file of whoever has this token.
    pub(crate) fn write(&self, name: &str, token: &str) -> Result<PathBuf> {
        let path = self.path(name);
        // JSON is YAML.
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "bed",
            "clusters": [{ "name": "bed", "cluster": { "server": self.server, "certificate-authority": self.ca } }],
            "users": [{ "name": "bed", "user": { "token": token } }],
            "contexts": [{ "name": "bed", "context": { "cluster": "bed", "user": "bed" } }],
        });
        fs::write(&path, format!("{config:#}\n")).with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }
}

/// A token nobody guesses.
pub(crate) fn random_token() -> Result<String> {
    let uuid = fs::read_to_string("/proc/sys/kernel/random/uuid").context("asking the kernel for a token")?;
    Ok(uuid.trim().to_owned())
}
