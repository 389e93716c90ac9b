//! Durations as Go writes them: `720h`, `1h30m`, `1.5s`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A duration in Go's notation, kept as it was written: one that cannot be read is for whoever validates to
/// refuse, and must not make the whole object unreadable. Two are equal if they last equally long.
#[derive(Clone, Debug, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Duration(String);

impl Duration {
    /// How long it lasts in nanoseconds, if it is a duration at all.
    pub fn nanos(&self) -> Option<i128> {
        parse(&self.0)
    }

    /// The same as the standard library has it; none if unreadable or negative.
    pub fn to_std(&self) -> Option<std::time::Duration> {
        let nanos = u64::try_from(self.nanos()?).ok()?;
        Some(std::time::Duration::from_nanos(nanos))
    }

    /// Whether it is a zero, which in Velero's non-pointer fields means "not set".
    pub fn is_zero(&self) -> bool {
        self.nanos() == Some(0)
    }
}

impl From<&str> for Duration {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq for Duration {
    fn eq(&self, other: &Self) -> bool {
        match (self.nanos(), other.nanos()) {
            (Some(mine), Some(theirs)) => mine == theirs,
            _ => self.0 == other.0,
        }
    }
}

/// Go's own limit: an `int64` of nanoseconds, about 292 years.
const LONGEST: i128 = i64::MAX as i128;

fn parse(text: &str) -> Option<i128> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let number_ends = rest.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|&end| end > 0)?;
        let (number, after) = rest.split_at(number_ends);
        let unit_ends = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_ends);
        total = total.checked_add(amount(number, nanos_of(unit)?)?).filter(|&sum| sum <= LONGEST)?;
        rest = after;
    }
    (!text.is_empty() && text != "-" && text != "+").then_some(sign * total)
}

/// `number` may have one fraction; what lies below a nanosecond is dropped, as Go does.
fn amount(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut part: i128 = 0;
    let mut scale = unit;
    for digit in fraction.bytes() {
        scale /= 10;
        part += i128::from(digit - b'0') * scale;
    }
    whole.checked_mul(unit)?.checked_add(part)
}

fn nanos_of(unit: &str) -> Option<i128> {
    Some(match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::Duration;

    fn nanos(text: &str) -> Option<i128> {
        Duration::from(text).nanos()
    }

    #[test]
    fn reads_what_go_writes() {
        assert_eq!(nanos("720h0m0s"), Some(720 * 3_600_000_000_000));
        assert_eq!(nanos("1h30m"), Some(5_400_000_000_000));
        assert_eq!(nanos("1.5s"), Some(1_500_000_000));
        assert_eq!(nanos(".5s"), Some(500_000_000));
        assert_eq!(nanos("-2m"), Some(-120_000_000_000));
        assert_eq!(nanos("0"), Some(0));
        assert_eq!(nanos("0s"), Some(0));
        assert_eq!(nanos("10\u{b5}s"), Some(10_000));
    }

    #[test]
    fn refuses_what_go_refuses() {
        for text in ["", "-", "+", "5", "1d", "h", ".s", "1.2.3s", "1h x", " 1h", "1h-2m", "999999999999h"] {
            assert_eq!(nanos(text), None, "{text:?}");
        }
    }

    #[test]
    fn equal_means_equally_long() {
        assert_eq!(Duration::from("24h"), Duration::from("24h0m0s"));
        assert_ne!(Duration::from("24h"), Duration::from("23h"));
        assert_eq!(Duration::from("soon"), Duration::from("soon"));
        assert_ne!(Duration::from("soon"), Duration::from("24h"));
    }

    #[test]
    fn zero_is_zero_however_written() {
        assert!(Duration::from("0h0m").is_zero());
        assert!(!Duration::from("never").is_zero());
        assert!(Duration::from("-1h").to_std().is_none());
    }
}
