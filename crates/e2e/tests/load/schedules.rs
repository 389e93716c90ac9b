//! Schedules that wait cost nothing, and those that are due at once start one after the other.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use api::NonAdminSchedule;
use bed::eventually;
use e2e::load::{Meter, SHOPS, each, namespace, numbered};
use e2e::{NACRE, Nacre, TestCluster};
use jiff::{SignedDuration, Timestamp};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::measure::{TIMEOUT, crowded};

fn schedule(number: usize, cron: &str) -> Value {
    json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminSchedule",
        "metadata": {"name": numbered(number)}, "spec": {"schedule": cron, "template": {"backupSpec": {}}}})
}

/// Tenants make so many schedules; returns when each has a next run.
async fn make(test_cluster: &TestCluster, many: usize, cron: &str) -> Result<()> {
    let client = test_cluster.bed.client().await?;
    each(many, |number| {
        let schedules = Api::<NonAdminSchedule>::namespaced(client.clone(), &namespace(SHOPS, number));
        async move {
            let made = serde_json::from_value(schedule(number, cron))?;
            schedules.create(&PostParams::default(), &made).await?;
            Ok(())
        }
    })
    .await?;
    let all = Api::<NonAdminSchedule>::all(client);
    eventually("every schedule to have a next run", 5 * TIMEOUT, async || {
        let found = all.list(&ListParams::default()).await?;
        let waits =
            |one: &&NonAdminSchedule| one.status.as_ref().is_some_and(|status| status.next_run.is_some());
        let waiting = found.iter().filter(waits).count();
        ensure!(waiting == many, "{waiting} of {many}");
        Ok(())
    })
    .await
}

/// So many schedules that wait for next year: under 1 % of a core, and no writes.
pub(crate) async fn idle(many: usize, watched: Duration) -> Result<()> {
    let test_cluster = crowded().await?;
    let nacre = test_cluster.start_nacre().await?;
    // A day that is not today, whenever this runs.
    let day = (Timestamp::now() + SignedDuration::from_hours(200 * 24)).strftime("0 3 %-d %-m *").to_string();
    make(&test_cluster, many, &day).await?;
    // Its records are written some seconds after the start, and many schedules may be there sooner than that.
    test_cluster.bed.audit().until_quiet(NACRE, Duration::from_secs(6)).await?;
    let mut meter = Meter::start(&test_cluster, &nacre).await?;
    sleep(watched).await;
    let cost = meter.cost().await?;
    let share = cost.cpu_seconds / watched.as_secs_f64();
    println!(
        "{many} idle schedules for {watched:?}: {:.2} % of a core, {} writes, {} MiB at most",
        100.0 * share,
        cost.total(),
        cost.peak_rss >> 20
    );
    ensure!(cost.total() + cost.events == 0, "{:#?}", cost.writes);
    ensure!(share < 0.01, "{:.2} % of a core", 100.0 * share);
    Ok(())
}

/// So many schedules of one minute, whose starts the policy spreads over so many seconds.
pub(crate) async fn due_at_once(many: usize, spread: u32) -> Result<()> {
    let test_cluster = crowded().await?;
    test_cluster.set_policy(&format!("schedules: {{spread: {spread}s}}\n")).await?;
    let _nacre: Nacre = test_cluster.start_nacre().await?;
    // Long enough ahead that all of them are there by then.
    let due = Timestamp::now() + SignedDuration::from_secs(90);
    let due = Timestamp::from_second(due.as_second() / 60 * 60 + 60)?;
    make(&test_cluster, many, &due.strftime("%-M %-H %-d %-m *").to_string()).await?;
    ensure!(Timestamp::now() < due, "they were not there in time");
    let mark = test_cluster.bed.audit().mark().await?;
    sleep(due.duration_since(Timestamp::now()).unsigned_abs() + Duration::from_secs(u64::from(spread) + 15))
        .await;
    let writes = test_cluster.bed.audit().since(mark).await?.writes().by(NACRE);
    let runs = writes.only(|write| write.resource == "nonadminbackups" && write.verb == "create");
    let mut seconds = BTreeMap::<i64, usize>::new();
    for run in runs.as_slice() {
        *seconds.entry(run.received.duration_since(due).as_secs()).or_default() += 1;
    }
    let most = seconds.values().copied().max().unwrap_or_default();
    println!("{many} schedules due at once: started over {} seconds, at most {most} in one", seconds.len());
    ensure!(runs.len() == many, "{} runs", runs.len());
    let within = |second: &i64| (0..=i64::from(spread) + 5).contains(second);
    ensure!(seconds.keys().all(within), "{seconds:?}");
    let even = many.div_ceil(spread as usize);
    ensure!(most <= 4 * even, "at most {most} in one second, and {even} would be even: {seconds:?}");
    Ok(())
}
