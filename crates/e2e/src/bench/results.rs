//! The stored figures: tables and plots can be generated from them again.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::machine::Machine;
use crate::load::{Cost, Reached};

/// Who was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Who {
    /// A client that does the same writes and nothing else: the most that the API server gives.
    BareClient,
    /// nacre.
    Nacre,
    /// Another controller.
    Peer,
    /// The same with the limits of its client lifted.
    PeerFast,
}

impl Who {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 4] = [Self::BareClient, Self::Nacre, Self::Peer, Self::PeerFast];

    fn is_peer(self) -> bool {
        matches!(self, Self::Peer | Self::PeerFast)
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::BareClient => "bare client",
            Self::Nacre => "nacre",
            Self::Peer => "Go controller",
            Self::PeerFast => "Go controller, limits lifted",
        }
    }
}

/// What was asked of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// n backups at once, until all are `Created`.
    Burst,
    /// Ten progress ticks of one of them.
    Ticks,
    /// Velero ends all of them.
    Drain,
    /// A start where all of them are settled.
    Restart,
    /// All of them are deleted.
    Delete,
    /// n backups at once, which Velero is given in turn and ends at once.
    Turns,
    /// n restores at once, until all are `Created`.
    Restores,
    /// Five hundred locations, until Velero has all of them.
    Locations,
    /// A minute in which nothing happens but Velero's looks at them.
    AtRest,
    /// n backups of twenty people into the administrators' storage, where nobody records who asks.
    Unrecorded,
    /// The same where the API server records it.
    Recorded,
    /// The same into storage of their own: permissions are checked.
    RecordedOwn,
}

impl Load {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 12] = [
        Self::Burst,
        Self::Ticks,
        Self::Drain,
        Self::Restart,
        Self::Delete,
        Self::Turns,
        Self::Restores,
        Self::Locations,
        Self::AtRest,
        Self::Unrecorded,
        Self::Recorded,
        Self::RecordedOwn,
    ];

    /// Whether its cost is shown per object.
    pub fn is_per_object(self) -> bool {
        !matches!(self, Self::Ticks | Self::Restart | Self::AtRest)
    }
}

/// One load on one of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Who was measured.
    pub who: Who,
    /// What was asked of it.
    pub load: Load,
    /// How many objects there were.
    pub n: usize,
    /// How much of it was done.
    pub done: usize,
    /// How much there was to do.
    pub of: usize,
    /// How long it took until all was done, or until patience ended.
    pub seconds: f64,
    /// Writes by kind, Events and leases aside.
    pub writes: BTreeMap<String, usize>,
    /// Writes that met a conflict.
    pub conflicts: usize,
    /// Events written.
    pub events: usize,
    /// SubjectAccessReviews asked for.
    #[serde(default)]
    pub reviews: usize,
    /// Seconds of processor time, until it had come to rest.
    pub cpu_seconds: f64,
    /// The largest resident set so far, in bytes.
    pub peak_rss: u64,
}

impl Record {
    pub(super) fn new(who: Who, load: Load, n: usize, reached: Reached, cost: Cost) -> Self {
        Self {
            who,
            load,
            n,
            done: reached.done,
            of: reached.of,
            seconds: reached.took.as_secs_f64(),
            writes: cost.writes,
            conflicts: cost.conflicts,
            events: cost.events,
            reviews: cost.reviews,
            cpu_seconds: cost.cpu_seconds,
            peak_rss: cost.peak_rss,
        }
    }

    /// Whether all was done before patience ended.
    pub fn is_done(&self) -> bool {
        self.done >= self.of
    }

    /// All writes.
    pub fn total(&self) -> usize {
        self.writes.values().sum()
    }

    /// A number for each object, where that makes sense.
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    pub(super) fn each(&self, number: f64) -> f64 {
        if self.load.is_per_object() { number / self.n as f64 } else { number }
    }

    /// Writes for each object, where that makes sense.
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    pub(super) fn writes_each(&self) -> f64 {
        self.each(self.total() as f64)
    }
}

/// How a note begins that says when the other controllers were measured.
const KEPT: &str = "The figures of other controllers were kept from the run of";

/// How a note begins that says when another number of requests was measured.
const KEPT_SIZE: &str = "The figures of n =";

/// What a run measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// How many requests there are.
    pub sizes: Vec<usize>,
    /// Whether locations are measured, whose number is always the same.
    pub locations: bool,
    /// The most requests that are asked of other controllers; none without other controllers.
    pub peers_up_to: Option<usize>,
}

impl Scope {
    fn has(&self, record: &Record) -> bool {
        let is_size = match record.load {
            Load::Locations | Load::AtRest => self.locations,
            _ => self.sizes.contains(&record.n),
        };
        is_size && (!record.who.is_peer() || self.peers_up_to.is_some_and(|most| record.n <= most))
    }
}

/// Everything a run has measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Results {
    /// How it was started.
    pub command: String,
    /// When.
    pub date: String,
    /// Where.
    pub machine: Machine,
    /// Of what.
    pub versions: BTreeMap<String, String>,
    /// What happened on the way.
    pub notes: Vec<String>,
    /// What was measured.
    pub records: Vec<Record>,
}

