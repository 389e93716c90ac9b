//! What nacre writes onto a Velero object when it hands it over, so that a restart loses nothing of the order.

use std::fmt;
use std::str::FromStr;

/// On a Velero Backup or Restore: its [`Tag`].
pub const TAG: &str = "nacre.dev/queue-tag";

/// The weight of a namespace that the policy says nothing about.
pub const WEIGHT: u64 = 100;

/// No job costs less, in milliseconds: Velero writes times in whole seconds.
const LEAST: u64 = 1000;

/// Times beyond this are not nacre's: they leave no room to count on. It is 285 000 years.
pub(super) const HIGHEST: u64 = 1 << 53;

/// The turn of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The priority of its namespace.
    pub priority: u64,
    /// When it started, in the virtual time of that priority.
    pub start: u64,
    /// The virtual time since then: its start, or earlier if it passed somebody to keep a worker busy.
    pub time: u64,
    /// The weight of its namespace.
    pub weight: u64,
    /// How many milliseconds it is charged until it is over.
    pub charged: u64,
}

impl Tag {
    /// When a job that took this long is paid for, in virtual time.
    pub fn finish(&self, millis: u64) -> u64 {
        self.start.saturating_add(cost(millis, self.weight))
    }
}

/// What so much time of a worker costs a namespace of this weight.
pub fn cost(millis: u64, weight: u64) -> u64 {
    millis.max(LEAST).saturating_mul(WEIGHT) / weight.max(1)
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { priority, start, time, weight, charged } = self;
        write!(f, "{priority}/{start}/{weight}/{charged}")?;
        // Older versions of nacre know four numbers, and take no notice of five.
        if time == start { Ok(()) } else { write!(f, "/{time}") }
    }
}

/// A text that is no tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTag;

impl FromStr for Tag {
    type Err = NoTag;

    fn from_str(text: &str) -> Result<Self, NoTag> {
        let mut numbers = text.split('/').map(|part| part.parse::<u64>().map_err(|_| NoTag));
        let mut number = || numbers.next().unwrap_or(Err(NoTag));
        let (priority, start, weight, charged) = (number()?, number()?, number()?, number()?);
        let time = numbers.next().unwrap_or(Ok(start))?;
        let sound = start <= HIGHEST && time <= start && weight > 0 && numbers.next().is_none();
        if sound { Ok(Self { priority, start, time, weight, charged }) } else { Err(NoTag) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Tag, cost};

    #[test]
    fn a_tag_is_read_as_it_was_written_and_nothing_else_is_one() {
        let tag = Tag { priority: 3, start: 7000, time: 7000, weight: 250, charged: 9 };
        assert_eq!(tag.to_string(), "3/7000/250/9");
        let passed = Tag { time: 6000, ..tag };
        assert_eq!(passed.to_string(), "3/7000/250/9/6000");
        for tag in [tag, passed] {
            assert_eq!(tag.to_string().parse(), Ok(tag));
        }
        for text in [
            "",
            "1/2/3",
            "1/2/0/4",
            "1/2/3/4/3",
            "1/2/3/4/x",
            "1/2/3/4/1/1",
            "a/2/3/4",
            "1/-2/3/4",
            "1/9007199254740993/3/4",
        ] {
            assert!(text.parse::<Tag>().is_err(), "{text}");
        }
    }

    #[test]
    fn twice_the_weight_costs_half_and_nothing_is_free() {
        assert_eq!(cost(60_000, 100), 60_000);
        assert_eq!(cost(60_000, 200), 30_000);
        assert_eq!(cost(0, 100), 1000);
        assert_eq!(Tag { priority: 0, start: 5, time: 5, weight: 50, charged: 0 }.finish(2000), 4005);
    }
}
