//! etcd, kube-apiserver and kube-controller-manager.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::GetParams;
use kube::core::Request;
use kube::{Api, Client};

use crate::access::Access;
use crate::audit;
use crate::binaries::Binaries;
use crate::pki::Pki;
use crate::ports::free_ports;
use crate::process::{Process, Program, send_signal};
use crate::wait::{eventually, wait_until};

/// Start-up takes about 7 s on an idle machine; a machine that compiles at the same time needs patience.
const TIMEOUT: Duration = Duration::from_mins(5);

/// `clusterrole-aggregation-controller` fills admin, edit and view; without it every denial is vacuous. Helm waits for the
/// Job of a hook.
const CONTROLLERS: &str = "clusterrole-aggregation-controller,namespace-controller,garbage-collector-controller,\
                           serviceaccount-controller,serviceaccount-token-controller,\
                           root-ca-certificate-publisher-controller,job-controller,\
                           validatingadmissionpolicy-status-controller";

/// The running control plane. The API server is dropped before etcd, so that it never misses it.
#[derive(Debug)]
pub(crate) struct ControlPlane {
    _controller_manager: Process,
    api_server: Mutex<Process>,
    api_server_program: Program,
    etcd: Process,
    pub(crate) access: Access,
    pub(crate) audit_log: PathBuf,
}

/// What of the API server can be chosen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(crate) audit_reads: bool,
    pub(crate) api_server_flags: Vec<String>,
}

impl ControlPlane {
    /// Starts everything and waits until the API server is ready and the `admin` role is complete.
    pub(crate) async fn start(binaries: &Binaries, folder: &Path, settings: &Settings) -> Result<Self> {
        let [client_port, peer_port, api_port] = free_ports()?;
        let pki = Pki::make(&folder.join("pki"))?;
        let etcd = etcd(binaries, folder, client_port, peer_port).start()?;

        let access = Access::new(folder, format!("https://127.0.0.1:{api_port}"), pki.ca.clone())?;
        let tokens = folder.join("tokens.csv");
        fs::write(&tokens, access.token_file())?;
        let audit_log = folder.join("audit.log");
        let program = Program::new(binaries.path("kube-apiserver"), folder.join("kube-apiserver.log"))
            .args(api_server_flags(&pki, client_port, api_port))
            .arg(format!("--token-auth-file={}", tokens.display()))
            .args(audit_flags(folder, &audit_log, settings.audit_reads)?)
            .args(&settings.api_server_flags);
        let api_server = program.start()?;

        let client = access.admin_client().await?;
        etcd.must_live(api_server.must_do(answers(&client, "livez"))).await?;
        let controller_manager = controller_manager(binaries, folder, &pki, &access).start()?;
        let ready = async {
            let ready = api_server.must_do(answers(&client, "readyz"));
            let aggregated = controller_manager.must_do(aggregated(&client));
            tokio::try_join!(ready, aggregated)
        };
        etcd.must_live(ready).await?;
        Ok(Self {
            _controller_manager: controller_manager,
            api_server: Mutex::new(api_server),
            api_server_program: program,
            etcd,
            access,
            audit_log,
        })
    }
}

impl ControlPlane {
    /// Kills the API server, starts it again, and waits until it is ready.
    pub(crate) async fn restart_api_server(&self) -> Result<()> {
        let pid = self.lock().pid();
        send_signal(pid, "KILL")?;
        let exited = self.lock().is_over();
        exited.await;
        let fresh = self.api_server_program.start()?;
        let client = self.access.admin_client().await?;
        fresh.must_do(answers(&client, "readyz")).await?;
        *self.lock() = fresh;
        Ok(())
    }

    /// Stops etcd where it is, or lets it go on.
    pub(crate) fn pause_etcd(&self, pause: bool) -> Result<()> {
        self.etcd.signal(if pause { "STOP" } else { "CONT" })
    }

