//! Requests that arrive all the time, and what must become of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use e2e::NodeTenant;

const PATIENCE: Duration = Duration::from_mins(4);
/// Between two requests.
const PAUSE: Duration = Duration::from_millis(700);

/// Makes one request after the other while something is done, and returns the names of the requests, sorted. Uninstalling
/// takes the permission away, and ends them.
pub(crate) async fn meanwhile<T>(
    tenant: &NodeTenant<'_>,
    work: impl Future<Output = Result<T>>,
) -> Result<(Vec<String>, T)> {
    let is_over = AtomicBool::new(false);
    let work = async {
        let done = work.await;
        is_over.store(true, Ordering::Relaxed);
        done
    };
    let (requested, done) = tokio::join!(requests_until(tenant, &is_over), work);
    Ok((requested?, done?))
}

async fn requests_until(tenant: &NodeTenant<'_>, is_over: &AtomicBool) -> Result<Vec<String>> {
    let mut ticks = tokio::time::interval(PAUSE);
    let mut names = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        ticks.tick().await;
        let name = format!("request-{:04}", names.len());
        match tenant.request_backup(&name).await {
            Ok(()) => names.push(name),
            Err(error) if is_forbidden(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(names)
}

/// Velero has one Backup for each request and no other.
pub(crate) async fn each_is_created_once(tenant: &NodeTenant<'_>, requested: &[String]) -> Result<()> {
    for name in requested {
        tenant.backup_created(name, PATIENCE).await?;
    }
    assert_eq!(tenant.velero_backups().await?, requested);
    Ok(())
}

fn is_forbidden(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 403)
}
