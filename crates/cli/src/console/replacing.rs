//! Replacements that this console works on: each step is taken as the person who asked for it. Everything that is needed
//! to go on is in the cluster, so a console that ends in between loses nothing.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use futures::{Stream, stream};
use tokio::sync::watch;

use crate::{
    connect::Session,
    output::{Outcome, in_words},
    restore::replace::{
        StoredRecord,
        drive::{Ended, POLL, Taken, step},
    },
};

/// So many that are over are remembered.
const MOST: usize = 100;

/// How far one is.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    /// It goes on, and what it does.
    Working(String),
    /// It cannot go on by itself, and why.
    Interrupted(String),
    /// It is over.
    Over { outcome: Outcome, lines: Vec<String> },
}

impl Stage {
    fn is_working(&self) -> bool {
        matches!(self, Self::Working(_))
    }
}

/// By namespace and backup.
type Key = (String, String);

#[derive(Default)]
pub(super) struct Replacements(Mutex<BTreeMap<Key, watch::Receiver<Stage>>>);

impl Replacements {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Key, watch::Receiver<Stage>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far the replacement from a backup is, if this console works or worked on it.
    pub(super) fn stage(&self, namespace: &str, backup: &str) -> Option<Stage> {
        self.all().get(&(namespace.to_owned(), backup.to_owned())).map(|stage| stage.borrow().clone())
    }

    /// Works on one until it is over. One that goes on already is left alone.
    pub(super) fn work(&self, session: Session, kept: StoredRecord) {
        let key = (session.namespace.clone(), kept.record.backup.clone());
        let mut all = self.all();
        if all.get(&key).is_some_and(|stage| stage.borrow().is_working()) {
            return;
        }
        if all.len() >= MOST {
            all.retain(|_, stage| stage.borrow().is_working());
        }
        let (tell, stage) = watch::channel(Stage::Working("begins".to_owned()));
        all.insert(key, stage);
        tokio::spawn(work(session, kept, tell));
    }

    /// An item for each change.
    pub(super) fn changes(&self, namespace: &str, backup: &str) -> impl Stream<Item = ()> + use<> {
        let stage = self.all().get(&(namespace.to_owned(), backup.to_owned())).cloned();
        stream::unfold(stage, async |stage| {
            let mut stage = stage?;
            stage.changed().await.ok()?;
            Some(((), Some(stage)))
        })
    }
}

async fn work(session: Session, mut kept: StoredRecord, tell: watch::Sender<Stage>) {
    loop {
        let taken = Box::pin(step(&session, &mut kept)).await;
        let stage = match taken {
            Ok(Taken::Did(None)) => continue,
            Ok(Taken::Did(Some(words)) | Taken::Waits(_, words)) => Stage::Working(words),
            Ok(Taken::Ended(Ended { outcome, answer, remarks })) => {
                let plain = |line: String| anstream::adapter::strip_str(&line).to_string();
                Stage::Over { outcome, lines: answer.into_iter().chain(remarks).map(plain).collect() }
            }
            Err(error) => Stage::Interrupted(in_words(&error)),
        };
        let works = stage.is_working();
        tell.send_if_modified(|now| {
            let same =
                matches!((&*now, &stage), (Stage::Working(one), Stage::Working(other)) if one == other);
            *now = stage;
            !same
        });
        if !works {
            return;
        }
        tokio::time::sleep(POLL).await;
    }
}
