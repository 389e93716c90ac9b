//! Which backups of a schedule are kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which of the good backups of a schedule are kept. One is kept if any of these says so; one that is not set keeps none.
/// Days and hours are those of the schedule's time zone, and of a day, an hour and so on the newest backup counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename_all = "camelCase")]
pub struct Retention {
    /// So many of the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_last: Option<u32>,
    /// One for each of so many hours that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_hourly: Option<u32>,
    /// One for each of so many days that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_daily: Option<u32>,
    /// One for each of so many weeks, from Monday, that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_weekly: Option<u32>,
    /// One for each of so many months that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_monthly: Option<u32>,
    /// One for each of so many years that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_yearly: Option<u32>,
    /// All that are at most so much older than the newest: a number and s, m, h, d or w, for example 30d or 36h.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_within: Option<String>,
}
