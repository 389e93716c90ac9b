//! Facts that are asked for and not watched: what requesters are permitted, and which resources the cluster serves. The
//! engine finds them out; an answer is good for a minute.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::State;
use crate::Key;
use crate::requester::{Answer, Answers, Ask, FRESH, Requester, Review};
use crate::served::Served;

/// More answers than this are looked through for old ones.
const MANY: usize = 20_000;

/// What was asked, and what was answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Reviews {
    answers: HashMap<(Arc<Requester>, String), Arc<Answers>>,
    number: usize,
    served: Option<(Arc<[Served]>, Timestamp)>,
    /// Since when nacre is not permitted to ask.
    forbidden: Option<Timestamp>,
    /// Who waits for what.
    wanted: BTreeMap<Ask, BTreeSet<Key>>,
    /// How many answers each of them waits for.
    waiting: HashMap<Key, usize>,
    /// What nobody has begun to find out yet.
    unsent: BTreeSet<Ask>,
}

impl State {
    /// A decision needs these facts. Returns whether there is something new to find out.
    pub fn want(&mut self, key: &Key, asks: &[Ask]) -> bool {
        let reviews = &mut self.reviews;
        let mut news = false;
        for ask in asks {
            let keys = reviews.wanted.entry(ask.clone()).or_insert_with(|| {
                news |= reviews.unsent.insert(ask.clone());
                BTreeSet::new()
            });
            if keys.insert(key.clone()) {
                *reviews.waiting.entry(key.clone()).or_default() += 1;
            }
        }
        news
    }

    /// Whether there is something to find out.
    pub fn has_asks(&self) -> bool {
        !self.reviews.unsent.is_empty()
    }

    /// Takes what is to be found out now. Whoever takes it answers, or gives it back.
    pub fn take_asks(&mut self) -> Vec<Ask> {
        std::mem::take(&mut self.reviews.unsent).into_iter().collect()
    }

    /// It could not be found out: it is to be tried again.
    pub fn give_back(&mut self, ask: Ask) {
        if self.reviews.wanted.contains_key(&ask) {
            self.reviews.unsent.insert(ask);
        }
    }

    /// Takes the answer to a review. Returns those who wait for nothing more.
    pub fn set_review(&mut self, review: &Review, allowed: bool) -> Vec<Key> {
        if self.reviews.number > MANY {
            self.drop_old_answers();
        }
        let of = (review.requester.clone(), review.namespace.clone());
        let answers = Arc::make_mut(self.reviews.answers.entry(of).or_default());
        let answer = Answer { allowed, at: self.now };
        self.reviews.number += usize::from(answers.insert(review.attributes.clone(), answer).is_none());
        self.reviews.forbidden = None;
        self.answered(&Ask::Review(review.clone()))
    }

    /// Takes which resources the cluster serves. Returns those who wait for nothing more.
    pub fn set_served(&mut self, served: Vec<Served>) -> Vec<Key> {
        self.reviews.served = Some((served.into(), self.now));
        self.answered(&Ask::Served)
    }

    /// nacre is not permitted to ask. Returns everybody who waits for a review: they are judged without.
    pub fn forbid_reviews(&mut self) -> Vec<Key> {
        self.reviews.forbidden = Some(self.now);
        let reviews: Vec<_> =
            self.reviews.wanted.keys().filter(|ask| matches!(ask, Ask::Review(_))).cloned().collect();
        reviews.iter().flat_map(|ask| self.answered(ask)).collect()
    }

    /// Whether nacre was not permitted to ask a moment ago.
    pub(crate) fn reviews_forbidden(&self) -> bool {
        self.reviews.forbidden.is_some_and(|since| self.is_fresh(since))
    }

    /// The resources that the cluster serves, if that was read lately.
    pub(crate) fn served(&self) -> Option<Arc<[Served]>> {
        let (served, read) = self.reviews.served.as_ref()?;
        self.is_fresh(*read).then(|| served.clone())
    }

    /// What was answered about somebody in a namespace.
    pub(crate) fn answers(&self, requester: &Arc<Requester>, namespace: &str) -> Arc<Answers> {
        self.reviews.answers.get(&(requester.clone(), namespace.to_owned())).cloned().unwrap_or_default()
    }

    fn is_fresh(&self, at: Timestamp) -> bool {
        Duration::try_from(self.now.duration_since(at)).unwrap_or_default() < FRESH
    }

    fn answered(&mut self, ask: &Ask) -> Vec<Key> {
        let reviews = &mut self.reviews;
        reviews.unsent.remove(ask);
        let waited = reviews.wanted.remove(ask).unwrap_or_default();
        let done = |key: &Key| {
            let left = reviews.waiting.get(key).copied().unwrap_or(1) - 1;
            if left == 0 {
                reviews.waiting.remove(key);
            } else {
                reviews.waiting.insert(key.clone(), left);
            }
            left == 0
        };
        waited.into_iter().filter(done).collect()
    }

    /// Whoever asks as many people must not fill the memory.
    fn drop_old_answers(&mut self) {
        let now = self.now;
        let fresh =
            |answer: &Answer| Duration::try_from(now.duration_since(answer.at)).unwrap_or_default() < FRESH;
        self.reviews.answers.retain(|_, answers| answers.values().any(fresh));
        self.reviews.number = self.reviews.answers.values().map(|answers| answers.len()).sum();
    }
}
