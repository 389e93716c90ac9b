//! When a schedule is due: cron expressions as Velero reads them.
//!
//! Everything that Go's robfig/cron accepts with `ParseStandard` is accepted and means the same (`fields`), with two
//! differences on purpose: when clocks change (`zone`), and `@every` with a duration of 0 or less, or a list without
//! anything in it, is refused: to robfig/cron these are every second, and never. `H` is accepted too, as Jenkins reads it,
//! and `L`, `W` and `#` as the library `cronexpr` does.

mod fields;
#[cfg(test)]
mod tests;
mod zone;

use std::cell::RefCell;
use std::fmt;

use cronexpr::{Crontab, FallbackTimezoneOption, ParseOptions, parse_crontab_with};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use api::Duration;

pub(crate) use zone::find as find_zone;

/// The shortest time between two runs of `@every`, as robfig/cron has it.
const SHORTEST: SignedDuration = SignedDuration::from_secs(1);

/// The times at which a schedule is due.
#[derive(Clone, Debug)]
pub struct Cron {
    rule: Rule,
    zone: TimeZone,
    /// The latest answers: one decision asks for the same few times again and again.
    answers: RefCell<Vec<(Timestamp, Option<Timestamp>)>>,
}

/// How many answers are kept.
const ANSWERS: usize = 4;

#[derive(Clone, Debug)]
enum Rule {
    /// At times of the day.
    Fields(Box<Fields>),
    /// Again and again after the same time, counted from here.
    Every(SignedDuration, Timestamp),
}

#[derive(Clone, Debug)]
struct Fields {
    /// The library's times, in UTC: they are read as the time of day in any zone.
    times: Crontab,
    /// Whether any hour will do, so that an hour that exists twice counts twice.
    any_hour: bool,
    /// Whether nacre chose the minute for the namespace.
    hashed: bool,
}

/// What a schedule is read with.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The time zone, if one is set apart from the expression.
    pub time_zone: Option<&'a str>,
    /// What `H` is chosen by: the uid of the namespace.
    pub hashed: &'a str,
    /// What `@every` counts from: when the schedule was created.
    pub anchor: Timestamp,
}

/// Why a schedule cannot be read, with what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The expression.
    Expression(String),
    /// The time zone next to it.
    TimeZone(String),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expression(why) | Self::TimeZone(why) => f.write_str(why),
        }
    }
}

impl Cron {
    /// Reads an expression.
    pub fn read(text: &str, setting: &Setting<'_>) -> Result<Self, Unreadable> {
        let (prefix, rest) = without_zone(text).map_err(Unreadable::Expression)?;
        if let (Some(prefix), Some(_)) = (prefix, setting.time_zone) {
            let why = format!("the schedule itself names the time zone {prefix:?}; leave one of them out");
            return Err(Unreadable::TimeZone(why));
        }
        let zone = match (prefix, setting.time_zone) {
            (Some(name), _) => find_zone(name).map_err(Unreadable::Expression)?,
            (None, Some(name)) => find_zone(name).map_err(Unreadable::TimeZone)?,
            (None, None) => TimeZone::UTC,
        };
        let rule = match rest.strip_prefix("@every ") {
            Some(every) => {
                Rule::Every(duration(every).map_err(Unreadable::Expression)?, whole(setting.anchor))
            }
            None => {
                Rule::Fields(Box::new(read_fields(rest, setting.hashed).map_err(Unreadable::Expression)?))
            }
        };
        Ok(Self { rule, zone, answers: RefCell::default() })
    }

