//! Which loads there are, in which order, on which cluster.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use anyhow::{Result, bail};
use api::{NonAdminBackup, NonAdminRestore};

use super::results::{Load, Record, Results, Who};
use crate::load::{
    Contender, Cost, Destination, LoadKind, Meter, People, Reached, SHOPS, Ticker, at_rest, bring, burst,
    delete, drain, finished_backups, in_order, make_namespaces, raw, restart, sample, settle, turns,
};
use crate::{Nacre, TestCluster};

/// How many locations there are.
const LOCATIONS: usize = 500;
/// How often two loads are measured in turn that are to be compared closely.
const ROUNDS: usize = 3;
/// How long they are measured while idle.
const AT_REST: Duration = Duration::from_mins(1);

/// A run.
pub struct Bench {
    /// What was measured so far.
    pub results: Results,
    /// How long each load may take, so that one who crawls does not hold up the others.
    pub timeout: Duration,
}

impl Bench {
    /// What a bare client needs for the same writes, on a cluster as new as everybody's.
    pub async fn bare(&mut self, n: usize) -> Result<()> {
        let (who, nacre) = (Who::BareClient, &Contender::Nacre);
        let test_cluster = self.test_cluster(who, nacre, n, "backups").await?;
        let running = nacre.start(&test_cluster).await?;
        let wanted = sample::<NonAdminBackup>(&test_cluster.bed).await?;
        running.process.kill().await?;
        let created = raw::create::<NonAdminBackup>(&test_cluster.bed, &wanted, n).await?;
        let drained = raw::drain::<NonAdminBackup>(&test_cluster.bed, n).await?;
        self.took(Load::Burst, n, created);
        self.took(Load::Drain, n, drained);
        self.took(Load::Delete, n, raw::delete::<NonAdminBackup>(&test_cluster.bed, n).await?);
        self.took(Load::Turns, n, raw::in_turn::<NonAdminBackup>(&test_cluster.bed, &wanted, n).await?);
        drop((running, test_cluster));

        let test_cluster = self.test_cluster(who, nacre, n, "restores").await?;
        let running = nacre.start(&test_cluster).await?;
        finished_backups(&test_cluster, self.timeout).await?;
        let wanted = sample::<NonAdminRestore>(&test_cluster.bed).await?;
        running.process.kill().await?;
        self.took(Load::Restores, n, raw::create::<NonAdminRestore>(&test_cluster.bed, &wanted, n).await?);
        Ok(())
    }

    /// Backups from the first to the last: a burst, ticks, a drain, a restart, and all go.
    pub async fn backups(&mut self, who: Who, contender: &Contender, n: usize) -> Result<()> {
        let test_cluster = self.test_cluster(who, contender, n, "backups").await?;
        let running = contender.start(&test_cluster).await?;
        self.burst::<NonAdminBackup>((who, Load::Burst, n), &test_cluster, &running).await?;
        self.ticks(who, n, &test_cluster, &running).await?;

        let names = in_order::<NonAdminBackup>(&test_cluster).await?;
        let mut meter = Meter::start(&test_cluster, &running).await?;
        let reached = drain::<NonAdminBackup>(&mut meter, &names, n, self.timeout).await?;
        self.over((who, Load::Drain, n), reached, meter).await?;
        running.process.kill().await?;

        let running = self.restart(who, contender, n, &test_cluster).await?;

        let mut meter = Meter::start(&test_cluster, &running).await?;
        let reached = delete::<NonAdminBackup>(&mut meter, n, self.timeout).await?;
        self.over((who, Load::Delete, n), reached, meter).await
    }

    /// A restart with backups of thousands of namespaces that ended before, and nothing else: to make so many through the
    /// controller takes hours.
    pub async fn settled(&mut self, who: Who, contender: &Contender, n: usize) -> Result<()> {
        let test_cluster = self.test_cluster(who, contender, n, "settled backups").await?;
        let running = contender.start(&test_cluster).await?;
        let wanted = sample::<NonAdminBackup>(&test_cluster.bed).await?;
        running.process.kill().await?;
        settle(&test_cluster.bed, &wanted, n).await?;
        say("   They are written; it starts.");
        // What the first start still changes is not of a settled cluster.
        let (running, _, cost) = restart(contender, &test_cluster, self.timeout).await?;
        say(&format!("   The first start wrote {} times.", cost.total()));
        running.process.kill().await?;
        self.restart(who, contender, n, &test_cluster).await.map(drop)
    }

