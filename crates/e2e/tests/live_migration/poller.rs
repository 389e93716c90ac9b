//! A client that checks a permission ten times a second.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use bed::Bed;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::ask::{Person, WRITES, really, review};

const BEAT: Duration = Duration::from_millis(100);

/// A person under observation; what was refused is kept.
pub(crate) struct Poller {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

/// What a poller has seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) asked: usize,
    pub(crate) refused: Vec<String>,
}

impl Poller {
    /// Begins to ask, by review and by real request, about each write in turn, but those named.
    pub(crate) async fn start(
        bed: &Bed,
        person: Person,
        namespace: &'static str,
        but: &'static [&'static str],
    ) -> Result<Self> {
        let (admin, own) = (bed.client().await?, person.client(bed).await?);
        let seen = Arc::new(Mutex::new(Seen::default()));
        let shared = seen.clone();
        let task = tokio::spawn(async move {
            let mut beat = tokio::time::interval(BEAT);
            beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
            for (verb, resource) in WRITES.into_iter().filter(|(verb, _)| !but.contains(verb)).cycle() {
                beat.tick().await;
                let reviewed = review(&admin, &person, namespace, verb, resource).await;
                let done = really(&own, namespace, verb, resource).await;
                let mut seen = shared.lock().await;
                seen.asked += 1;
                if !matches!((&reviewed, &done), (Ok(true), Ok(true))) {
                    seen.refused.push(format!("{verb} {resource}: reviewed {reviewed:?}, really {done:?}"));
                }
            }
        });
        Ok(Self { seen, task })
    }

    /// What was seen so far.
    pub(crate) async fn so_far(&self) -> Seen {
        self.seen.lock().await.clone()
    }

    /// What was seen in all.
    pub(crate) async fn stop(self) -> Seen {
        self.task.abort();
        self.seen.lock().await.clone()
    }
}
