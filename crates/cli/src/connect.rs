//! Connecting as kubectl would.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::{Args, parser::ValueSource};
use kube::{
    Api, Client, Config, Resource,
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig},
    core::NamespaceResourceScope,
};

use crate::{output::Format, warnings};

/// What every command takes to find the cluster.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// The kubeconfig file to use.
    #[arg(long, global = true)]
    kubeconfig: Option<PathBuf>,

    /// The kubeconfig context to use.
    #[arg(long, global = true)]
    context: Option<String>,

    /// The namespace. Default: the context's.
    #[arg(short, long, global = true)]
    namespace: Option<String>,

    /// Impersonate this user.
    #[arg(long = "as", value_name = "USER", global = true)]
    act_as: Option<String>,

    /// Impersonate this group; may be repeated.
    #[arg(long = "as-group", value_name = "GROUP", global = true)]
    act_as_groups: Vec<String>,

    /// Velero's namespace.
    #[arg(long, value_name = "NAMESPACE", default_value = "velero", env = "VELERO_NAMESPACE", global = true)]
    #[arg(hide_env_values = true)]
    velero_namespace: String,

    /// Whether somebody said where Velero is: by the flag, by the environment, or not at all.
    #[arg(skip)]
    pub(crate) velero_source: Option<ValueSource>,
}

impl Connection {
    /// As far as these flags say, by their names in the code; for a command line that is not finished yet.
    pub(crate) fn of(values: impl Fn(&str) -> Vec<String>) -> Self {
        let last = |flag: &str| values(flag).pop();
        let velero = || std::env::var("VELERO_NAMESPACE").ok().filter(|name| !name.is_empty());
        Self {
            kubeconfig: last("kubeconfig").map(PathBuf::from),
            context: last("context"),
            namespace: last("namespace"),
            act_as: last("act_as"),
            act_as_groups: values("act_as_groups"),
            velero_namespace: last("velero_namespace").or_else(velero).unwrap_or_else(|| "velero".to_owned()),
            velero_source: None,
        }
    }

    /// The kubeconfig it goes by, if there is one.
    pub(crate) fn kubeconfig(&self) -> Option<Kubeconfig> {
        self.kubeconfig.as_ref().map_or_else(Kubeconfig::read, Kubeconfig::read_from).ok()
    }

    /// The namespace on the command line, for commands that do not mean the context's.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Where Velero is said to be.
    pub(crate) fn velero_namespace(&self) -> &str {
        &self.velero_namespace
    }

    /// Where nacre is to be installed or removed, next to Velero, if anybody said so: by -n or by --velero-namespace.
    pub(crate) fn installation(&self) -> Result<Option<&str>> {
        let said = self.velero_source.is_some_and(|source| source != ValueSource::DefaultValue);
        let velero = said.then_some(self.velero_namespace.as_str());
        // The environment speaks for every command, and -n for this one.
        let by_flag = self.velero_source == Some(ValueSource::CommandLine);
        match (self.namespace(), velero) {
            (Some(namespace), Some(velero)) if by_flag && namespace != velero => bail!(
                "-n is {namespace} and --velero-namespace is {velero}: nacre runs in Velero's namespace, so say one of them, \
                 or the same twice"
            ),
            (namespace, velero) => Ok(namespace.or(velero)),
        }
    }
}

/// A connection, and how to answer.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) client: Client,
    /// The namespace on the command line, or the context's.
    pub(crate) namespace: String,
    /// Velero's namespace. Tenants may not read it.
    pub(crate) velero_namespace: String,
    pub(crate) format: Format,
    /// Whether links to storage may be followed from here. Tenants choose where a link leads, so the console in the cluster
    /// follows none.
    pub(crate) follows_links: bool,
}

impl Session {
    pub(crate) async fn open(connection: &Connection, format: Format) -> Result<Self> {
        let options =
            KubeConfigOptions { context: connection.context.clone(), ..KubeConfigOptions::default() };
        let mut config = match &connection.kubeconfig {
            Some(path) => Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &options).await?,
            None => match Config::from_kubeconfig(&options).await {
                Ok(config) => config,
                // Without a kubeconfig this may still be a pod; with a context named it is a mistake.
                Err(error) if options.context.is_some() => return Err(error.into()),
                Err(error) => match Config::incluster() {
                    Ok(config) => config,
                    Err(_) => return Err(error).context("no cluster to talk to"),
                },
            },
        };
        if let Some(user) = &connection.act_as {
            config.auth_info.impersonate = Some(user.clone());
            let groups = (!connection.act_as_groups.is_empty()).then(|| connection.act_as_groups.clone());
            config.auth_info.impersonate_groups = groups;
        }
        let agent = concat!("kubectl-nacre/", env!("CARGO_PKG_VERSION"));
        config.headers.push(("user-agent".parse()?, agent.parse()?));
        let namespace = connection.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let velero_namespace = connection.velero_namespace.clone();
        let client = ClientBuilder::try_from(config)?.with_layer(&warnings::listener()).build();
        Ok(Self { client, namespace, velero_namespace, format, follows_links: true })
    }

    /// The same connection, for another namespace.
    pub(crate) fn within(&self, namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), ..self.clone() }
    }

    /// A kind in Velero's namespace, with the caller's own permissions.
    pub(crate) fn in_velero_namespace<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.velero_namespace)
    }

    /// A kind in the namespace, with the caller's own permissions.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}