    /// Backups in turn, with a Velero that ends them at once.
    pub async fn turns(&mut self, who: Who, n: usize) -> Result<()> {
        let test_cluster = self.test_cluster(who, &Contender::Nacre, n, "backups in turn").await?;
        test_cluster.queue_by_default().await?;
        // As it is installed: the API server records who asks, and puts the finalizer on.
        test_cluster.record_requesters().await?;
        let running = Contender::Nacre.start(&test_cluster).await?;
        let mut meter = Meter::start(&test_cluster, &running).await?;
        let reached = turns::<NonAdminBackup>(&mut meter, n, self.timeout).await?;
        self.over((who, Load::Turns, n), reached, meter).await
    }

    /// Many restores of a few backups.
    pub async fn restores(&mut self, who: Who, contender: &Contender, n: usize) -> Result<()> {
        let test_cluster = self.test_cluster(who, contender, n, "restores").await?;
        let running = contender.start(&test_cluster).await?;
        finished_backups(&test_cluster, self.timeout).await?;
        Meter::start(&test_cluster, &running).await?.until_quiet(self.timeout).await?;
        self.burst::<NonAdminRestore>((who, Load::Restores, n), &test_cluster, &running).await
    }

    /// Backups of a few people, with and without a record of who asks, in turn; then into storage of their own.
    pub async fn people(&mut self, n: usize) -> Result<()> {
        let (who, nacre) = (Who::Nacre, &Contender::Nacre);
        let test_cluster = self.test_cluster(who, nacre, n, "backups of 20 people").await?;
        test_cluster.admission().await?;
        let people = People::settle(&test_cluster).await?;
        let running = nacre.start(&test_cluster).await?;
        for round in 0..ROUNDS {
            for (load, recorded) in [(Load::Unrecorded, false), (Load::Recorded, true)] {
                if recorded {
                    test_cluster.record_requesters().await?;
                }
                let what = (who, load, n);
                self.of_people(what, &test_cluster, &running, &people, Destination::Platform).await?;
                if recorded && round + 1 < ROUNDS {
                    test_cluster.forget_requesters().await?;
                }
            }
        }
        let mut meter = Meter::start(&test_cluster, &running).await?;
        test_cluster.give_own_storage(&mut meter, self.timeout).await?;
        meter.until_quiet(self.timeout).await?;
        let what = (who, Load::RecordedOwn, n);
        self.of_people(what, &test_cluster, &running, &people, Destination::Own).await
    }

    /// One burst of theirs, of which the best counts, and all go.
    async fn of_people(
        &mut self,
        what: What,
        test_cluster: &TestCluster,
        running: &Nacre,
        people: &People,
        to: Destination,
    ) -> Result<()> {
        let mut meter = Meter::start(test_cluster, running).await?;
        let reached = people.burst(&mut meter, what.2, to, self.timeout).await?;
        meter.until_quiet(self.timeout).await?;
        let cost = meter.cost().await?;
        let before = self.results.find(what.0, what.1, what.2).map(|record| record.seconds);
        if before.is_none_or(|before| reached.took.as_secs_f64() < before) {
            self.add(what, reached, cost)?;
        }
        let mut meter = Meter::start(test_cluster, running).await?;
        delete::<NonAdminBackup>(&mut meter, what.2, self.timeout).await?.all()?;
        meter.until_quiet(self.timeout).await?;
        Ok(())
    }

    /// Many locations, and a minute of rest.
    pub async fn locations(&mut self, who: Who, contender: &Contender) -> Result<()> {
        let test_cluster = self.test_cluster(who, contender, LOCATIONS, "locations").await?;
        let running = contender.start(&test_cluster).await?;
        let mut meter = Meter::start(&test_cluster, &running).await?;
        let reached = bring(&mut meter, LOCATIONS, self.timeout).await?;
        self.over((who, Load::Locations, LOCATIONS), reached, meter).await?;
        let rest = at_rest(&test_cluster, &running, AT_REST, self.timeout).await?;
        let reached = Reached { done: 1, of: 1, took: rest.watched };
        self.add((who, Load::AtRest, LOCATIONS), reached, rest.cost)
    }

