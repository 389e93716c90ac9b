//! The queue moves: Velero is played, and ends whatever it is given at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use futures::StreamExt;
use kube::Resource;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::requests::submit;
use super::{AT_A_TIME, LoadKind, Meter, Reached, done, ended};
use crate::TestCluster;

/// How soon to look again whether Velero has ended all.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A Velero that ends what it is given as fast as the API server takes it, for as long as this lives.
struct FastVelero {
    work: JoinHandle<()>,
    ended: Arc<AtomicUsize>,
}

impl FastVelero {
    async fn start<K: LoadKind>(test_cluster: &TestCluster) -> Result<Self>
    where
        K::Velero: Send + Sync + 'static,
    {
        let objects: Api<K::Velero> = test_cluster.admin::<K::Velero>().await?;
        let ended = Arc::new(AtomicUsize::new(0));
        let counted = ended.clone();
        let given = watcher(objects.clone(), watcher::Config::default()).default_backoff().applied_objects();
        let work = given.for_each_concurrent(AT_A_TIME, move |object| {
            let (objects, counted) = (objects.clone(), counted.clone());
            async move {
                let Ok(object) = object else { return };
                let is_new =
                    serde_json::to_value(&object).is_ok_and(|object| object["status"]["phase"].is_null());
                let Some(name) = object.meta().name.as_deref().filter(|_| is_new) else { return };
                let status = Patch::Merge(json!({ "status": done() }));
                if objects.patch(name, &PatchParams::default(), &status).await.is_ok() {
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Ok(Self { work: tokio::spawn(work), ended })
    }
}

impl Drop for FastVelero {
    fn drop(&mut self) {
        self.work.abort();
    }
}

/// Submits so many requests, and waits until Velero has been given and has ended all of them in turn, and they show it.
pub async fn turns<K: LoadKind>(meter: &mut Meter<'_>, many: usize, timeout: Duration) -> Result<Reached>
where
    K::Velero: Send + Sync + 'static,
{
    let velero = FastVelero::start::<K>(meter.test_cluster).await?;
    submit::<K>(meter, many).await?;
    // Looking at all requests again and again would cost the machine as much as the work that is measured.
    while velero.ended.load(Ordering::Relaxed) < many && meter.elapsed() < timeout {
        sleep(LOOK_AGAIN).await;
    }
    meter.until_shown::<K>(many, timeout, ended).await
}
