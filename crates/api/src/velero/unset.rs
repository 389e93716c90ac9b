//! A zero in a non-pointer field of Velero's means that nobody set it.

use serde::{Deserialize, Deserializer};

use super::{BackupHooks, Metadata, RestoreHooks};
use crate::Duration;

/// A type whose zero Go clients send without meaning it.
pub(super) trait Zero {
    fn is_zero(&self) -> bool;
}

impl Zero for String {
    fn is_zero(&self) -> bool {
        self.is_empty()
    }
}

impl Zero for bool {
    fn is_zero(&self) -> bool {
        !*self
    }
}

impl Zero for Duration {
    fn is_zero(&self) -> bool {
        Self::is_zero(self)
    }
}

impl Zero for BackupHooks {
    fn is_zero(&self) -> bool {
        self.resources.is_none()
    }
}

impl Zero for RestoreHooks {
    fn is_zero(&self) -> bool {
        self.resources.is_none()
    }
}

impl Zero for Metadata {
    fn is_zero(&self) -> bool {
        self.labels.is_none()
    }
}

/// Reads an optional field and forgets its zero.
pub(super) fn zero<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Zero,
{
    Ok(Option::<T>::deserialize(deserializer)?.filter(|value| !value.is_zero()))
}
