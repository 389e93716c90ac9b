//! etcd, kube-apiserver, kube-controller-manager and kube-scheduler of a cluster with a node, on the usual ports.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::access::{Access, random_token};
use crate::binaries::Binaries;
use crate::control_plane::{audit_flags, etcd};
use crate::pki::Pki;
use crate::process::Program;

use super::programs::Programs;
use super::{ADDRESS, NODE};

const ETCD_PORTS: (u16, u16) = (2379, 2380);
pub(crate) const API_PORT: u16 = 6443;
const SERVICES: &str = "10.96.0.0/16";
const PODS: &str = "10.244.0.0/16";

/// How the API server is called, by pods too.
const NAMES: [&str; 4] = [ADDRESS, "10.96.0.1", "kubernetes.default", "kubernetes.default.svc"];

/// The control plane's programs, to be started in the node's namespaces.
#[derive(Debug)]
pub(crate) struct ControlPlane {
    pub(crate) access: Access,
    pub(crate) pki: Pki,
    pub(crate) etcd: Program,
    pub(crate) api_server: Program,
    pub(crate) controller_manager: Program,
    pub(crate) scheduler: Program,
}

impl ControlPlane {
    /// Makes keys, certificates, tokens and kubeconfig files. Every request goes into the audit log, if there is one.
    pub(crate) fn prepare(
        binaries: &Binaries,
        programs: &Programs,
        folder: &Path,
        audit_log: Option<&Path>,
    ) -> Result<Self> {
        let pki = Pki::make_for(&folder.join("pki"), &NAMES)?;
        let access = Access::new(folder, format!("https://{ADDRESS}:{API_PORT}"), pki.ca.clone())?;
        let mut tokens = access.token_file();
        for (name, user) in [
            ("kube-scheduler", "system:kube-scheduler,scheduler".to_owned()),
            ("kube-proxy", "system:kube-proxy,proxy".to_owned()),
            ("kubelet", format!("system:node:{NODE},kubelet,system:nodes")),
        ] {
            let token = random_token()?;
            access.write(name, &token)?;
            writeln!(tokens, "{token},{user}")?;
        }
        let token_file = folder.join("tokens.csv");
        fs::write(&token_file, tokens)?;

        let log = |name: &str| folder.join(format!("{name}.log"));
        let kubeconfig =
            |name: &str| format!("--kubeconfig={}", folder.join("kubeconfig").join(name).display());
        let scheduler = Program::new(programs.path("kube-scheduler"), log("kube-scheduler"))
            .args(["--leader-elect=false"])
            .arg(kubeconfig("kube-scheduler"));
        let controller_manager =
            Program::new(binaries.path("kube-controller-manager"), log("kube-controller-manager"))
                .args(["--use-service-account-credentials", "--leader-elect=false"])
                .args(["--kube-api-qps=200", "--kube-api-burst=400"])
                .args(["--allocate-node-cidrs=true".to_owned(), format!("--cluster-cidr={PODS}")])
                .arg(kubeconfig("kube-controller-manager"))
                .arg(format!("--root-ca-file={}", pki.ca.display()))
                .arg(format!("--service-account-private-key-file={}", pki.token_key.display()));
        let api_server = Program::new(binaries.path("kube-apiserver"), log("kube-apiserver"))
            .args(api_server_flags(&pki))
            .arg(format!("--token-auth-file={}", token_file.display()))
            .args(audit_log.map(|log| audit_flags(folder, log, true)).transpose()?.into_iter().flatten());
        let etcd = etcd(binaries, folder, ETCD_PORTS.0, ETCD_PORTS.1);
        Ok(Self { access, pki, etcd, api_server, controller_manager, scheduler })
    }
}

fn api_server_flags(pki: &Pki) -> Vec<String> {
    vec![
        format!("--etcd-servers=http://127.0.0.1:{}", ETCD_PORTS.0),
        format!("--secure-port={API_PORT}"),
        "--bind-address=0.0.0.0".into(),
        format!("--advertise-address={ADDRESS}"),
        format!("--tls-cert-file={}", pki.server_cert.display()),
        format!("--tls-private-key-file={}", pki.server_key.display()),
        format!("--kubelet-client-certificate={}", pki.client_cert.display()),
        format!("--kubelet-client-key={}", pki.client_key.display()),
        // Its name is known to no DNS server.
        "--kubelet-preferred-address-types=InternalIP".into(),
        "--authorization-mode=Node,RBAC".into(),
        "--enable-admission-plugins=NodeRestriction".into(),
        "--allow-privileged=true".into(),
        format!("--service-cluster-ip-range={SERVICES}"),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        format!("--service-account-key-file={}", pki.token_public_key.display()),
        format!("--service-account-signing-key-file={}", pki.token_key.display()),
    ]
}
