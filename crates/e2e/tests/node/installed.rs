//! nacre as `kubectl nacre install` installs it, on a node that really starts its pods.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bed::eventually;
use e2e::{NodeCluster, VELERO};
use k8s_openapi::api::core::v1::Container;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::{Api, ResourceExt as _};
use serde_json::Value;

use crate::cluster_of_bed;

/// The Deployment and its PodDisruptionBudget.
const NAME: &str = "non-admin-controller";
const PATIENCE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn two_pods_are_ready_with_probes_limits_and_a_disruption_budget_and_doctor_finds_nothing() -> Result<()>
{
    let Some(cluster) = cluster_of_bed().await? else { return Ok(()) };
    cluster.nacre_pods_ready(2).await?;
    pods_are_probed_and_limited(&cluster, 2).await?;

    // The one problem is the policy, which nobody has set yet: everybody can bring storage.
    let page = cluster.cli(&["doctor", "--output=json"]).await?.with_code(1)?;
    let diagnosis: Value = serde_json::from_str(&page)?;
    let findings = diagnosis["findings"].as_array().context("no findings")?;
    let bad =
        |finding: &&Value| ["problem", "warning", "not-checked"].iter().any(|bad| finding["verdict"] == *bad);
    let areas: Vec<_> = findings.iter().filter(bad).map(|finding| &finding["area"]).collect();
    assert_eq!(areas, ["policy"], "{diagnosis:#}");
    Ok(())
}

/// In whatever way nacre was installed, with so many pods. Nothing was restarted yet.
pub(crate) async fn pods_are_probed_and_limited(cluster: &NodeCluster, number: usize) -> Result<()> {
    let pods = i32::try_from(number)?;
    let budgets = Api::<PodDisruptionBudget>::namespaced(cluster.site.client().await?, VELERO);
    if number > 1 {
        // It selects the pods: the disruption controller counts them.
        eventually("the disruption controller to count the pods", PATIENCE, async || {
            let budget = budgets.get(NAME).await?.status.context("no status")?;
            let seen = (budget.current_healthy, budget.expected_pods, budget.disruptions_allowed);
            ensure!(seen == (Some(pods), Some(pods), Some(pods - 1)), "{seen:?}");
            Ok(())
        })
        .await?;
    } else {
        // It would keep a node with the only pod from being drained.
        assert!(budgets.get_opt(NAME).await?.is_none());
    }
    for pod in cluster.nacre_pods().await? {
        let name = pod.name_any();
        let spec = pod.spec.context("no spec")?;
        let container: &Container = spec.containers.first().context("no container")?;
        assert!(container.liveness_probe.is_some() && container.readiness_probe.is_some(), "{container:#?}");
        let resources = container.resources.as_ref().context("no resources")?;
        assert!(resources.requests.is_some() && resources.limits.is_some(), "{resources:#?}");
        // The kernel holds it to them.
        let limit = resources.limits.as_ref().and_then(|limits| limits["memory"].0.strip_suffix("Mi"));
        let limit = limit.context("no limit in Mi")?.parse::<u64>()? << 20;
        let process = cluster.process_of(&name).await?;
        assert_eq!(e2e::memory_limit(process)?, limit, "of process {process}");
        let started = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
        assert!(started.iter().all(|status| status.restart_count == 0), "{started:#?}");
    }
    Ok(())
}
