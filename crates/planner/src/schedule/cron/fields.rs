//! The five fields, as robfig/cron reads them, in the notation of `cronexpr`.
//!
//! The two agree on single numbers, names, lists and ranges. They differ on when a field is a star, which decides
//! whether a day must fit one or both of the fields for days: to robfig/cron `*/2` is not, and `1,*` is. So each field is
//! written out as a list of numbers, or as a plain star. So is `H`, which stands for a number as in Jenkins: `cronexpr`
//! knows it alone, and chooses the same one for minute and hour.

use super::hash;

/// An expression that `cronexpr` reads as robfig/cron reads the original.
pub(super) struct Normal {
    pub(super) text: String,
    /// Whether any hour will do.
    pub(super) any_hour: bool,
    /// Whether the minute was left to choose: `H`, with more than one to choose from.
    pub(super) hashed: bool,
}

/// What an `H` chooses from: `many` numbers from `low` on, and from the chosen one every `step` until `high`.
struct Choice {
    low: u32,
    high: u32,
    step: u32,
    many: u32,
}

struct Field {
    name: &'static str,
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const FIELDS: [Field; 5] = [
    Field { name: "minute", min: 0, max: 59, names: &[] },
    Field { name: "hour", min: 0, max: 23, names: &[] },
    Field { name: "day of month", min: 1, max: 31, names: &[] },
    Field { name: "month", min: 1, max: 12, names: &MONTHS },
    Field { name: "day of week", min: 0, max: 6, names: &DAYS },
];
const MINUTE: usize = 0;
const HOUR: usize = 1;
/// The last day that every month has: `H` chooses none after it.
const LAST_DAY_OF_ALL: u32 = 28;

/// Letters that only `cronexpr` knows: a field with one of them is left to it. In names of days and months they stand
/// next to other letters.
const EXTENSIONS: [char; 3] = ['L', 'W', '#'];
/// A number that is chosen.
const CHOSEN: char = 'H';

/// `seed` is what numbers are chosen by.
pub(super) fn normal(text: &str, seed: &str) -> Result<Normal, String> {
    let given: Vec<_> = text.split_whitespace().collect();
    if given.len() != FIELDS.len() {
        return Err(format!(
            "{text:?} has {} fields; five are needed: minute, hour, day of month, month, day of week",
            given.len()
        ));
    }
    let hashed = FIELDS[MINUTE].is_chosen(given[MINUTE]);
    let fields: Result<Vec<_>, String> =
        FIELDS.iter().zip(&given).map(|(field, text)| field.normal(text, seed)).collect();
    let fields = fields?;
    Ok(Normal { any_hour: fields[HOUR] == "*", hashed, text: fields.join(" ") })
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', '-', '/', '(', ')', ' '])
}

impl Field {
    fn normal(&self, text: &str, seed: &str) -> Result<String, String> {
        if self.is_extended(text) {
            return Ok(text.to_owned());
        }
        let mut chosen = vec![false; self.max as usize + 1];
        let mut star = false;
        // Empty parts count for nothing, but there must be one that is not.
        if text.bytes().all(|byte| byte == b',') {
            return Err(self.wrong(text));
        }
        for part in text.split(',').filter(|part| !part.is_empty()) {
            match part.strip_prefix(CHOSEN) {
                Some(within) => self.choose(within, part, seed, &mut chosen)?,
                None => star |= self.part(part, &mut chosen)?,
            }
        }
        if star {
            return Ok("*".to_owned());
        }
        let numbers = chosen.iter().enumerate().filter(|(_, chosen)| **chosen);
        Ok(numbers.map(|(number, _)| number.to_string()).collect::<Vec<_>>().join(","))
    }

    fn is_extended(&self, text: &str) -> bool {
        let is_name = |part: &str| self.names.contains(&part.to_lowercase().as_str());
        parts(text).any(|part| !is_name(part) && part.contains(EXTENSIONS))
    }

