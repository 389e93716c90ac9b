//! A start on a cluster where everything is settled.

use std::time::Duration;

use anyhow::Result;
use jiff::Timestamp;

use super::{Contender, Cost, Meter};
use crate::{Nacre, TestCluster};

/// Starts it, and returns how long it took until it was ready and had written what it writes at a start, and what that
/// cost. None if it was still writing when patience ended.
pub async fn restart(
    contender: &Contender,
    test_cluster: &TestCluster,
    timeout: Duration,
) -> Result<(Nacre, Option<Duration>, Cost)> {
    let mark = test_cluster.bed.audit().mark().await?;
    let began = Timestamp::now();
    let running = contender.start(test_cluster).await?;
    let mut meter = Meter::from(test_cluster, &running, mark, began, 0.0)?;
    let ready = meter.elapsed();
    let at_rest = meter.until_quiet(timeout).await?;
    let took = at_rest.then(|| ready.max(meter.until_last_write()));
    let cost = meter.cost().await?;
    Ok((running, took, cost))
}
