//! The accounts of all namespaces, brought up to date with every change, so that nobody has to read all objects.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use api::Kind;
use jiff::Timestamp;
use jiff::civil::Date;

use super::chains::{Chains, SavedVolume};
use super::work::{Span, day};
use super::{Owner, Usage};

/// A Velero Backup or Restore, as far as it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) owner: Owner,
    pub(crate) is_backup: bool,
    /// In the platform's storage.
    pub(crate) here: bool,
    pub(crate) is_unfinished: bool,
    pub(crate) span: Option<Span>,
}

/// What one owner has.
#[derive(Clone, Debug, Default)]
struct Account {
    backups: u64,
    unfinished: u64,
    unfinished_here: u64,
    finished_here: u64,
    chains: Chains,
    /// The seconds of what is over, by day.
    work: BTreeMap<Date, u64>,
    /// Of these, what was deleted since. It stays until the day is over.
    deleted: BTreeMap<Date, u64>,
    /// What runs, and since when.
    running: BTreeMap<(Kind, String), Span>,
}

/// The accounts of all namespaces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    accounts: HashMap<Owner, Account>,
    /// The namespaces with an account, each with the uids it has or had.
    namespaces: BTreeMap<String, BTreeSet<Option<String>>>,
    /// Those that deleted something today.
    deleters: BTreeSet<Owner>,
    today: Option<Date>,
}

impl Ledger {
    /// A Velero Backup or Restore changed from one state to another.
    pub(crate) fn shift(&mut self, kind: Kind, name: &str, before: Option<&Job>, after: Option<&Job>) {
        if before == after {
            return;
        }
        if let Some(job) = before {
            self.with(&job.owner, |account| account.take(kind, name, job));
        }
        if let Some(job) = after {
            self.with(&job.owner, |account| account.put(kind, name, job));
        }
    }

    /// A Velero Backup or Restore was deleted. What Velero worked for it today stays on the account.
    pub(crate) fn delete(&mut self, kind: Kind, name: &str, job: &Job, now: Timestamp) {
        let today = day(now);
        self.begin(today);
        let worked = job.span.map_or(0, |span| span.on(today, now));
        self.with(&job.owner, |account| {
            account.take(kind, name, job);
            account.keep(today, worked);
        });
        if worked > 0 {
            self.deleters.insert(job.owner.clone());
        }
    }

    /// Forgets what was deleted on an earlier day.
    fn begin(&mut self, today: Date) {
        if self.today.replace(today) == Some(today) {
            return;
        }
        for owner in std::mem::take(&mut self.deleters) {
            self.with(&owner, |account| account.forget_before(today));
        }
    }

    /// A volume was saved for this owner.
    pub(crate) fn add_volume(&mut self, owner: &Owner, claim: &str, at: Saved, volume: SavedVolume) {
        self.with(owner, |account| account.chains.add(claim, at, volume));
    }

    /// A saved volume of this owner is gone.
    pub(crate) fn remove_volume(&mut self, owner: &Owner, claim: &str, at: &Saved) {
        self.with(owner, |account| account.chains.remove(claim, at));
    }

    /// What a namespace with this uid uses.
    pub(crate) fn usage(&self, namespace: &str, uid: Option<&str>, now: Timestamp) -> Usage {
        let mut usage = Usage::default();
        let mut uids = vec![None];
        uids.extend(uid.map(|uid| Some(uid.to_owned())));
        for uid in uids {
            let owner = Owner { namespace: namespace.to_owned(), uid };
            if let Some(account) = self.accounts.get(&owner) {
                usage += account.usage(now);
            }
        }
        usage
    }

