//! What an administrator allows of schedules, and which schedules namespaces get.

use std::time::Duration as Wait;

use api::velero::BackupSpec;
use api::{Duration, Retention};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Policy;
use super::problem::Severity::{Error, Warning};
use super::rules::{Finding, duration, enforced_backup, finding};
use crate::schedule::cron::{Cron, Setting};
use crate::schedule::{beyond_bounds, find_zone, retention};

/// What is allowed of schedules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulePolicy {
    /// The longest time by which starts are shifted, so that schedules with the same time do not start at once; 0 means
    /// not at all.
    pub spread: Duration,
    /// The shortest time between two runs; 0 means any. There is none by default: limits and fair turns hold for runs as
    /// for other backups, so that often is not too much.
    pub min_interval: Duration,
    /// How many schedules a namespace may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_per_namespace: Option<usize>,
    /// When runs may start, as `22:00-06:00`, with a time zone behind it if it is not UTC; empty for any time.
    pub windows: Vec<String>,
    /// How much is kept at least and at most.
    pub retention: RetentionBounds,
    /// Schedules for namespaces that have none of their own.
    pub defaults: Vec<DefaultSchedule>,
}

/// How much is kept at least and at most.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RetentionBounds {
    /// Nobody keeps less.
    pub min: Retention,
    /// Nobody keeps more. If anything is set here, schedules may not set fields that are not set here or in `min`.
    pub max: Retention,
}

/// A schedule for namespaces that have none of their own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DefaultSchedule {
    /// Its name.
    pub name: String,
    /// Which namespaces get it, by their labels.
    pub selector: LabelSelector,
    /// When it runs.
    pub schedule: String,
    /// The time zone of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// What is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// What is backed up, and how.
    pub backup_spec: BackupSpec,
}

impl Default for SchedulePolicy {
    fn default() -> Self {
        Self {
            spread: Duration::from("5m"),
            min_interval: Duration::from("0"),
            max_per_namespace: None,
            windows: Vec::new(),
            retention: RetentionBounds::default(),
            defaults: Vec::new(),
        }
    }
}

impl SchedulePolicy {
    /// The longest time by which starts are shifted.
    pub fn spread(&self) -> Wait {
        self.spread.to_std().unwrap_or_default()
    }

    /// The shortest time between two runs; none if any will do.
    pub fn min_interval(&self) -> Option<Wait> {
        self.min_interval.to_std().filter(|least| !least.is_zero())
    }

    /// When runs may start.
    pub fn windows(&self) -> Windows {
        Windows {
            any_time: self.windows.is_empty(),
            parts: self.windows.iter().filter_map(|text| Window::read(text)).collect(),
        }
    }
}

impl DefaultSchedule {
    /// Whether a namespace with these labels gets it.
    pub fn fits(&self, labels: &std::collections::BTreeMap<String, String>) -> bool {
        Selector::try_from(self.selector.clone()).is_ok_and(|selector| selector.matches(labels))
    }
}

/// The parts of a day in which runs may start.
#[derive(Clone, Debug)]
pub struct Windows {
    any_time: bool,
    parts: Vec<Window>,
}

impl Windows {
    /// Whether a run may start at this time.
    pub fn allow(&self, at: Timestamp) -> bool {
        self.any_time || self.parts.iter().any(|part| part.holds(at))
    }

    /// How long the part of the day lasts that this time is in; none if it is in none, or if any time will do.
    pub fn left(&self, at: Timestamp) -> Option<Wait> {
        self.parts.iter().filter(|part| part.holds(at)).map(|part| part.left(at)).max()
    }
}

/// A part of each day, which may go past midnight.
#[derive(Clone, Debug)]
struct Window {
    from: u32,
    until: u32,
    zone: TimeZone,
}

impl Window {
    /// Reads `22:00-06:00` or `22:00-06:00 Europe/Berlin`.
    fn read(text: &str) -> Option<Self> {
        let (times, zone) = text.split_once(' ').unwrap_or((text, "UTC"));
        let (from, until) = times.split_once('-')?;
        Some(Self { from: minutes(from)?, until: minutes(until)?, zone: find_zone(zone.trim()).ok()? })
    }

    fn holds(&self, at: Timestamp) -> bool {
        let time = at.to_zoned(self.zone.clone());
        let minute = u32::from(time.hour().unsigned_abs()) * 60 + u32::from(time.minute().unsigned_abs());
        if self.from < self.until {
            (self.from..self.until).contains(&minute)
        } else {
            minute >= self.from || minute < self.until
        }
    }

