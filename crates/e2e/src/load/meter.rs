//! What a controller costs while it is under load: time, writes by kind, conflicts, processor time, memory.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bed::{Follow, Mark, Request};
use jiff::Timestamp;
use kube::Api;
use kube::api::ListParams;
use tokio::time::sleep;

use super::{LoadKind, SAMPLE};
use crate::{Nacre, TestCluster};

/// Who writes, whichever controller it is: both are installed with an account of this name.
pub(crate) const ACCOUNT: &str = "system:serviceaccount:velero:non-admin-controller";

/// How often the log is looked at, which costs the API server nothing.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Who writes nothing for so long is done.
const QUIET: Duration = Duration::from_secs(3);

/// What a load cost.
#[derive(Debug, Clone, Default)]
pub struct Cost {
    /// Writes by verb and resource; Events and leases are apart.
    pub writes: BTreeMap<String, usize>,
    /// How often each object was written to, by resource, namespace and name. What is created has no name in the log.
    pub objects: HashMap<(String, String, String), usize>,
    /// How many objects of each resource were written to.
    touched: HashMap<String, usize>,
    /// Writes that met a conflict.
    pub conflicts: usize,
    /// Events written.
    pub events: usize,
    /// SubjectAccessReviews asked for, which are no writes: nothing is stored.
    pub reviews: usize,
    /// Seconds of processor time.
    pub cpu_seconds: f64,
    /// The largest resident set since it was started, in bytes.
    pub peak_rss: u64,
    /// When the last write was answered, Events aside.
    pub last: Option<Timestamp>,
}

impl Cost {
    /// All writes but Events and leases.
    pub fn total(&self) -> usize {
        self.writes.values().sum()
    }

    fn note(&mut self, request: Request) {
        match request.resource.as_str() {
            "leases" => return,
            "events" => {
                self.events += 1;
                return;
            }
            _ => {}
        }
        *self.writes.entry(format!("{} {}", request.verb, request.resource)).or_default() += 1;
        self.conflicts += usize::from(request.code == 409);
        self.last = self.last.max(Some(request.answered));
        let object = (request.resource, request.namespace, request.name);
        if !self.objects.contains_key(&object) {
            *self.touched.entry(object.0.clone()).or_default() += 1;
        }
        *self.objects.entry(object).or_default() += 1;
    }
}

/// How far a load got, and how long that took.
#[derive(Debug, Clone, Copy)]
pub struct Reached {
    /// So many were done.
    pub done: usize,
    /// So many there were.
    pub of: usize,
    /// Until the last was done, or patience ended.
    pub took: Duration,
}

impl Reached {
    /// How long it took until all were done, if they were.
    pub fn all(self) -> Result<Duration> {
        ensure!(self.done >= self.of, "{} of {} were done after {:?}", self.done, self.of, self.took);
        Ok(self.took)
    }
}

/// Measures one running controller from the moment it is made.
pub struct Meter<'a> {
    pub(super) test_cluster: &'a TestCluster,
    running: &'a Nacre,
    log: Follow,
    began: Timestamp,
    cpu_before: f64,
    cost: Cost,
}

impl<'a> Meter<'a> {
    /// Begins to measure.
    pub async fn start(test_cluster: &'a TestCluster, running: &'a Nacre) -> Result<Self> {
        let cpu_before = running.process.usage()?.cpu_seconds;
        let mark = test_cluster.bed.audit().mark().await?;
        Self::from(test_cluster, running, mark, Timestamp::now(), cpu_before)
    }

    /// Measures from an earlier moment.
    pub(super) fn from(
        test_cluster: &'a TestCluster,
        running: &'a Nacre,
        mark: Mark,
        began: Timestamp,
        cpu_before: f64,
    ) -> Result<Self> {
        let log = test_cluster.bed.audit().follow(mark)?;
        Ok(Self { test_cluster, running, log, began, cpu_before, cost: Cost::default() })
    }

    /// How long it has measured.
    pub fn elapsed(&self) -> Duration {
        Timestamp::now().duration_since(self.began).unsigned_abs()
    }

    /// When the last write was answered that is in the log so far, counted from the beginning.
    pub(super) fn until_last_write(&self) -> Duration {
        self.cost.last.map_or(Duration::ZERO, |last| last.duration_since(self.began).unsigned_abs())
    }

    /// Reads the log on.
    fn read(&mut self) -> Result<()> {
        for request in &mut self.log {
            let request = request?;
            if request.user == ACCOUNT && request.resource == "subjectaccessreviews" {
                self.cost.reviews += 1;
            } else if request.user == ACCOUNT && request.is_write() {
                self.cost.note(request);
            }
        }
        Ok(())
    }

    /// Waits until so many requests show what they should, or patience ends.
    ///
    /// Watching them all from here would cost the machine as much as the work that is measured, and so would looking at
    /// them all again and again. So the audit log shows when each has been written, and only then they are read.
    pub async fn until_shown<K: LoadKind>(
        &mut self,
        of: usize,
        timeout: Duration,
        shows: impl Fn(&K) -> bool,
    ) -> Result<Reached> {
        let requests = Api::<K>::all(self.test_cluster.bed.client().await?);
        let status = format!("{}/status", K::plural(&()));
        loop {
            self.read()?;
            let (late, last) = (self.elapsed() > timeout, self.until_last_write());
            let written = self.cost.touched.get(&status).copied().unwrap_or_default();
            if !late && written < of {
                sleep(LOOK_AGAIN).await;
                continue;
            }
            let looked = Instant::now();
            let found = requests.list(&ListParams::default()).await?.items;
            let found = found.iter().filter(|request| request.meta().name.as_deref() != Some(SAMPLE));
            let done = found.filter(|request| shows(request)).count();
            if done >= of {
                return Ok(Reached { done, of, took: last });
            }
            if late {
                return Ok(Reached { done, of, took: self.elapsed() });
            }
            // Measuring must stay cheap compared with the load.
            sleep(LOOK_AGAIN.max(looked.elapsed() * 3)).await;
        }
    }

    /// Waits until it has written nothing for a while, not even an Event. False if patience ends before.
    pub async fn until_quiet(&mut self, timeout: Duration) -> Result<bool> {
        let began = Instant::now();
        let (mut last, mut seen) = (Instant::now(), None);
        while began.elapsed() < timeout {
            self.read()?;
            let now = Some(self.cost.total() + self.cost.events);
            if now != seen {
                (last, seen) = (Instant::now(), now);
            } else if last.elapsed() >= QUIET {
                return Ok(true);
            }
            sleep(LOOK_AGAIN).await;
        }
        Ok(false)
    }

    /// What it cost so far.
    pub async fn cost(&mut self) -> Result<Cost> {
        let usage = self.running.process.usage()?;
        // Whatever was answered by now is in the log then.
        self.test_cluster.bed.audit().mark().await?;
        self.read()?;
        self.cost.cpu_seconds = usage.cpu_seconds - self.cpu_before;
        self.cost.peak_rss = usage.peak_rss;
        Ok(self.cost.clone())
    }
}
