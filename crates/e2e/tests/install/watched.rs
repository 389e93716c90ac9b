//! Monitoring: an invalid policy is visible in three places, and what ships (alerts, dashboard, guide) names what
//! `/metrics` really has.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bed::eventually;
use e2e::{Nacre, TestCluster, VELERO, deploy, root};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::ListParams;

const SOON: Duration = Duration::from_mins(2);
/// nacre reads Secrets again, and Velero checks locations, once a minute.
const MINUTES: Duration = Duration::from_mins(3);

pub(crate) async fn a_broken_policy_is_seen_in_three_places(
    test_cluster: &TestCluster,
    nacre: &Nacre,
) -> Result<()> {
    ensure!(nacre.metric("nacre_policy_problems").await? < 0.5);
    let good =
        test_cluster.admin::<k8s_openapi::api::core::v1::ConfigMap>().await?.get("nacre-policy").await?;
    let good = good.data.and_then(|mut data| data.remove("policy.yaml")).context("a policy")?;
    test_cluster.set_policy("backup: { ttl: { maximum: 1h } }").await?;
    let events = Api::<Event>::namespaced(test_cluster.bed.client().await?, VELERO);
    eventually("a broken policy to be seen in three places", SOON, async || {
        ensure!(nacre.details().await?.contains("maximum"), "not in /readyz");
        ensure!(nacre.metric("nacre_policy_problems").await? > 0.5, "not in /metrics");
        let reported = events.list(&ListParams::default()).await?.items.into_iter().any(|event| {
            event.reason.as_deref() == Some("PolicyBroken")
                && event.regarding.is_some_and(|about| about.name.as_deref() == Some("nacre-policy"))
                && event.note.is_some_and(|note| note.contains("maximum"))
        });
        ensure!(reported, "no Event");
        Ok(())
    })
    .await?;
    test_cluster.set_policy(&good).await?;
    eventually("it to be mended", SOON, async || {
        ensure!(nacre.metric("nacre_policy_problems").await? < 0.5);
        Ok(())
    })
    .await
}

/// Everything that begins like one of nacre's metrics.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("nacre_")).map(str::to_owned).collect()
}

pub(crate) async fn what_ships_names_what_there_is(nacre: &Nacre) -> Result<()> {
    // The backup that is left is in storage whose key was just changed twice: it counts once Velero has checked it.
    eventually("the last good backup to count", MINUTES, async || {
        let good = "nacre_last_good_backup_timestamp_seconds{namespace=\"shop\"}";
        ensure!(nacre.metrics().await?.contains(good), "no {good}");
        Ok(())
    })
    .await?;
    let text = nacre.metrics().await?;
    let mut there = BTreeSet::new();
    let mut documented = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').context("a type")?;
        match kind {
            "counter" => there.extend([format!("{name}_total")]),
            "info" => there.extend([format!("{name}_info")]),
            "histogram" => there.extend(["_bucket", "_sum", "_count"].map(|end| format!("{name}{end}"))),
            _ => there.extend([name.to_owned()]),
        }
        documented.insert(match kind {
            "counter" => format!("{name}_total"),
            "info" => format!("{name}_info"),
            _ => name.to_owned(),
        });
    }
    // Those that a namespace with a history must have, with values and not only by name.
    for sample in [
        "nacre_requests{namespace=\"shop\",kind=\"NonAdminBackup\",phase=\"Created\"}",
        "nacre_last_good_backup_timestamp_seconds{namespace=\"shop\"}",
        "nacre_namespace_api_writes_total{namespace=\"shop\"}",
        "nacre_namespace_decision_seconds_total{namespace=\"shop\"}",
        "nacre_decision_seconds_count{kind=\"NonAdminBackup\"}",
    ] {
        ensure!(text.contains(sample), "no {sample} in {text}");
    }
    for file in ["monitoring/alerts.yaml", "monitoring/dashboard.json"] {
        let queries = named(&fs::read_to_string(deploy(file)).with_context(|| format!("reading {file}"))?);
        ensure!(queries.len() > 5, "{file} asks for next to nothing: {queries:?}");
        let unknown: Vec<_> = queries.difference(&there).collect();
        ensure!(unknown.is_empty(), "{file} asks for {unknown:?}, which nobody counts");
    }
    let guide = named(&fs::read_to_string(root().join("docs/admin-guide.md"))?);
    let silent: Vec<_> = documented.difference(&guide).collect();
    ensure!(silent.is_empty(), "docs/admin-guide.md does not say what {silent:?} means");
    Ok(())
}
