//! containerd, kubelet and kube-proxy: what runs pods, and their settings.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::json;

use crate::pki::Pki;
use crate::process::Program;

use super::images::PAUSE;
use super::programs::{PATH, Programs};
use super::{ADDRESS, NODE};

/// Seen in the node's own mounts only, as all paths outside its folder.
pub(crate) const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";

/// containerd, with a network of one bridge for all pods.
pub(crate) fn containerd(programs: &Programs, folder: &Path) -> Result<Program> {
    let networks = folder.join("cni");
    fs::create_dir_all(&networks)?;
    let network = json!({
        "cniVersion": "1.0.0",
        "name": "node",
        "plugins": [{
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": true,
            "hairpinMode": true,
            "ipam": {
                "type": "host-local",
                "ranges": [[{ "subnet": "10.244.0.0/24" }]],
                "routes": [{ "dst": "0.0.0.0/0" }],
            },
        }],
    });
    fs::write(networks.join("10-node.conflist"), network.to_string())?;
    let config = folder.join("containerd.toml");
    fs::write(&config, containerd_config(programs.folder(), &networks))?;
    Ok(Program::new(programs.path("containerd"), folder.join("containerd.log"))
        // It looks there for its shim.
        .env("PATH", format!("{}:{PATH}", programs.folder().display()))
        .args(["--config".to_owned(), config.display().to_string()]))
}

fn containerd_config(programs: &Path, networks: &Path) -> String {
    let (programs, networks) = (programs.display(), networks.display());
    format!(
        r#"version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = "{CONTAINERD_SOCKET}"

[plugins.'io.containerd.internal.v1.opt']
path = "/var/lib/containerd/opt"

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{PAUSE}"

[plugins.'io.containerd.cri.v1.runtime']
# Where the machine lacks CAP_SYS_RESOURCE, no sandbox starts without this.
restrict_oom_score_adj = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["{programs}"]
conf_dir = "{networks}"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = "{programs}/runc"
SystemdCgroup = false
"#
    )
}

/// kubelet, which lets nobody in whom the API server does not know.
pub(crate) fn kubelet(programs: &Programs, folder: &Path, pki: &Pki) -> Result<Program> {
    let config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true },
            "x509": { "clientCAFile": pki.ca },
        },
        "authorization": { "mode": "Webhook" },
        "containerRuntimeEndpoint": format!("unix://{CONTAINERD_SOCKET}"),
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": false,
        "enforceNodeAllocatable": [],
        "failCgroupV1": false,
        "failSwapOn": false,
        "oomScoreAdj": 0,
        "resolvConf": "",
        // The disk is the machine's, however full: no pod is evicted and no image is removed for it.
        "evictionHard": {
            "imagefs.available": "0%",
            "imagefs.inodesFree": "0%",
            "memory.available": "0%",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
    });
    let path = folder.join("kubelet.json");
    fs::write(&path, format!("{config:#}\n"))?;
    Ok(Program::new(programs.path("kubelet"), folder.join("kubelet.log"))
        .env("PATH", PATH)
        .arg(format!("--config={}", path.display()))
        .arg(format!("--kubeconfig={}", folder.join("kubeconfig/kubelet").display()))
        .args([format!("--hostname-override={NODE}"), format!("--node-ip={ADDRESS}")]))
}

/// kube-proxy: Services work, webhooks are reached through them.
pub(crate) fn kube_proxy(programs: &Programs, folder: &Path) -> Program {
    Program::new(programs.path("kube-proxy"), folder.join("kube-proxy.log"))
        .env("PATH", PATH)
        // The number of connections is a setting of the whole machine: 0 leaves it alone.
        .args(["--proxy-mode=nftables", "--conntrack-max-per-core=0"])
        .arg(format!("--hostname-override={NODE}"))
        .arg(format!("--kubeconfig={}", folder.join("kubeconfig/kube-proxy").display()))
}
