//! Many requests at once, and all of them gone again.

use std::time::Duration;

use anyhow::Result;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use tokio::time::sleep;

use super::{LoadKind, Meter, Reached, SAMPLE, SHOPS, each, namespace, numbered};

/// How soon to count again what is left.
const COUNT_AGAIN: Duration = Duration::from_millis(100);

/// Submits so many requests.
pub(super) async fn submit<K: LoadKind>(meter: &Meter<'_>, many: usize) -> Result<()> {
    let client = meter.test_cluster.bed.client().await?;
    each(many, |number| {
        let requests = Api::<K>::namespaced(client.clone(), &namespace(SHOPS, number));
        async move {
            let request = K::request(&numbered(number), number)?;
            requests.create(&PostParams::default(), &request).await?;
            Ok(())
        }
    })
    .await
}

/// Submits so many requests and waits until the last is `Created`.
pub async fn burst<K: LoadKind>(meter: &mut Meter<'_>, many: usize, timeout: Duration) -> Result<Reached> {
    submit::<K>(meter, many).await?;
    meter.until_shown::<K>(many, timeout, |request| request.created_as().is_some()).await
}

/// Deletes all of them and waits until the last is gone.
pub async fn delete<K: LoadKind>(meter: &mut Meter<'_>, many: usize, timeout: Duration) -> Result<Reached> {
    let client = meter.test_cluster.bed.client().await?;
    each(many, |number| {
        let requests = Api::<K>::namespaced(client.clone(), &namespace(SHOPS, number));
        async move {
            requests.delete(&numbered(number), &DeleteParams::default()).await?;
            Ok(())
        }
    })
    .await?;
    // The API server says how many more there are than the one that is asked for.
    let (requests, one) = (Api::<K>::all(client.clone()), ListParams::default().limit(1));
    let samples = Api::<K>::namespaced(client, &namespace(SHOPS, 0));
    let samples = usize::from(samples.get_opt(SAMPLE).await?.is_some());
    loop {
        let elapsed = meter.elapsed();
        let found = requests.list(&one).await?;
        let more = usize::try_from(found.metadata.remaining_item_count.unwrap_or_default())?;
        let left = (found.items.len() + more).saturating_sub(samples);
        if left == 0 || elapsed > timeout {
            return Ok(Reached { done: many.saturating_sub(left), of: many, took: elapsed });
        }
        sleep(COUNT_AGAIN).await;
    }
}
