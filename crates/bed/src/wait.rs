//! Waiting for something to become true, and saying what was waited for when it does not.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Result, anyhow};
use futures::{StreamExt as _, pin_mut};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::watch_object;
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How soon to look again at what cannot be watched.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Watches one object until `condition` gives a value for its state (`None`: the object is not there).
///
/// On time-out the error says `what` was waited for and how the object looked last.
pub async fn wait_until<K, T>(
    what: &str,
    within: Duration,
    api: Api<K>,
    name: &str,
    mut condition: impl FnMut(Option<&K>) -> Option<T>,
) -> Result<T>
where
    K: Resource + Clone + Debug + DeserializeOwned + Serialize + Send + 'static,
{
    let mut last = format!("{name} was never seen");
    let watching = async {
        let states = watch_object(api, name).default_backoff();
        pin_mut!(states);
        while let Some(state) = states.next().await {
            match state {
                Ok(object) => match condition(object.as_ref()) {
                    Some(value) => return Some(value),
                    None => last = describe(name, object.as_ref()),
                },
                // The watcher mends its own connection: an error matters only if it was the last thing seen.
                Err(error) => last = format!("watching {name} failed: {error}"),
            }
        }
        None
    };
    let outcome = tokio::time::timeout(within, Box::pin(watching)).await;
    outcome.ok().flatten().ok_or_else(|| anyhow!("waited {within:?} for {what}; last seen: {last}"))
}

/// Asks again and again until there is a value: for what cannot be watched, such as permissions.
///
/// `Err` holds what was seen instead; the last of these is in the error on time-out.
pub async fn eventually<T, E: Debug>(
    what: &str,
    within: Duration,
    mut ask: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T> {
    let mut last = String::from("nothing yet");
    let asking = async {
        loop {
            match ask().await {
                Ok(value) => return value,
                Err(seen) => last = format!("{seen:?}"),
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    let outcome = tokio::time::timeout(within, Box::pin(asking)).await;
    outcome.map_err(|_| anyhow!("waited {within:?} for {what}; last seen: {last}"))
}

fn describe<K: Serialize>(name: &str, object: Option<&K>) -> String {
    let Some(object) = object else {
        return format!("{name} is not there");
    };
    match serde_json::to_value(object) {
        Ok(mut value) => {
            if let Some(metadata) = value.get_mut("metadata").and_then(|metadata| metadata.as_object_mut()) {
                metadata.remove("managedFields");
            }
            format!("{value:#}")
        }
        Err(error) => format!("{name}, which cannot be shown: {error}"),
    }
}
