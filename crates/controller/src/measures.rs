//! Metrics computed at each scrape: requests per namespace, age of the last completed backup, waiting time, and
//! counters.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use engine::{Cluster, Writes};
use jiff::Timestamp;
use planner::usage::Usage;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabelSet, EncodeMetric,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::metrics::Metrics;

/// The sources of the metrics.
pub(crate) struct Measured {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) writes: Arc<Writes>,
    pub(crate) metrics: Metrics,
}

impl fmt::Debug for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Measured")
    }
}

impl Collector for Measured {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let now = Timestamp::now();
        let look = self.cluster.look();
        let measures = look.measures();
        let problems = look.policy_problems().iter().filter(|problem| problem.is_error()).count();
        let vanished = look.policy_vanished().len();
        let in_effect = usize::from(look.policy_in_effect());
        let writes = self.writes.by_namespace(|namespace| look.is_gone(namespace));
        let mut tallies = self.metrics.tallies();
        tallies.forget(|namespace| look.is_gone(namespace));
        drop(look);

        let all = &mut encoder;
        let requests = measures.requests.iter().map(|((namespace, kind, phase), count)| {
            ([("namespace", namespace.as_str()), ("kind", kind.name()), ("phase", phase)], *count)
        });
        gauges(all, "nacre_requests", "Requests by namespace, kind and phase", requests)?;
        let good = measures
            .last_good
            .iter()
            .map(|(namespace, at)| ([("namespace", namespace.as_str())], at.as_second()));
        let help = "When the last good backup of a namespace was completed: complete, not empty, unfiltered, and restorable now";
        gauges(all, "nacre_last_good_backup_timestamp_seconds", help, good)?;
        let of_schedule = |(namespace, name): &(String, String)| {
            [("namespace", namespace.clone()), ("schedule", name.clone())]
        };
        let good =
            measures.schedules.iter().map(|(of, found)| (of_schedule(of), found.last_good.as_second()));
        let help = "When the last good backup of a schedule was completed; without one, when the schedule was created";
        gauges(all, "nacre_schedule_last_good_timestamp_seconds", help, good)?;
        let every =
            measures.schedules.iter().filter_map(|(of, found)| Some((of_schedule(of), found.interval?)));
        let help = "The time between two runs of a schedule; none while it is paused";
        gauges(all, "nacre_schedule_interval_seconds", help, every)?;
        let accepted =
            measures.schedules.iter().map(|(of, found)| (of_schedule(of), u64::from(found.accepted)));
        let help = "Whether a schedule is accepted; one that is not has no runs";
        gauges(all, "nacre_schedule_accepted", help, accepted)?;
        let on_time = measures
            .schedules
            .iter()
            .filter_map(|(of, found)| Some((of_schedule(of), u64::from(found.on_time?))));
        let help = "Whether the latest run of a schedule was made as it was due";
        gauges(all, "nacre_schedule_runs_on_time", help, on_time)?;
        let retained = measures
            .schedules
            .iter()
            .filter_map(|(of, found)| Some((of_schedule(of), u64::from(found.retained?))));
        let help = "Whether a schedule keeps what it is to keep, and nothing else";
        gauges(all, "nacre_schedule_retained", help, retained)?;
        let confirm = measures
            .schedules
            .iter()
            .filter_map(|(of, found)| Some((of_schedule(of), found.confirm_by?.as_second())));
        let help =
            "Until when somebody has to confirm a schedule, since the record of who asks for its runs ages";
        gauges(all, "nacre_schedule_confirm_by_timestamp_seconds", help, confirm)?;
        let waits = measures.waiting_since.iter().map(|((namespace, kind), since)| {
            let waited = now.duration_since(*since).as_secs_f64().max(0.0);
            ([("namespace", namespace.as_str()), ("kind", kind.name())], waited)
        });
        let help = "How long the request that waits longest for Velero has been waiting";
        gauges(all, "nacre_queue_wait_seconds", help, waits)?;
        let idle = measures.idle_since.map_or(0.0, |since| now.duration_since(since).as_secs_f64().max(0.0));
        let help = "How long Velero has had backups in its queue and worked on none";
        gauge(all, "nacre_velero_idle_seconds", help, idle)?;
        usage(all, &measures.usage)?;
        let help = "Problems of the policy as written; the last valid one stays in effect";
        gauge(all, "nacre_policy_problems", help, problems)?;
        let help = "Sources of the policy that vanished; what they said stays in force for ten minutes";
        gauge(all, "nacre_policy_vanished", help, vanished)?;
        let help = "Whether there is a policy to decide by; without one, new requests wait";
        gauge(all, "nacre_policy_in_effect", help, in_effect)?;

        let writes = writes.iter().map(|(namespace, count)| ([("namespace", namespace.as_str())], *count));
        let help = "Writes sent to the API server on behalf of a namespace";
        counters(all, "nacre_namespace_api_writes", help, writes)?;
        let seconds =
            tallies.seconds.iter().map(|(namespace, spent)| ([("namespace", namespace.as_str())], *spent));
        let help = "Time spent deciding about a namespace's requests and carrying the decisions out";
        counters(all, "nacre_namespace_decision_seconds", help, seconds)?;
        let asked = tallies.asked.iter().map(|((namespace, kind, reason), count)| {
            ([("namespace", namespace.as_str()), ("kind", kind), ("reason", reason)], *count)
        });
        let help = "What Velero was given for a namespace: backups, restores, downloads and deletions";
        counters(all, "nacre_asked", help, asked)?;
        let refusals = tallies.refusals.iter().map(|((namespace, kind, reason), count)| {
            ([("namespace", namespace.as_str()), ("kind", kind), ("reason", reason)], *count)
        });
        let help = "What tenants were refused or warned of, by reason";
        counters(all, "nacre_refusals", help, refusals)?;
        let failed = tallies
            .failed
            .iter()
            .map(|((namespace, kind), count)| ([("namespace", namespace.as_str()), ("kind", kind)], *count));
        counters(all, "nacre_velero_failures", "Backups and restores that Velero ended badly", failed)
    }
}

/// One figure of what a namespace uses.
type Figure = fn(&Usage) -> u64;

/// What each namespace uses, for charging back and for alerts before a limit is reached.
fn usage(all: &mut DescriptorEncoder<'_>, usage: &BTreeMap<String, Usage>) -> fmt::Result {
    let each: [(&str, &str, Figure); 4] = [
        ("nacre_namespace_backups", "Backups of a namespace that Velero has", |used| used.backups),
        (
            "nacre_namespace_unfinished",
            "Backups and restores of a namespace that Velero is not done with",
            |used| used.unfinished,
        ),
        (
            "nacre_namespace_storage_bytes",
            "Estimated volume data of a namespace in the cluster's own storage",
            |used| used.bytes,
        ),
        (
            "nacre_namespace_work_today_seconds",
            "How long Velero has worked for a namespace since midnight UTC",
            |used| used.work_seconds,
        ),
    ];
    for (name, help, figure) in each {
        let values =
            usage.iter().map(|(namespace, used)| ([("namespace", namespace.as_str())], figure(used)));
        gauges(all, name, help, values)?;
    }
    Ok(())
}

fn gauge<V: EncodeGaugeValue + Copy>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: V,
) -> fmt::Result {
    ConstGauge::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

fn gauges<L: EncodeLabelSet, V: EncodeGaugeValue + Copy>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (L, V)>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in values {
        ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

fn counters<L: EncodeLabelSet, V: EncodeCounterValue + Copy>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (L, V)>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in values {
        ConstCounter::new(value).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}