    fn lock(&self) -> MutexGuard<'_, Process> {
        self.api_server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an error of a start says that somebody else took the port meanwhile.
pub(crate) fn is_busy_port(error: &anyhow::Error) -> bool {
    // Programs in Go and in Rust write it differently.
    format!("{error:?}").to_lowercase().contains("address already in use")
}

pub(crate) fn etcd(binaries: &Binaries, folder: &Path, client_port: u16, peer_port: u16) -> Program {
    let client = format!("http://127.0.0.1:{client_port}");
    let peer = format!("http://127.0.0.1:{peer_port}");
    Program::new(binaries.path("etcd"), folder.join("etcd.log"))
        .args(["--name=bed", "--unsafe-no-fsync", "--log-level=warn"])
        // Tens of thousands of objects, each with all its states of the last minutes, are more than the default of 2 GiB.
        .arg(format!("--quota-backend-bytes={}", 8_u64 << 30))
        .arg(format!("--data-dir={}", folder.join("etcd").display()))
        .arg(format!("--listen-client-urls={client}"))
        .arg(format!("--advertise-client-urls={client}"))
        .arg(format!("--listen-peer-urls={peer}"))
        .arg(format!("--initial-advertise-peer-urls={peer}"))
        .arg(format!("--initial-cluster=bed={peer}"))
}

fn api_server_flags(pki: &Pki, etcd_port: u16, port: u16) -> Vec<String> {
    vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".into(),
        "--advertise-address=127.0.0.1".into(),
        "--endpoint-reconciler-type=none".into(),
        format!("--tls-cert-file={}", pki.server_cert.display()),
        format!("--tls-private-key-file={}", pki.server_key.display()),
        "--authorization-mode=RBAC".into(),
        "--service-cluster-ip-range=10.0.0.0/24".into(),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        format!("--service-account-key-file={}", pki.token_public_key.display()),
        format!("--service-account-signing-key-file={}", pki.token_key.display()),
    ]
}

/// What makes the API server write this audit log. Its policy is kept in the folder.
pub(crate) fn audit_flags(folder: &Path, log: &Path, reads: bool) -> Result<[String; 3]> {
    let policy = folder.join("audit-policy.yaml");
    fs::write(&policy, audit::policy(reads))?;
    Ok([
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", log.display()),
        // A size that is never reached: a rotated log would silently restart the count.
        "--audit-log-maxsize=1000000".into(),
    ])
}

fn controller_manager(binaries: &Binaries, folder: &Path, pki: &Pki, access: &Access) -> Program {
    Program::new(binaries.path("kube-controller-manager"), folder.join("kube-controller-manager.log"))
        .args(["--use-service-account-credentials", "--leader-elect=false", "--secure-port=0"])
        .args(["--kube-api-qps=200", "--kube-api-burst=400"])
        .arg(format!("--controllers={CONTROLLERS}"))
        .arg(format!("--kubeconfig={}", access.controller_manager_kubeconfig().display()))
        .arg(format!("--root-ca-file={}", pki.ca.display()))
        .arg(format!("--service-account-private-key-file={}", pki.token_key.display()))
}

/// Waits until a probe of the API server succeeds: `livez`, `readyz`.
pub(crate) async fn answers(client: &Client, probe: &str) -> Result<()> {
    eventually(&format!("/{probe} of the API server"), TIMEOUT, async || {
        let request = Request::new("").get(probe, &GetParams::default())?;
        client.request_text(request).await.map_err(anyhow::Error::from)
    })
    .await?;
    Ok(())
}

/// Waits until `admin` holds its own rules, those of `edit` and those of `view`.
async fn aggregated(client: &Client) -> Result<()> {
    let roles = Api::<ClusterRole>::all(client.clone());
    let complete = |role: &ClusterRole| {
        allows(role, "create", "rolebindings")
            && allows(role, "create", "configmaps")
            && allows(role, "get", "configmaps")
    };
    wait_until("ClusterRole admin to be aggregated", TIMEOUT, roles, "admin", |role| {
        role.is_some_and(complete).then_some(())
    })
    .await
}

fn allows(role: &ClusterRole, verb: &str, resource: &str) -> bool {
    role.rules.iter().flatten().any(|rule| {
        let has = |list: &[String], wanted: &str| list.iter().any(|item| item == wanted);
        has(&rule.verbs, verb) && has(rule.resources.as_deref().unwrap_or_default(), resource)
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Starts a program on a port that is taken and tells whether its complaint is understood.
    async fn is_understood(program: impl FnOnce(&Binaries, &Path, u16) -> Program) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let process = program(&Binaries::find().unwrap(), folder.path(), port).start().unwrap();
        process.exited().await;
        is_busy_port(&process.failure("ended"))
    }

    #[tokio::test]
    async fn a_port_taken_meanwhile_is_understood() {
        assert!(is_understood(|binaries, folder, port| etcd(binaries, folder, port, 0)).await);
        assert!(
            is_understood(|binaries, folder, port| {
                let pki = Pki::make(folder).unwrap();
                Program::new(binaries.path("kube-apiserver"), folder.join("log"))
                    .args(api_server_flags(&pki, 1, port))
            })
            .await
        );
        assert!(
            is_understood(|binaries, folder, port| {
                fs::create_dir(folder.join("buckets")).unwrap();
                crate::store::program(binaries, folder, port)
            })
            .await
        );
    }
}