    /// The next time it is due after this one; none if that is not within four years.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.rule {
            Rule::Every(every, anchor) => next_multiple(*every, *anchor, after),
            Rule::Fields(fields) => {
                let known = self.answers.borrow().iter().find(|(asked, _)| *asked == after).copied();
                if let Some((_, next)) = known {
                    return next;
                }
                let next = zone::next(fields, &self.zone, after);
                let mut answers = self.answers.borrow_mut();
                answers.truncate(ANSWERS - 1);
                answers.insert(0, (after, next));
                next
            }
        }
    }

    /// All times it is due after this one.
    pub fn after(&self, after: Timestamp) -> impl Iterator<Item = Timestamp> {
        std::iter::successors(self.next(after), |due| self.next(*due))
    }

    /// The last time it was due, later than `after` and not later than `until`.
    ///
    /// Found by halving the time between them, so that what it costs does not grow with how often it was due.
    pub fn latest(&self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let due_after = |second: i64| {
            let moment = Timestamp::from_second(second).ok()?;
            self.next(moment.max(after)).filter(|due| *due <= until)
        };
        let (mut low, mut high) = (after.as_second(), until.as_second());
        let mut found = self.next(after).filter(|due| *due <= until)?;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match due_after(middle) {
                Some(due) => (found, low) = (due, middle),
                None => high = middle,
            }
        }
        Some(found)
    }

    /// Its time zone.
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Whether it is due at the same times on all its days.
    pub(crate) fn has_days(&self) -> bool {
        matches!(self.rule, Rule::Fields(_))
    }

    /// Whether its starts differ between namespaces or schedules already, by minutes at least, so that there is no need to
    /// spread them.
    pub fn is_spread(&self) -> bool {
        match &self.rule {
            Rule::Every(..) => true,
            Rule::Fields(fields) => fields.hashed,
        }
    }
}

/// An expression without its time zone, and that.
fn without_zone(text: &str) -> Result<(Option<&str>, &str), String> {
    let Some(rest) = text.strip_prefix("CRON_TZ=").or_else(|| text.strip_prefix("TZ=")) else {
        return Ok((None, text.trim()));
    };
    match rest.split_once(' ') {
        Some((zone, rest)) => Ok((Some(zone), rest.trim())),
        None => Err("only a time zone is given; write the schedule after it".to_owned()),
    }
}

/// The words of robfig/cron, and what they stand for.
const WORDS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

fn read_fields(text: &str, hashed: &str) -> Result<Fields, String> {
    let word = WORDS.iter().find(|(word, _)| *word == text);
    let text = word.map_or(text, |(_, fields)| fields);
    if text.starts_with('@') {
        let words = WORDS.map(|(word, _)| word).join(", ");
        return Err(format!("{text:?} is not known; {words} and @every with a duration are"));
    }
    let fields::Normal { text: plain, any_hour, hashed: is_hashed } = fields::normal(text, hashed)?;
    let mut options = ParseOptions::default();
    options.fallback_timezone_option = FallbackTimezoneOption::UTC;
    // For an `H` next to `L`, `W` or `#` in one field, which is left to the library.
    options.hashed_value = Some(hash(hashed.as_bytes()));
    let times = parse_crontab_with(&plain, options).map_err(|error| {
        let why = error.to_string();
        let why = why.lines().last().unwrap_or_default().trim_start_matches([' ', '^']);
        format!("{text:?} is not a schedule ({why}); write for example \"0 2 * * *\", @daily or @every 6h")
    })?;
    Ok(Fields { times, any_hour, hashed: is_hashed })
}

fn duration(text: &str) -> Result<SignedDuration, String> {
    let given = Duration::from(text.trim());
    let nanos = given.nanos().filter(|nanos| *nanos > 0);
    let seconds = nanos.and_then(|nanos| i64::try_from(nanos / 1_000_000_000).ok());
    match seconds {
        Some(seconds) => Ok(SignedDuration::from_secs(seconds).max(SHORTEST)),
        None => Err(format!("{text:?} is not a duration; write for example @every 6h or @every 1h30m")),
    }
}

fn whole(moment: Timestamp) -> Timestamp {
    Timestamp::from_second(moment.as_second()).unwrap_or(moment)
}

fn next_multiple(every: SignedDuration, anchor: Timestamp, after: Timestamp) -> Option<Timestamp> {
    let passed = after.duration_since(anchor).as_secs();
    let many = passed.div_euclid(every.as_secs()).checked_add(1)?.max(1);
    anchor.checked_add(SignedDuration::from_secs(every.as_secs().checked_mul(many)?)).ok()
}

/// FNV-1a, 64 bits, and mixed once more, since its lowest bits alone are not well spread.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
}