    /// The namespaces that use something, or did.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.namespaces.keys().map(String::as_str)
    }

    /// The work of what was deleted today, by owner.
    pub(super) fn deleted(&self, date: Date) -> BTreeMap<&Owner, u64> {
        let of = |owner| Some((owner, *self.accounts.get(owner)?.deleted.get(&date)?));
        self.deleters.iter().filter_map(of).collect()
    }

    /// Takes what another process knows to be deleted.
    pub(super) fn recall(&mut self, owner: &Owner, date: Date, seconds: u64) {
        let known = self.accounts.get(owner).and_then(|account| account.deleted.get(&date)).copied();
        let more = seconds.saturating_sub(known.unwrap_or(0));
        if more > 0 {
            self.with(owner, |account| account.keep(date, more));
            self.deleters.insert(owner.clone());
        }
    }

    fn with(&mut self, owner: &Owner, change: impl FnOnce(&mut Account)) {
        let account = self.accounts.entry(owner.clone()).or_insert_with(|| {
            self.namespaces.entry(owner.namespace.clone()).or_default().insert(owner.uid.clone());
            Account::default()
        });
        change(account);
        if account.is_empty() {
            self.accounts.remove(owner);
            if let Some(uids) = self.namespaces.get_mut(&owner.namespace) {
                uids.remove(&owner.uid);
                if uids.is_empty() {
                    self.namespaces.remove(&owner.namespace);
                }
            }
        }
    }
}

/// When a volume was saved, and the name of the object about it.
pub(crate) type Saved = (Option<Timestamp>, String);

impl Account {
    fn put(&mut self, kind: Kind, name: &str, job: &Job) {
        self.count(job, |number| *number = number.saturating_add(1));
        match job.span {
            Some(span) if span.end.is_none() && job.is_unfinished => {
                self.running.insert((kind, name.to_owned()), span);
            }
            Some(span) => {
                for (date, seconds) in span.days() {
                    add(&mut self.work, date, seconds);
                }
            }
            None => {}
        }
    }

    fn take(&mut self, kind: Kind, name: &str, job: &Job) {
        self.count(job, |number| *number = number.saturating_sub(1));
        if self.running.remove(&(kind, name.to_owned())).is_some() {
            return;
        }
        for (date, seconds) in job.span.into_iter().flat_map(Span::days) {
            subtract(&mut self.work, date, seconds);
        }
    }

    /// Keeps the work of something that is gone.
    fn keep(&mut self, today: Date, seconds: u64) {
        if seconds > 0 {
            add(&mut self.work, today, seconds);
            add(&mut self.deleted, today, seconds);
        }
    }

    fn forget_before(&mut self, today: Date) {
        let kept = self.deleted.split_off(&today);
        for (date, seconds) in std::mem::replace(&mut self.deleted, kept) {
            subtract(&mut self.work, date, seconds);
        }
    }

    fn count(&mut self, job: &Job, change: impl Fn(&mut u64)) {
        if job.is_unfinished {
            change(&mut self.unfinished);
        }
        if job.is_backup {
            change(&mut self.backups);
            if job.here && job.is_unfinished {
                change(&mut self.unfinished_here);
            } else if job.here {
                change(&mut self.finished_here);
            }
        }
    }

    fn usage(&self, now: Timestamp) -> Usage {
        let today = day(now);
        let over = self.work.get(&today).copied().unwrap_or(0);
        let running = self.running.values().map(|span| span.on(today, now));
        Usage {
            backups: self.backups,
            unfinished: self.unfinished,
            unfinished_here: self.unfinished_here,
            finished_here: self.finished_here,
            bytes: self.chains.bytes(),
            work_seconds: running.fold(over, u64::saturating_add),
        }
    }

    fn is_empty(&self) -> bool {
        self.backups == 0
            && self.unfinished == 0
            && self.chains.is_empty()
            && self.work.is_empty()
            && self.running.is_empty()
    }
}

fn add(days: &mut BTreeMap<Date, u64>, date: Date, seconds: u64) {
    let known = days.entry(date).or_default();
    *known = known.saturating_add(seconds);
}

fn subtract(days: &mut BTreeMap<Date, u64>, date: Date, seconds: u64) {
    if let Some(known) = days.get_mut(&date) {
        *known = known.saturating_sub(seconds);
        if *known == 0 {
            days.remove(&date);
        }
    }
}
