//! What namespaces have used, in a ConfigMap in Velero's namespace.
//!
//! The tags of Velero objects are enough for as long as these exist. Whoever deletes their backups would delete with them
//! what they have used. So nacre keeps what is still to be paid for: the virtual times, and the finish tags beyond them.
//! It is written once a minute, and only if it changed.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::tag::HIGHEST;
use super::{CLASSES, Turns, Uid};

/// nacre's own ConfigMap in the administrators' namespace.
pub const LEDGER: &str = "nacre-queue";

/// More namespaces than this are not written down: those that used least are left out.
const MOST: usize = 2000;
/// No uid of a namespace is longer.
const LONGEST_UID: usize = 64;

/// The order of one kind, by priority.
type Ledger = BTreeMap<u64, Account>;

/// The order of one priority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Account {
    /// The virtual time.
    time: u64,
    /// The finish tags of namespaces, by uid.
    finish: BTreeMap<String, u64>,
    /// The share of Velero's time that goes to namespaces that had nothing waiting when they asked, in percent.
    #[serde(skip_serializing_if = "is_zero")]
    passing: u8,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(number: &u8) -> bool {
    *number == 0
}

impl Turns {
    /// What is to be remembered, as a text; none if nothing was handed over yet.
    pub fn ledger(&self) -> Option<String> {
        // Those for whom somebody waits first: priorities that nobody has any more are left out.
        let mut classes: Vec<_> = self.classes.iter().collect();
        classes.sort_by_key(|(_, class)| Reverse((class.waiting() > 0, class.time())));
        classes.truncate(CLASSES);
        let mut ledger = Ledger::new();
        let mut owed = Vec::new();
        for (Reverse(priority), class) in classes {
            let (time, ahead) = class.memory();
            let ahead = ahead.filter(|(uid, _)| uid.len() <= LONGEST_UID);
            owed.extend(ahead.map(|(uid, finish)| (Reverse(finish - time), uid.to_string(), *priority)));
            let passing = (0..=100).rev().find(|percent| f64::from(*percent) <= class.passing() * 100.0);
            let account = Account { time, finish: BTreeMap::new(), passing: passing.unwrap_or_default() };
            ledger.insert(*priority, account);
        }
        owed.sort_unstable();
        for (Reverse(owed), uid, priority) in owed.into_iter().take(MOST) {
            let account = ledger.entry(priority).or_default();
            account.finish.insert(uid, account.time + owed);
        }
        ledger.retain(|_, account| *account != Account::default());
        (!ledger.is_empty()).then(|| serde_json::to_string(&ledger).unwrap_or_default())
    }

    /// Takes what was remembered. It only adds to what is known.
    pub fn remember(&mut self, text: &str) {
        let ledger: Ledger = serde_json::from_str(text).unwrap_or_default();
        for (priority, Account { time, finish, passing }) in ledger.into_iter().take(CLASSES) {
            let class = self.class(priority);
            for (uid, finish) in finish.into_iter().filter(|(_, finish)| *finish <= HIGHEST) {
                class.end(&Uid::from(uid), "", Some(finish));
            }
            class.lift(if time <= HIGHEST { time } else { 0 });
            if passing > 0 {
                class.remember_passing(f64::from(passing) / 100.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Turns, Uid};
    use crate::turns::{Job, Progress, Tag};

    fn job(uid: &str, start: u64) -> Job {
        let tag = Tag { priority: 3, start, time: start, weight: 100, charged: 0 };
        Job {
            uid: Some(Uid::from(uid)),
            request: None,
            tag: Some(tag),
            is_trusted: true,
            progress: Progress::Ended(Some((0, 60_000))),
            worked: None,
            since: None,
        }
    }

    #[test]
    fn only_what_is_still_to_be_paid_for_is_remembered() {
        let mut turns = Turns::default();
        assert_eq!(turns.ledger(), None);
        turns.note_job("a", Some(job("shop", 1000)));
        turns.note_job("b", Some(job("office", 100_000)));
        let text = turns.ledger().unwrap();
        assert_eq!(text, r#"{"3":{"time":100000,"finish":{"office":160000}}}"#);
        let mut again = Turns::default();
        again.remember(&text);
        assert_eq!(again.ledger(), Some(text));
        again.remember("not even JSON");
        again.remember(r#"{"3":{"time":18446744073709551615,"finish":{"shop":18446744073709551615}}}"#);
        assert_eq!(again.ledger(), turns.ledger(), "nothing that could not be counted on");
    }

    #[test]
    fn it_does_not_grow_without_bound() {
        let mut turns = Turns::default();
        for number in 0..3000 {
            turns.note_job(
                &format!("j{number}"),
                Some(Job { is_trusted: false, ..job(&format!("u{number}"), number) }),
            );
        }
        let text = turns.ledger().unwrap();
        assert_eq!(text.matches("\"u").count(), super::MOST);
        assert!(text.contains("\"u2999\"") && !text.contains("\"u0\""), "those that used most stay");
    }

    /// A tenant plants backups in a bucket, each with a tag of another priority.
    #[test]
    fn forged_priorities_do_not_fill_it() {
        let mut turns = Turns::default();
        for number in 0..10_000 {
            let mut forged = Job { is_trusted: false, ..job("evil", number) };
            forged.tag.as_mut().unwrap().priority = number;
            turns.note_job(&format!("j{number}"), Some(forged));
        }
        let mut right = job("shop", 50_000);
        right.tag.as_mut().unwrap().priority = 77_777;
        turns.note_job("right", Some(right));
        let text = turns.ledger().unwrap();
        assert!(text.len() < 3000, "{} characters", text.len());
        assert!(text.contains("77777"), "{text}");
    }
}
