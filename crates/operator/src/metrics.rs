//! What is counted.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::Writes;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// What this program counts about itself.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    decisions: Counter,
    failures: Counter,
    ignored: Counter,
    seconds: Histogram,
}

impl Metrics {
    /// Registers everything.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            decisions: Counter::default(),
            failures: Counter::default(),
            ignored: Counter::default(),
            seconds: Histogram::new(exponential_buckets(0.001, 4.0, 8)),
        };
        registry.register("nacre_decisions", "Decisions made about requests", metrics.decisions.clone());
        registry.register(
            "nacre_failures",
            "Decisions that could not be carried out",
            metrics.failures.clone(),
        );
        let help = "Backups in tenants' storage that contradict it and are ignored";
        registry.register("nacre_ignored_backups", help, metrics.ignored.clone());
        let help = "Time to decide about a request and carry the decision out";
        registry.register("nacre_decision_seconds", help, metrics.seconds.clone());
        metrics
    }

    /// Counts a backup that is ignored.
    pub(crate) fn ignored(&self) {
        self.ignored.inc();
    }

    /// Counts one decision.
    pub(crate) fn decided(&self, took: Duration, well: bool) {
        self.decisions.inc();
        self.seconds.observe(took.as_secs_f64());
        if !well {
            self.failures.inc();
        }
    }
}

/// Everything counted, as Prometheus reads it.
pub(crate) fn text(registry: &Registry) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = encode(&mut text, registry);
    text
}

/// What the engine counts, read when asked.
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
