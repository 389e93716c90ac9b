//! The leader's pod is killed.

use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::Result;
use e2e::{NodeCluster, VELERO};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::DeleteParams;

use crate::alone;

/// The standby takes over as soon as the leader is known to be gone. This is also enough for a lease that has to expire.
const SECONDS: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_request_right_after_the_leaders_pod_was_killed_is_created_within_seconds() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    leader_is_killed(&cluster, 2, SECONDS).await
}

/// In whatever way nacre was installed, with so many pods.
pub(crate) async fn leader_is_killed(cluster: &NodeCluster, number: usize, within: Duration) -> Result<()> {
    let tenant = cluster.tenant("failover", "eve").await?;
    cluster.nacre_pods_ready(number).await?;
    // What replaces the killed pod must pass the strictest level of Pod Security.
    cluster.label_namespace(VELERO, "pod-security.kubernetes.io/enforce", Some("restricted")).await?;

    let leader = cluster.leader().await?;
    let pods = Api::<Pod>::namespaced(cluster.site.client().await?, VELERO);
    pods.delete(&leader, &DeleteParams::default().grace_period(0)).await?;
    let killed = Instant::now();
    tenant.request_backup("right-after").await?;
    tenant.backup_created("right-after", within).await?;
    let seconds = killed.elapsed().as_secs_f64();
    writeln!(std::io::stderr(), "a request was Created {seconds:.1} s after the leader's pod was killed")?;

    assert_eq!(tenant.velero_backups().await?, ["right-after"]);

    let ready = cluster.nacre_pods_ready(number).await?;
    assert!(!ready.contains(&leader), "{leader} is still there: {ready:?}");
    assert!(ready.contains(&cluster.leader().await?));
    cluster.label_namespace(VELERO, "pod-security.kubernetes.io/enforce", None).await
}
