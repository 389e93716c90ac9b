//! A watcher of every queue position that is ever shown.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use bed::Bed;
use e2e::load::LoadKind;
use futures::{StreamExt, pin_mut};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, ResourceExt};
use tokio::task::JoinHandle;

/// Watches until it is asked.
pub(crate) struct Witness {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    /// The last position of each request.
    shown: HashMap<String, i64>,
    /// How often one went down.
    falls: usize,
    rises: Vec<String>,
}

impl Witness {
    /// Watches all requests of a kind from now on.
    pub(crate) async fn of<K: LoadKind + Send + 'static>(bed: &Bed) -> Result<Self> {
        let seen = Arc::<Mutex<Seen>>::default();
        let (shared, requests) = (seen.clone(), Api::<K>::all(bed.client().await?));
        let task = tokio::spawn(async move {
            let states = watcher(requests, watcher::Config::default()).default_backoff().applied_objects();
            pin_mut!(states);
            while let Some(state) = states.next().await {
                if let Ok(request) = state {
                    shared.lock().unwrap_or_else(PoisonError::into_inner).note(&request);
                }
            }
        });
        Ok(Self { seen, task })
    }

    /// Says whether anybody was sent back. At least so many must have been seen to move up, or it saw nothing.
    pub(crate) fn testify(self, many: usize) -> Result<()> {
        self.task.abort();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        println!("of {} requests none was sent back; {} times one moved up", seen.shown.len(), seen.falls);
        ensure!(seen.rises.is_empty(), "sent back: {:#?}", seen.rises);
        ensure!(seen.falls >= many, "only {} moved up", seen.falls);
        Ok(())
    }
}

impl Seen {
    fn note(&mut self, request: &impl LoadKind) {
        let Some(now) = request.position() else { return };
        let name = format!("{}/{}", request.namespace().unwrap_or_default(), request.name_any());
        match self.shown.insert(name.clone(), now) {
            Some(before) if now > before => self.rises.push(format!("{name} from {before} to {now}")),
            Some(before) if now < before => self.falls += 1,
            _ => {}
        }
    }
}
