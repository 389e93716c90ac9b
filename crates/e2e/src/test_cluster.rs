//! A cluster with nacre installed.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bed::{Bed, Builder, Process, eventually};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::DeleteParams;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Tenant;

/// How nacre's requests begin in the audit log.
pub const NACRE: &str = "nacre/";

/// Where Velero is.
pub const VELERO: &str = "velero";

/// How long a start may take on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(2);

/// A cluster with nacre's definitions and roles in it. nacre itself is started as often as a story wants.
pub struct TestCluster {
    /// The cluster.
    pub bed: Bed,
}

/// nacre, running; or, where they are measured side by side, another controller in its place.
pub struct Nacre {
    /// The process.
    pub process: Process,
    health: SocketAddr,
    metrics: SocketAddr,
}

impl TestCluster {
    /// A cluster with Velero and nacre's definitions and roles.
    pub async fn build() -> Result<Self> {
        Self::build_on(Bed::builder().with_velero()).await
    }

    /// The same with Velero standing still: what it would do is done by hand, or never.
    pub async fn build_with_idle_velero() -> Result<Self> {
        Self::build_on(Bed::builder().with_idle_velero()).await
    }

    /// The same on a bed of the story's choosing.
    pub async fn build_on(bed: Builder) -> Result<Self> {
        let bed = bed.start().await?;
        // Velero brings it, where there is Velero; the roles need it anyway.
        bed.namespace(VELERO).await?;
        bed.apply_path(&deploy("crds")).await.context("applying the definitions")?;
        bed.apply_path(&deploy("nacre.yaml")).await.context("applying the roles")?;
        Ok(Self { bed })
    }

    /// Gives nacre and tenants the rights for Velero's own tools in tenants' namespaces, as installing with them does.
    pub async fn allow_velero_view(&self) -> Result<()> {
        self.bed.apply_path(&deploy("velero-view.yaml")).await.context("applying the rights to see copies")
    }

    /// A cluster with a Velero that stands still, nacre's definitions, and what `nacre operator` needs.
    pub async fn build_for_operator() -> Result<Self> {
        let bed = Bed::builder().with_idle_velero().start().await?;
        bed.apply_path(&deploy("crds")).await.context("applying the definitions")?;
        bed.apply_path(&deploy("operator.yaml")).await.context("applying the operator")?;
        Ok(Self { bed })
    }

    /// Starts `nacre operator` with its own account.
    pub async fn start_operator(&self) -> Result<Nacre> {
        let operator =
            self.launch_operator("operator", &self.account_named(VELERO, "nacre-operator").await?, &[])?;
        operator.until_ready().await?;
        Ok(operator)
    }

    /// Starts a `nacre operator` of this name by this way to the API server, and waits for nothing.
    pub fn launch_operator(&self, name: &str, kubeconfig: &Path, env: &[(&str, &str)]) -> Result<Nacre> {
        self.launch_as(name, &["operator"], VELERO, kubeconfig, env)
    }

    /// Starts nacre as OADP's operator does: no arguments, everything in the environment, its own account.
    pub async fn start_nacre(&self) -> Result<Nacre> {
        self.start_nacre_with(&self.account().await?).await
    }

    /// The kubeconfig of nacre's own account.
    pub async fn account(&self) -> Result<PathBuf> {
        self.bed.service_account_kubeconfig(self.velero(), "non-admin-controller").await
    }

    /// Velero's namespace.
    pub fn velero(&self) -> &str {
        self.bed.velero_namespace().unwrap_or(VELERO)
    }

    /// The same by another way to the API server.
    pub async fn start_nacre_with(&self, kubeconfig: &Path) -> Result<Nacre> {
        self.start_nacre_in(kubeconfig, &[]).await
    }

    /// The same with more in the environment.
    pub async fn start_nacre_in(&self, kubeconfig: &Path, environment: &[(&str, &str)]) -> Result<Nacre> {
        // Most stories that start a second one have killed the first, and need not wait for a dead one's lease.
        self.forget_lease().await?;
        let nacre = self.launch("nacre", self.velero(), kubeconfig, environment)?;
        nacre.until_ready().await?;
        Ok(nacre)
    }

    /// Starts a nacre that belongs to this namespace, with more in its environment, and waits for nothing.
    pub fn launch(
        &self,
        name: &str,
        namespace: &str,
        kubeconfig: &Path,
        env: &[(&str, &str)],
    ) -> Result<Nacre> {
        self.launch_as(name, &[], namespace, kubeconfig, env)
    }

