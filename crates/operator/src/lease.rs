//! Flags of the lease, and what is told about it.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use engine::{Leadership, Seat, Standing};
use planner::lease::Times;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;

/// One controller acts per cluster: the one that holds a lease which all of them know.
#[derive(Args, Clone, Debug)]
pub(crate) struct LeaseArgs {
    /// Where the lease is; the same for every install in a cluster
    #[arg(long = "lease-namespace", env = "NACRE_LEASE_NAMESPACE", default_value = planner::install::LEASE_NAMESPACE)]
    namespace: String,

    /// What the lease is called; the same for every install in a cluster
    #[arg(long = "lease-name", env = "NACRE_LEASE_NAME", default_value = planner::install::LEASE)]
    name: String,

    /// How long the lease lasts after a renewal: this is how long a standby waits for a leader that fell silent
    #[arg(long = "lease-duration", env = "NACRE_LEASE_DURATION", default_value = "10s", value_parser = duration)]
    duration: Duration,

    /// How often the leader renews the lease
    #[arg(long = "lease-renew-period", env = "NACRE_LEASE_RENEW_PERIOD", default_value = "3s", value_parser = duration)]
    renew_period: Duration,

    /// How often a standby looks at the lease, and how soon anybody tries again after a failure
    #[arg(long = "lease-retry-period", env = "NACRE_LEASE_RETRY_PERIOD", default_value = "500ms", value_parser = duration)]
    retry_period: Duration,
}

impl LeaseArgs {
    /// Which lease this install would hold, as whom.
    pub(crate) fn seat(&self, install: &str, host: &str) -> Result<Seat> {
        let times = Times { duration: self.duration, renew: self.renew_period, retry: self.retry_period };
        if let Some(problem) = times.problem() {
            bail!("{problem} (--lease-duration, --lease-renew-period, --lease-retry-period)");
        }
        Ok(Seat {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            me: engine::identity(install, host),
            times,
        })
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let read = api::Duration::from(text).to_std();
    read.ok_or_else(|| format!("{text:?} is no duration; write for example 10s or 500ms"))
}

/// Who leads, read when asked.
#[derive(Debug)]
pub(crate) struct Leader {
    pub(crate) leadership: Leadership,
    pub(crate) me: String,
}

impl Collector for Leader {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let standing = self.leadership.standing();
        let leads = matches!(standing, Standing::Leading | Standing::Without(_));
        let gauge = ConstGauge::new(i64::from(leads));
        let help = "1 if this process acts, 0 if it stands by";
        gauge.encode(encoder.encode_descriptor("nacre_leader", help, None, gauge.metric_type())?)?;
        let holder = match &standing {
            Standing::Leading => &self.me,
            Standing::Behind(holder) => holder,
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
        let seat = given(&[]).unwrap().lease.seat("velero", "host").unwrap();
        assert_eq!((seat.namespace.as_str(), seat.name.as_str()), ("kube-system", "nacre"));
        assert!(seat.me.starts_with("velero/host_"), "{}", seat.me);
        assert!(seat.times.duration + 3 * seat.times.retry < std::time::Duration::from_secs(15));
    }

    #[test]
    fn times_that_make_no_sense_are_refused_in_words() {
        let words = given(&["--lease-duration=soon"]).unwrap_err().to_string();
        assert!(words.contains("10s or 500ms"), "{words}");
        let args = given(&["--lease-duration=2s"]).unwrap();
        let words = args.lease.seat("velero", "host").unwrap_err().to_string();
        assert!(words.contains("at most 1s") && words.contains("--lease-renew-period"), "{words}");
    }
}