    /// One part of a list: chooses its numbers, and says whether it is a star.
    fn part(&self, part: &str, chosen: &mut [bool]) -> Result<bool, String> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(self.number(step, part)?)),
            None => (part, None),
        };
        let (low, high, star) = match range.split_once('-') {
            _ if matches!(range, "*" | "?") => (self.min, self.max, true),
            // What is behind a star is not looked at.
            Some(("*" | "?", _)) => (self.min, self.max, true),
            Some((low, high)) => (self.value(low, part)?, self.value(high, part)?, false),
            // A number with a step begins a range that has no end.
            None => {
                let low = self.value(range, part)?;
                (low, if step.is_some() { self.max } else { low }, false)
            }
        };
        let step = step.unwrap_or(1);
        self.is_within(low, high, step).then_some(()).ok_or_else(|| self.wrong(part))?;
        for number in (low..=high).step_by(step as usize) {
            chosen[number as usize] = true;
        }
        Ok(star && step == 1)
    }

    /// `H`, `H(1-5)`, `H/15` or `H(0-29)/10`, without its letter: one number, or every so many from one on. The same for
    /// the same seed, and another in each field.
    fn choose(&self, within: &str, part: &str, seed: &str, chosen: &mut [bool]) -> Result<(), String> {
        let Choice { low, high, step, many } = self.choice(within, part)?;
        let choice = hash(format!("{seed}/{}", self.name).as_bytes()) % u64::from(many);
        let first = low + u32::try_from(choice).map_err(|_| self.wrong(part))?;
        for number in (first..=high).step_by(step as usize) {
            chosen[number as usize] = true;
        }
        Ok(())
    }

    fn choice(&self, within: &str, part: &str) -> Result<Choice, String> {
        let wrong = || self.wrong(part);
        let (range, step) = match within.split_once('/') {
            Some((range, step)) => (range, Some(self.number(step, part)?)),
            None => (within, None),
        };
        let (low, high) = if range.is_empty() {
            (self.min, if self.max == 31 { LAST_DAY_OF_ALL } else { self.max })
        } else {
            let range = range.strip_prefix('(').and_then(|range| range.strip_suffix(')'));
            let (low, high) = range.and_then(|range| range.split_once('-')).ok_or_else(wrong)?;
            (self.value(low, part)?, self.value(high, part)?)
        };
        self.is_within(low, high, step.unwrap_or(1)).then_some(()).ok_or_else(wrong)?;
        let all = high - low + 1;
        let step = step.unwrap_or(all);
        Ok(Choice { low, high, step, many: step.min(all) })
    }

    /// Whether this field differs between namespaces. `H(0-0)` and `H/1` leave nothing to choose, and neither does an `H`
    /// next to other numbers for those.
    fn is_chosen(&self, text: &str) -> bool {
        text.split(',').filter(|part| !part.is_empty()).all(|part| {
            let within = part.strip_prefix(CHOSEN);
            within.and_then(|within| self.choice(within, part).ok()).is_some_and(|choice| choice.many > 1)
        })
    }

    const fn is_within(&self, low: u32, high: u32, step: u32) -> bool {
        step > 0 && low <= high && low >= self.min && high <= self.max
    }

    fn value(&self, text: &str, part: &str) -> Result<u32, String> {
        let lower = text.to_lowercase();
        let named = self.names.iter().position(|name| *name == lower);
        match named.and_then(|at| u32::try_from(at).ok()) {
            Some(at) => Ok(at + self.min),
            // Other readers of cron count Sunday as both 0 and 7.
            None if text == "7" && self.max == 6 => Ok(0),
            None => self.number(text, part),
        }
    }

    fn number(&self, text: &str, part: &str) -> Result<u32, String> {
        let digits = text.strip_prefix('+').unwrap_or(text);
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|_| plain).ok_or_else(|| self.wrong(part))
    }

    fn wrong(&self, part: &str) -> String {
        let Self { name, min, max, .. } = self;
        format!("{part:?} is not a {name}; numbers from {min} to {max}, ranges, lists, steps and * are")
    }
}
