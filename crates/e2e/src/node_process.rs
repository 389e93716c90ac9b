//! nacre's processes on a node, as the kernel of this machine sees them.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;

use crate::{NodeCluster, VELERO};

impl NodeCluster {
    /// The process in a pod of nacre's. It has one container.
    pub async fn process_of(&self, pod: &str) -> Result<u32> {
        let pods = Api::<Pod>::namespaced(self.site.client().await?, VELERO);
        let status = pods.get(pod).await?.status.and_then(|status| status.container_statuses);
        let container = status.into_iter().flatten().find_map(|one| one.container_id);
        let container = container.with_context(|| format!("{pod} has no container"))?;
        let (_, id) = container.split_once("://").with_context(|| format!("no id in {container}"))?;
        let processes = fs::read_dir("/proc")?.flatten().filter_map(|entry| {
            let process = entry.file_name().to_str()?.parse::<u32>().ok()?;
            fs::read_to_string(entry.path().join("cgroup")).ok()?.contains(id).then_some(process)
        });
        processes.min().with_context(|| format!("no process is in container {id}"))
    }
}

/// How much memory the kernel lets a process and the rest of its container have, in bytes.
pub fn memory_limit(process: u32) -> Result<u64> {
    let cgroups = fs::read_to_string(format!("/proc/{process}/cgroup"))?;
    let under = |marker: &str| cgroups.lines().find_map(|line| Some(line.split_once(marker)?.1));
    // Version 1 has a hierarchy for memory, version 2 has one for everything.
    let file = match (under(":memory:"), under("0::")) {
        (Some(path), _) => Path::new("/sys/fs/cgroup/memory")
            .join(path.trim_start_matches('/'))
            .join("memory.limit_in_bytes"),
        (None, Some(path)) => {
            Path::new("/sys/fs/cgroup").join(path.trim_start_matches('/')).join("memory.max")
        }
        (None, None) => anyhow::bail!("process {process} is in no cgroup: {cgroups}"),
    };
    let limit = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    limit.trim().parse().with_context(|| format!("{}: {limit}", file.display()))
}