    async fn restart(
        &mut self,
        who: Who,
        contender: &Contender,
        n: usize,
        test_cluster: &TestCluster,
    ) -> Result<Nacre> {
        let (running, took, cost) = restart(contender, test_cluster, self.timeout).await?;
        let done = usize::from(took.is_some());
        let reached = Reached { done, of: 1, took: took.unwrap_or(self.timeout) };
        self.add((who, Load::Restart, n), reached, cost)?;
        Ok(running)
    }

    async fn test_cluster(
        &mut self,
        who: Who,
        contender: &Contender,
        n: usize,
        what: &str,
    ) -> Result<TestCluster> {
        say(&format!("== {}: {n} {what}", who.name()));
        let test_cluster = contender.test_cluster().await?;
        make_namespaces(&test_cluster.bed, SHOPS).await?;
        let version = test_cluster.bed.client().await?.apiserver_version().await?;
        self.results.versions.insert("Kubernetes".to_owned(), version.git_version);
        Ok(test_cluster)
    }

    async fn burst<K: LoadKind>(
        &mut self,
        what: What,
        test_cluster: &TestCluster,
        running: &Nacre,
    ) -> Result<()> {
        let mut meter = Meter::start(test_cluster, running).await?;
        let reached = burst::<K>(&mut meter, what.2, self.timeout).await?;
        self.over(what, reached, meter).await
    }

    async fn ticks(&mut self, who: Who, n: usize, test_cluster: &TestCluster, running: &Nacre) -> Result<()> {
        let ticker = Ticker::<NonAdminBackup>::begin(test_cluster, self.timeout).await?;
        Meter::start(test_cluster, running).await?.until_quiet(self.timeout).await?;
        let mut meter = Meter::start(test_cluster, running).await?;
        let reached = ticker.tick(&meter, self.timeout).await?;
        meter.until_quiet(self.timeout).await?;
        let mut cost = meter.cost().await?;
        let own = cost
            .objects
            .iter()
            .filter(|((_, namespace, name), _)| *namespace == ticker.namespace && *name == ticker.request);
        let own = own.map(|(_, count)| count).sum();
        let others = cost.total() - own;
        cost.writes = BTreeMap::from([("to its own request".into(), own), ("to others".into(), others)]);
        self.add((who, Load::Ticks, n), reached, cost)
    }

    fn took(&mut self, load: Load, n: usize, took: Duration) {
        let record = Record::new(Who::BareClient, load, n, Reached { done: n, of: n, took }, Cost::default());
        self.keep(record);
    }

    /// The cost of a load once the controller is idle: Events are written with a delay.
    async fn over(&mut self, what: What, reached: Reached, mut meter: Meter<'_>) -> Result<()> {
        if reached.done >= reached.of {
            meter.until_quiet(self.timeout).await?;
        }
        let cost = meter.cost().await?;
        self.add(what, reached, cost)
    }

    fn add(&mut self, (who, load, n): What, reached: Reached, cost: Cost) -> Result<()> {
        let record = Record::new(who, load, n, reached, cost);
        let is_done = record.is_done();
        self.keep(record);
        if !is_done {
            // What comes next begins where this ends.
            bail!("{} of {} were done after {:.0} s", reached.done, reached.of, reached.took.as_secs_f64());
        }
        Ok(())
    }

    /// A load that was measured before counts as it was measured last.
    fn keep(&mut self, record: Record) {
        let Record { who, load, n, done, of, seconds, cpu_seconds, .. } = &record;
        let (writes, memory) = (record.total(), record.peak_rss >> 20);
        say(&format!(
            "   {load:?}, {}: {done} of {of} in {seconds:.1} s; {writes} writes, {} conflicts, {cpu_seconds:.2} s of \
             CPU, {memory} MiB",
            who.name(),
            record.conflicts
        ));
        let same = |old: &Record| old.who == *who && old.load == *load && old.n == *n;
        self.results.records.retain(|old| !same(old));
        self.results.records.push(record);
    }
}

/// Who does what, and how many of it.
type What = (Who, Load, usize);

/// Tells how far it is.
pub fn say(text: &str) {
    // Nobody may be listening any more, and then the figures are still written.
    let _ = writeln!(std::io::stdout(), "{text}");
}
