//! Flags of leader election, and its metric.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use engine::{LeaderStatus, Leadership, LeaseConfig};
use planner::lease::Times;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;

/// Leader election: one controller per cluster is active, the holder of the Lease.
#[derive(Args, Clone, Debug)]
pub(crate) struct LeaseArgs {
    /// Namespace of the lease; the same for every installation in a cluster
    #[arg(long = "lease-namespace", env = "NACRE_LEASE_NAMESPACE", default_value = planner::install::LEASE_NAMESPACE)]
    namespace: String,

    /// Name of the lease; the same for every installation in a cluster
    #[arg(long = "lease-name", env = "NACRE_LEASE_NAME", default_value = planner::install::LEASE)]
    name: String,

    /// Lease duration: how long a standby waits for a leader that stopped renewing
    #[arg(long = "lease-duration", env = "NACRE_LEASE_DURATION", default_value = "10s", value_parser = duration)]
    duration: Duration,

    /// How often the leader renews the lease
    #[arg(long = "lease-renew-period", env = "NACRE_LEASE_RENEW_PERIOD", default_value = "3s", value_parser = duration)]
    renew_period: Duration,

    /// How often a standby reads the lease, and the retry period after a failure
    #[arg(long = "lease-retry-period", env = "NACRE_LEASE_RETRY_PERIOD", default_value = "500ms", value_parser = duration)]
    retry_period: Duration,
}

impl LeaseArgs {
    /// The lease and the identity of this process.
    pub(crate) fn lease_config(&self, install: &str, host: &str) -> Result<LeaseConfig> {
        let times = Times { duration: self.duration, renew: self.renew_period, retry: self.retry_period };
        if let Some(problem) = times.problem() {
            bail!("{problem} (--lease-duration, --lease-renew-period, --lease-retry-period)");
        }
        Ok(LeaseConfig {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            secret_namespace: Some(install.to_owned()),
            me: engine::identity(install, host),
            times,
        })
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let read = api::Duration::from(text).to_std();
    read.ok_or_else(|| format!("{text:?} is no duration; write for example 10s or 500ms"))
}

/// The metric `nacre_leader`, read at each scrape.
#[derive(Debug)]
pub(crate) struct Leader {
    pub(crate) leadership: Leadership,
    pub(crate) me: String,
}

impl Collector for Leader {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let leader_status = self.leadership.leader_status();
        let is_leader = matches!(leader_status, LeaderStatus::Leading | LeaderStatus::LeadingBySecret(_));
        let gauge = ConstGauge::new(i64::from(is_leader));
        let help = "1 if this process is leader, 0 if it is standby";
        gauge.encode(encoder.encode_descriptor("nacre_leader", help, None, gauge.metric_type())?)?;
        let holder = match &leader_status {
            LeaderStatus::Leading | LeaderStatus::LeadingBySecret(_) => &self.me,
            LeaderStatus::Standby(holder) => holder,
            _ => return Ok(()),
        };
        let gauge = ConstGauge::new(1_i64);
        let help = "Who holds the lease, as far as this process knows";
        let mut family = encoder.encode_descriptor("nacre_lease_holder", help, None, gauge.metric_type())?;
        gauge.encode(family.encode_family(&[("holder", holder.as_str())])?)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::Args;

    fn given(flags: &[&str]) -> Result<Args, clap::Error> {
        Args::try_parse_from([&["nacre"], flags].concat())
    }

    #[test]
    fn the_lease_of_a_well_known_name_fails_over_within_fifteen_seconds() {
        let lease_config = given(&[]).unwrap().lease.lease_config("velero", "host").unwrap();
        assert_eq!((lease_config.namespace.as_str(), lease_config.name.as_str()), ("kube-system", "nacre"));
        assert!(lease_config.me.starts_with("velero/host_"), "{}", lease_config.me);
        assert!(
            lease_config.times.duration + 3 * lease_config.times.retry < std::time::Duration::from_secs(15)
        );
    }

    #[test]
    fn times_that_make_no_sense_are_refused_in_words() {
        let words = given(&["--lease-duration=soon"]).unwrap_err().to_string();
        assert!(words.contains("10s or 500ms"), "{words}");
        let args = given(&["--lease-duration=2s"]).unwrap();
        let words = args.lease.lease_config("velero", "host").unwrap_err().to_string();
        assert!(words.contains("at most 1s") && words.contains("--lease-renew-period"), "{words}");
    }
}