    /// The time from this moment, which is in it, to its end, also where clocks change in between.
    fn left(&self, at: Timestamp) -> Wait {
        const DAY: Wait = Wait::from_hours(24);
        if self.from == self.until {
            return DAY;
        }
        let time = at.to_zoned(self.zone.clone());
        let until = i64::from(self.until);
        let end = |days: i64| {
            let date = time.date().checked_add(jiff::Span::new().days(days)).ok()?;
            let end = date.at(0, 0, 0, 0).checked_add(jiff::Span::new().minutes(until)).ok()?;
            Some(self.zone.to_ambiguous_zoned(end).compatible().ok()?.timestamp())
        };
        let end = [0, 1].into_iter().filter_map(end).find(|end| *end > at);
        end.map_or(Wait::ZERO, |end| end.duration_since(at).unsigned_abs().min(DAY))
    }
}

fn minutes(text: &str) -> Option<u32> {
    let (hour, minute) = text.split_once(':')?;
    let number = |text: &str| text.parse::<u32>().ok().filter(|_| text.len() == 2);
    let (hour, minute) = (number(hour)?, number(minute)?);
    (hour < 24 && minute < 60 || (hour, minute) == (24, 0)).then_some(hour * 60 + minute)
}

/// What makes no sense in what a policy says about schedules.
pub(super) fn problems(policy: &Policy) -> Vec<Finding> {
    let SchedulePolicy { spread, min_interval, max_per_namespace: _, windows, retention, defaults } =
        &policy.schedules;
    let mut found: Vec<_> = duration("schedules.spread", spread).into_iter().collect();
    found.extend(duration("schedules.minInterval", min_interval));
    for (at, text) in windows.iter().enumerate().filter(|(_, text)| Window::read(text).is_none()) {
        let message = format!(
            "{text:?} is not a part of a day; write for example 22:00-06:00 or 22:00-06:00 Europe/Berlin"
        );
        found.push(finding(Error, format!("schedules.windows[{at}]"), message));
    }
    for (bound, of) in [("min", &retention.min), ("max", &retention.max)] {
        found.extend(kept(&format!("schedules.retention.{bound}"), of));
    }
    found.extend(bounds_contradict(retention));
    for (at, default) in defaults.iter().enumerate() {
        found.extend(of_default(&format!("schedules.defaults[{at}]"), default, policy));
    }
    found
}

fn kept(path: &str, of: &Retention) -> Option<Finding> {
    let text = of.keep_within.as_ref().filter(|text| retention::within(text).is_none())?;
    let message = format!("{text:?} is not a time; write for example 30d, 2w or 36h");
    Some(finding(Error, format!("{path}.keepWithin"), message))
}

fn bounds_contradict(RetentionBounds { min, max }: &RetentionBounds) -> Vec<Finding> {
    let numbers = [
        ("keepLast", min.keep_last, max.keep_last),
        ("keepHourly", min.keep_hourly, max.keep_hourly),
        ("keepDaily", min.keep_daily, max.keep_daily),
        ("keepWeekly", min.keep_weekly, max.keep_weekly),
        ("keepMonthly", min.keep_monthly, max.keep_monthly),
        ("keepYearly", min.keep_yearly, max.keep_yearly),
    ];
    let over = numbers.into_iter().filter(|(_, min, max)| min.zip(*max).is_some_and(|(min, max)| min > max));
    let long = |of: &Retention| of.keep_within.as_deref().and_then(retention::within);
    let longer = long(min).zip(long(max)).filter(|(min, max)| min > max).map(|_| "keepWithin");
    let message = "is more than schedules.retention.max allows: no schedule could satisfy both";
    let over = over.map(|(name, ..)| name).chain(longer);
    over.map(|name| finding(Error, format!("schedules.retention.min.{name}"), message)).collect()
}

fn of_default(path: &str, default: &DefaultSchedule, policy: &Policy) -> Vec<Finding> {
    let DefaultSchedule { name, selector, schedule, time_zone, retention, backup_spec } = default;
    let mut found = Vec::new();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let named = name.len() <= 63
        && name.starts_with(plain)
        && name.ends_with(plain)
        && name.chars().all(|c| plain(c) || c == '-');
    if !named {
        let message = format!("{name:?} is not a name; at most 63 small letters, digits and dashes are");
        found.push(finding(Error, format!("{path}.name"), message));
    }
    if Selector::try_from(selector.clone()).is_err() {
        let message =
            "cannot be understood; an operator is In or NotIn, with values, or Exists or DoesNotExist";
        found.push(finding(Error, format!("{path}.selector"), message));
    }
    let setting = Setting { time_zone: time_zone.as_deref(), hashed: "", anchor: Timestamp::UNIX_EPOCH };
    if let Err(why) = Cron::read(schedule, &setting) {
        found.push(finding(Error, format!("{path}.schedule"), why.to_string()));
    }
    found.extend(retention.as_ref().and_then(|of| kept(&format!("{path}.retention"), of)));
    let beyond = retention.as_ref().and_then(|of| beyond_bounds(of, &policy.schedules.retention));
    found.extend(beyond.map(|(field, why)| {
        finding(Warning, format!("{path}.retention.{field}"), format!("{why} (schedules.retention)"))
    }));
    found.extend(enforced_backup(&format!("{path}.backupSpec"), backup_spec, policy.backup.forbid_hooks));
    found
}
