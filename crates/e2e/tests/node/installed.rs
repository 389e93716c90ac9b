//! nacre as `kubectl nacre install` installs it, on a node that really starts its pods.

use anyhow::{Context as _, Result};
use e2e::{NodeCluster, VELERO};
use k8s_openapi::api::core::v1::Container;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use serde_json::Value;

use crate::cluster_of_bed;

#[tokio::test]
async fn two_pods_are_ready_with_probes_limits_and_a_disruption_budget_and_doctor_finds_nothing() -> Result<()>
{
    let Some(cluster) = cluster_of_bed().await? else { return Ok(()) };
    cluster.nacre_pods_ready(2).await?;
    pods_are_probed_and_limited(&cluster).await?;
    // The budget selects the pods: the disruption controller counts them.
    let budgets = Api::<PodDisruptionBudget>::namespaced(cluster.site.client().await?, VELERO);
    let budget = budgets.get("non-admin-controller").await?.status.context("no status")?;
    assert_eq!(
        (budget.current_healthy, budget.expected_pods, budget.disruptions_allowed),
        (Some(2), Some(2), Some(1))
    );

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

/// In whatever way nacre was installed. Nothing was restarted yet.
pub(crate) async fn pods_are_probed_and_limited(cluster: &NodeCluster) -> Result<()> {
    for pod in cluster.nacre_pods().await? {
        let spec = pod.spec.context("no spec")?;
        let container: &Container = spec.containers.first().context("no container")?;
        assert!(container.liveness_probe.is_some() && container.readiness_probe.is_some(), "{container:#?}");
        let resources = container.resources.as_ref().context("no resources")?;
        assert!(resources.requests.is_some() && resources.limits.is_some(), "{resources:#?}");
        let started = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
        assert!(started.iter().all(|status| status.restart_count == 0), "{started:#?}");
    }
    Ok(())
}