    fn launch_as(
        &self,
        name: &str,
        args: &[&str],
        namespace: &str,
        kubeconfig: &Path,
        env: &[(&str, &str)],
    ) -> Result<Nacre> {
        let (health, metrics) = (free_address()?, free_address()?);
        let program = self.bed.program(program()?, name, kubeconfig).args(args.iter().copied());
        let program = program.env("WATCH_NAMESPACE", namespace).env("LOG_LEVEL", "5");
        let program = env.iter().fold(program, |program, (name, value)| program.env(*name, *value));
        let process = program
            .env("HOSTNAME", name)
            .env("HEALTH_PROBE_BIND_ADDRESS", health.to_string())
            .env("METRICS_BIND_ADDRESS", metrics.to_string())
            .start()?;
        Ok(Nacre { process, health, metrics })
    }

    /// Starts another controller in nacre's place as OADP starts it, but for the ports, which others use here too.
    pub(crate) fn launch_peer(&self, program: &Path, kubeconfig: &Path) -> Result<Nacre> {
        let (health, metrics) = (free_address()?, free_address()?);
        let program = self.bed.program(program, "peer", kubeconfig).env("WATCH_NAMESPACE", VELERO);
        let process = program
            .arg(format!("--health-probe-bind-address={health}"))
            .arg(format!("--metrics-bind-address={metrics}"))
            // What the bed's own programs get to spare the machine would make it look better and worse than it is.
            .without_env("GOGC")
            .start()?;
        Ok(Nacre { process, health, metrics })
    }

    /// Removes the lease, and the Secret that may have taken its place, as an administrator would who knows that its holder is gone for good.
    pub async fn forget_lease(&self) -> Result<()> {
        let client = self.bed.client().await?;
        let leases = Api::<Lease>::namespaced(client.clone(), "kube-system");
        let secrets = Api::<Secret>::namespaced(client, self.velero());
        let params = DeleteParams::default();
        let gone = [
            leases.delete("nacre", &params).await.map(drop),
            secrets.delete("nacre-lease", &params).await.map(drop),
        ];
        for gone in gone {
            match gone {
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// A namespace and somebody who has nothing but the `admin` role in it.
    pub async fn tenant(&self, namespace: &str, user: &str) -> Result<Tenant<'_>> {
        self.bed.namespace(namespace).await?;
        self.bed.bind(namespace, user, "admin").await?;
        self.bed.wait_allowed(user, namespace, "create", "oadp.openshift.io", "nonadminbackups").await?;
        Tenant::new(&self.bed, namespace, user).await
    }

    /// Somebody in a namespace that exists, with whatever permissions they were given.
    pub async fn user(&self, namespace: &str, user: &str) -> Result<Tenant<'_>> {
        Tenant::new(&self.bed, namespace, user).await
    }
}

impl Nacre {
    /// Waits until it says that it is ready.
    pub async fn until_ready(&self) -> Result<()> {
        self.process.must_live(eventually("nacre to be ready", TIMEOUT, async || self.ready().await)).await
    }

    /// Whether it says that it is ready.
    pub async fn ready(&self) -> Result<()> {
        let answer = get(self.health, "/readyz").await?;
        if answer.starts_with("HTTP/1.1 200") { Ok(()) } else { bail!("{answer}") }
    }

    /// The readiness details.
    pub async fn details(&self) -> Result<String> {
        get(self.health, "/readyz").await
    }

    /// Everything it counts, as Prometheus would read it.
    pub async fn metrics(&self) -> Result<String> {
        get(self.metrics, "/metrics").await
    }

    /// A number it counts.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        let answer = get(self.metrics, "/metrics").await?;
        let line = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Ok(line.with_context(|| format!("no {name} in {answer}"))?.trim().parse()?)
    }
}

async fn get(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: nacre\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// A file of the repository's `deploy` folder.
pub fn deploy(name: &str) -> PathBuf {
    root().join("deploy").join(name)
}

/// Where the repository is.
pub fn root() -> &'static Path {
    // crates/e2e is two below the root, always.
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().and_then(Path::parent).unwrap_or(here)
}

/// The controller that ships: `NACRE_BIN`, else the release build of this workspace.
pub(crate) fn program() -> Result<PathBuf> {
    built("NACRE_BIN", "nacre")
}

/// The command line that ships: `KUBECTL_NACRE_BIN`, else the release build of this workspace.
pub fn command_line() -> Result<PathBuf> {
    built("KUBECTL_NACRE_BIN", "kubectl-nacre")
}

fn built(variable: &str, name: &str) -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let path = std::env::var_os(variable).map_or_else(|| target.join("release").join(name), PathBuf::from);
    if !path.is_file() {
        bail!("{} is not there: `make build` builds it", path.display());
    }
    Ok(path)
}

pub(crate) fn free_address() -> Result<SocketAddr> {
    let [port] = bed::free_ports()?;
    Ok((Ipv4Addr::LOCALHOST, port).into())
}
