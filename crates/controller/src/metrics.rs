//! Counters that are incremented as events happen. Metrics computed at each scrape are in `measures`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::Kind;
use engine::Writes;
use kube::core::ObjectMeta;
use planner::{Event, Key};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// Failures of Velero are not counted as refusals.
const ENDED_BADLY: [&str; 2] = ["BackupFailed", "RestoreFailed"];

/// The counters of this process.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    decisions: Counter,
    failures: Counter,
    ignored: Counter,
    reviews: Counter,
    seconds: Family<[(&'static str, &'static str); 1], Histogram>,
    by_namespace: Arc<Mutex<Tallies>>,
}

/// Counters per namespace. One entry per namespace, kind and reason.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    /// Time spent reconciling its requests.
    pub(crate) seconds: BTreeMap<String, f64>,
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
            reviews: Counter::default(),
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
        let help = "SubjectAccessReviews made to find out what requesters are permitted";
        registry.register("nacre_access_reviews", help, metrics.reviews.clone());
        let help = "Time to decide about a request and carry the decision out";
        registry.register("nacre_decision_seconds", help, metrics.seconds.clone());
        metrics
    }

    /// Counts a Velero Backup that is not imported.
    pub(crate) fn ignored(&self) {
        self.ignored.inc();
    }

    /// Counts a SubjectAccessReview.
    pub(crate) fn reviewed(&self) {
        self.reviews.inc();
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

    /// Counts an Event, if it is a refusal or a failure.
    pub(crate) fn reported(&self, kind: Kind, about: &ObjectMeta, event: &Event) {
        if !event.warning {
            return;
        }
        let (namespace, kind) = (about.namespace.clone().unwrap_or_default(), kind.name());
        let mut tallies = self.tallies();
        *if ENDED_BADLY.contains(&event.reason) {
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