impl Results {
    /// Nothing yet, on this machine, now.
    pub fn new(command: String) -> Self {
        let date = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string();
        let versions = BTreeMap::from([("nacre".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]);
        Self { command, date, machine: Machine::here(), versions, notes: Vec::new(), records: Vec::new() }
    }

    /// Takes over from an earlier run what this one does not measure, with notes that say of when it is.
    pub fn keep(&mut self, before: Option<Self>, scope: &Scope) {
        let Some(mut before) = before else { return };
        before.records.retain(|record| !scope.has(record));
        self.keep_sizes(&before, scope);
        if scope.peers_up_to.is_none() {
            self.keep_peers(before);
        }
    }

    /// The figures of other sizes, which another run measures.
    fn keep_sizes(&mut self, before: &Self, scope: &Scope) {
        let is_kept = |record: &&Record| !record.who.is_peer() || scope.peers_up_to.is_some();
        let kept: Vec<_> = before.records.iter().filter(is_kept).cloned().collect();
        let is_of_then = |note: &&String| !note.starts_with(KEPT) && !note.starts_with(KEPT_SIZE);
        let notes: Vec<_> = before.notes.iter().filter(is_of_then).map(String::as_str).collect();
        for n in kept.iter().map(|record| record.n).collect::<BTreeSet<_>>() {
            let begin = format!("{KEPT_SIZE} {n} were kept from the run of");
            let earlier = before.notes.iter().find(|note| note.starts_with(&begin)).cloned();
            let Self { command, date, machine, .. } = before;
            let note = format!(
                "{begin} {date}: `{command}`, {} cores of {}. {}",
                machine.cores,
                machine.processor,
                notes.join(" ")
            );
            self.notes.push(earlier.unwrap_or_else(|| note.trim_end().to_owned()));
        }
        self.records.extend(kept);
    }

    /// Takes over the figures of the other controllers from an earlier run, with a note that says of when they are.
    fn keep_peers(&mut self, before: Self) {
        let kept: Vec<_> = before.records.into_iter().filter(|record| record.who.is_peer()).collect();
        if kept.is_empty() {
            return;
        }
        let told = before.notes.iter().find(|note| note.starts_with(KEPT)).cloned();
        let is_of_then = |note: &&String| !note.starts_with(KEPT_SIZE);
        let words = before.notes.iter().filter(is_of_then).map(String::as_str).collect::<Vec<_>>().join(" ");
        self.notes
            .push(told.unwrap_or_else(|| format!("{KEPT} {}. {words}", before.date).trim_end().to_owned()));
        self.records.extend(kept);
    }

    /// One of the records.
    pub fn find(&self, who: Who, load: Load, n: usize) -> Option<&Record> {
        self.records.iter().find(|record| record.who == who && record.load == load && record.n == n)
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::tests::{record, results};
    use super::*;

    #[test]
    fn figures_of_others_are_kept_with_the_date_they_had() {
        let mut first = results(vec![
            record(Who::Nacre, Load::Burst, 1000, 6.0, 3000),
            record(Who::Peer, Load::Burst, 1000, 300.0, 7300),
        ]);
        first.date = "then".to_owned();
        first.notes.push("It was rebuilt.".to_owned());
        let mut second = results(Vec::new());
        second.keep(Some(first.clone()), &scope(&[1000]));
        assert_eq!(second.records, first.records[1..]);
        assert_eq!(second.notes, [format!("{KEPT} then. It was rebuilt.")]);
        let mut third = results(Vec::new());
        third.keep(Some(second.clone()), &scope(&[1000]));
        assert_eq!((third.records, third.notes), (second.records, second.notes), "they are as old as before");
        let mut none = results(Vec::new());
        none.keep(Some(results(vec![record(Who::Nacre, Load::Burst, 1000, 6.0, 3000)])), &scope(&[1000]));
        assert!(none.records.is_empty() && none.notes.is_empty());
    }

    fn scope(sizes: &[usize]) -> Scope {
        Scope { sizes: sizes.to_vec(), locations: true, peers_up_to: None }
    }

    #[test]
    fn figures_of_other_sizes_are_kept_with_the_date_they_had() {
        let mut first = results(vec![
            record(Who::BareClient, Load::Burst, 100, 0.5, 300),
            record(Who::Nacre, Load::Burst, 100, 0.6, 300),
            record(Who::Nacre, Load::Burst, 1000, 6.0, 3000),
            record(Who::Nacre, Load::Locations, 500, 3.0, 500),
            record(Who::Peer, Load::Burst, 1000, 300.0, 7300),
        ]);
        first.date = "then".to_owned();
        first.notes.push("It was slow.".to_owned());
        // 100 000 on request: nothing else is measured, not even locations.
        let mut second = results(Vec::new());
        second.keep(Some(first.clone()), &Scope { locations: false, ..scope(&[100_000]) });
        assert_eq!(second.records, first.records);
        let begin = |n| format!("The figures of n = {n} were kept from the run of then: `make bench`, ");
        for (note, n) in second.notes.iter().zip([100, 500, 1000]) {
            assert!(note.starts_with(&begin(n)) && note.ends_with(". It was slow."), "{note}");
        }
        assert_eq!(second.notes.len(), 4, "{:?}", second.notes);
        // Later again: what is measured again goes, what is not keeps its date.
        second.date = "later".to_owned();
        let mut third = results(Vec::new());
        third.keep(Some(second.clone()), &scope(&[1000]));
        assert_eq!(third.records, [&first.records[..2], &first.records[4..]].concat());
        assert_eq!(third.notes, [second.notes[0].clone(), second.notes[3].clone()]);
    }

    #[test]
    fn figures_of_others_are_kept_for_the_sizes_that_they_are_not_asked_for() {
        let first = results(vec![
            record(Who::Peer, Load::Burst, 1000, 300.0, 7300),
            record(Who::Peer, Load::Burst, 10_000, 3000.0, 73_000),
        ]);
        let mut second = results(Vec::new());
        second.keep(Some(first.clone()), &Scope { peers_up_to: Some(1000), ..scope(&[1000, 10_000]) });
        assert_eq!(second.records, first.records[1..]);
        assert!(second.notes[0].starts_with("The figures of n = 10000 were kept"), "{:?}", second.notes);
    }
}
