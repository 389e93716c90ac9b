//! Counters that are incremented as events happen. Metrics computed at each scrape are in `measures`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::{Kind, condition};
use engine::Writes;
use kube::core::ObjectMeta;
use planner::requester::{DELETION_REQUESTED, DOWNLOAD_REQUESTED};
use planner::{Event, Key};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// Failures of Velero are not counted as refusals.
const ENDED_BADLY: [&str; 2] = ["BackupFailed", "RestoreFailed"];

/// The Events that name who asked. Metrics have no user names.
const ASKED: [&str; 4] =
    [condition::BACKUP_SCHEDULED, condition::RESTORE_SCHEDULED, DOWNLOAD_REQUESTED, DELETION_REQUESTED];

/// The counters of this process.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    decisions: Counter,
    failures: Counter,
    ignored: Counter,
    given_up: Counter,
    queue_restarted: Counter,
    reviews: Counter,
    rights_changes: Counter,
    can_migrate: Family<[(&'static str, &'static str); 1], Gauge>,
    seconds: Family<[(&'static str, &'static str); 1], Histogram>,
    by_namespace: Arc<Mutex<Tallies>>,
}

/// Counters per namespace. One entry per namespace, kind and reason.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    /// Time spent reconciling its requests.
    pub(crate) seconds: BTreeMap<String, f64>,
    /// What Velero was given, by kind and by the reason of the Event that names who asked.
    pub(crate) asked: BTreeMap<(String, &'static str, &'static str), u64>,
    /// Refusals, by kind and reason.
    pub(crate) refusals: BTreeMap<(String, &'static str, &'static str), u64>,
    /// Backups and restores that failed in Velero, by kind.
    pub(crate) failed: BTreeMap<(String, &'static str), u64>,
}

impl Metrics {
    /// Registers everything.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            decisions: Counter::default(),
            failures: Counter::default(),
            ignored: Counter::default(),
            given_up: Counter::default(),
            queue_restarted: Counter::default(),
            reviews: Counter::default(),
            rights_changes: Counter::default(),
            can_migrate: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.001, 4.0, 8))),
            by_namespace: Arc::default(),
        };
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("nacre_build", "The version of this program", build);
        registry.register("nacre_decisions", "Decisions made about requests", metrics.decisions.clone());
        registry.register(
            "nacre_failures",
            "Decisions that could not be carried out",
            metrics.failures.clone(),
        );
        let help = "Backups in tenants' storage that contradict it and are ignored";
        registry.register("nacre_ignored_backups", help, metrics.ignored.clone());
        let help = "Restores from tenants' storage that Velero did not finish, and nacre ended";
        registry.register("nacre_restores_given_up", help, metrics.given_up.clone());
        let help =
            "How often Velero's queue of backups stood still, and nacre made a refused backup ready again";
        registry.register("nacre_velero_queue_restarted", help, metrics.queue_restarted.clone());
        let help = "SubjectAccessReviews made to find out what requesters are permitted";
        registry.register("nacre_access_reviews", help, metrics.reviews.clone());
        let help = "Subjects of RBAC that can live-migrate machines, as the leader last read it";
        registry.register("nacre_migration_subjects", help, metrics.can_migrate.clone());
        let help = "How often it changed who can live-migrate machines";
        registry.register("nacre_migration_subjects_changes", help, metrics.rights_changes.clone());
        let help = "Time to decide about a request and carry the decision out";
        registry.register("nacre_decision_seconds", help, metrics.seconds.clone());
        metrics
    }

    /// Counts a Velero Backup that is not imported.
    pub(crate) fn ignored(&self) {
        self.ignored.inc();
    }

    /// Counts a Restore that Velero did not finish.
    pub(crate) fn gave_up(&self) {
        self.given_up.inc();
    }

    /// Counts an attempt to set Velero's queue going again.
    pub(crate) fn restarted_queue(&self) {
        self.queue_restarted.inc();
    }

    /// Counts a SubjectAccessReview.
    pub(crate) fn reviewed(&self) {
        self.reviews.inc();
    }

    /// Notes how many subjects can live-migrate machines in all namespaces, and in some.
    pub(crate) fn can_migrate(&self, everywhere: usize, in_namespaces: usize) {
        for (scope, subjects) in [("cluster", everywhere), ("namespace", in_namespaces)] {
            self.can_migrate
                .get_or_create(&[("scope", scope)])
                .set(i64::try_from(subjects).unwrap_or(i64::MAX));
        }
    }

    /// Counts a change of who they are.
    pub(crate) fn rights_changed(&self) {
        self.rights_changes.inc();
    }

    /// Counts one reconcile.
    pub(crate) fn decided(&self, key: &Key, took: Duration, well: bool) {
        self.decisions.inc();
        self.seconds.get_or_create(&[("kind", key.kind.name())]).observe(took.as_secs_f64());
        *self.tallies().seconds.entry(key.namespace.clone()).or_default() += took.as_secs_f64();
        if !well {
            self.failures.inc();
        }
    }

    /// Counts an Event, if it is about what somebody asked for, a refusal or a failure.
    pub(crate) fn reported(&self, kind: Kind, about: &ObjectMeta, event: &Event) {
        if !event.warning && !ASKED.contains(&event.reason) {
            return;
        }
        let (namespace, kind) = (about.namespace.clone().unwrap_or_default(), kind.name());
        let mut tallies = self.tallies();
        *if !event.warning {
            tallies.asked.entry((namespace, kind, event.reason)).or_default()
        } else if ENDED_BADLY.contains(&event.reason) {
            tallies.failed.entry((namespace, kind)).or_default()
        } else {
            tallies.refusals.entry((namespace, kind, event.reason)).or_default()
        } += 1;
    }

    /// What was counted for each namespace.
    pub(crate) fn tallies(&self) -> MutexGuard<'_, Tallies> {
        self.by_namespace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tallies {
    /// Forgets namespaces that are gone.
    pub(crate) fn forget(&mut self, is_gone: impl Fn(&str) -> bool) {
        self.seconds.retain(|namespace, _| !is_gone(namespace));
        self.asked.retain(|(namespace, ..), _| !is_gone(namespace));
        self.refusals.retain(|(namespace, ..), _| !is_gone(namespace));
        self.failed.retain(|(namespace, _), _| !is_gone(namespace));
    }
}

/// Everything counted, as Prometheus reads it.
pub(crate) fn text(registry: &Registry) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = encode(&mut text, registry);
    text
}

/// The engine's counters, read at each scrape.
#[derive(Debug)]
pub(crate) struct Written(pub(crate) Arc<Writes>);

impl Collector for Written {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (name, help, count) in [
            ("nacre_api_writes", "Writes sent to the API server", &self.0.tried),
            ("nacre_api_conflicts", "Writes that met a conflict", &self.0.conflicts),
        ] {
            let counter = ConstCounter::new(count.load(Ordering::Relaxed));
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        Ok(())
    }
}
