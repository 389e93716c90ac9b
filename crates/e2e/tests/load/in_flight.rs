//! How many backups a real Velero has to be given at a time, so that it is never idle.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use api::velero::Backup;
use bed::eventually;
use e2e::{Tenant, TestCluster};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;

const TENANTS: usize = 4;
/// Few: where nacre does not end its pauses, a real Velero begins one of them a minute.
const EACH: usize = 3;
const TIMEOUT: Duration = Duration::from_mins(10);

/// A policy, and what it means.
type Setting = (&'static str, &'static str);
const SETTINGS: [Setting; 3] = [
    ("queue: { inFlight: 0 }\n", "0, all at once"),
    ("queue: {}\n", "unset"),
    ("queue: { inFlight: 1 }\n", "1"),
];

/// The time until Velero has ended the same backups with each setting: all at once, as it is by default, one at a time.
pub(crate) async fn with_a_real_velero() -> Result<[Duration; 3]> {
    let test_cluster = TestCluster::build().await?;
    let _nacre = test_cluster.start_nacre().await?;
    let mut tenants = Vec::new();
    for number in 0..TENANTS {
        let tenant = test_cluster.tenant(&format!("team-{number}"), &format!("user-{number}")).await?;
        tenant.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
        tenants.push(tenant);
    }
    let mut took = [Duration::ZERO; 3];
    for (at, (policy, meaning)) in SETTINGS.into_iter().enumerate() {
        test_cluster.set_policy(policy).await?;
        // Velero has nothing to do when the clock starts, and nacre has the policy.
        let first = format!("first-{at}");
        tenants[0].back_up(&first).await?;
        ensure!(tenants[0].backup_ends(&first).await? == "Completed");
        took[at] = until_all_ended(&test_cluster, &tenants, &format!("r{at}")).await?;
        println!("queue.inFlight {meaning}: {} backups in {:.1} s", TENANTS * EACH, took[at].as_secs_f64());
    }
    Ok(took)
}

/// All tenants ask at once.
async fn until_all_ended(test_cluster: &TestCluster, tenants: &[Tenant<'_>], name: &str) -> Result<Duration> {
    let start = Instant::now();
    for number in 0..EACH {
        for tenant in tenants {
            tenant.back_up(&format!("{name}-{number}")).await?;
        }
    }
    let veleros = test_cluster.admin::<Backup>().await?;
    let wanted = format!("{name}-");
    let ended = |velero: &Backup| {
        let asked = velero.annotations().get(api::labels::NAB_NAME);
        let phase = velero.status.as_ref().and_then(|status| status.phase.as_deref());
        asked.is_some_and(|asked| asked.starts_with(&wanted)) && phase == Some("Completed")
    };
    eventually("Velero to end all backups", TIMEOUT, async || {
        let all = veleros.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let many = all.items.iter().filter(|velero| ended(velero)).count();
        if many == TENANTS * EACH { Ok(()) } else { Err(format!("{many} ended")) }
    })
    .await
    .context("the queue goes on")?;
    Ok(start.elapsed())
}
