//! The five fields, as robfig/cron reads them, in the notation of `cronexpr`.
//!
//! The two agree on single numbers, names, lists and ranges. They differ on when a field is a star, which decides
//! whether a day must fit one or both of the fields for days: to robfig/cron `*/2` is not, and `1,*` is. So each field is
//! written out as a list of numbers, or as a plain star.

/// An expression that `cronexpr` reads as robfig/cron reads the original.
pub(super) struct Normal {
    pub(super) text: String,
    /// Whether any hour will do.
    pub(super) any_hour: bool,
    /// Whether a number is left to choose: `H`, and not in a name such as `THU#2`.
    pub(super) hashed: bool,
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
const HOUR: usize = 1;

/// Letters that only `cronexpr` knows: a field with one of them is left to it. In names of days and months they stand
/// next to other letters.
const EXTENSIONS: [char; 4] = ['H', 'L', 'W', '#'];

pub(super) fn normal(text: &str) -> Result<Normal, String> {
    let given: Vec<_> = text.split_whitespace().collect();
    if given.len() != FIELDS.len() {
        return Err(format!(
            "{text:?} has {} fields; five are needed: minute, hour, day of month, month, day of week",
            given.len()
        ));
    }
    let fields: Result<Vec<_>, String> =
        FIELDS.iter().zip(&given).map(|(field, text)| field.normal(text)).collect();
    let fields = fields?;
    let text = fields.join(" ");
    let hashed = parts(&text).any(|part| part == "H");
    Ok(Normal { any_hour: fields[HOUR] == "*", hashed, text })
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', '-', '/', '(', ')', ' '])
}

impl Field {
    fn normal(&self, text: &str) -> Result<String, String> {
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
            star |= self.part(part, &mut chosen)?;
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
        if step == 0 || low > high || low < self.min || high > self.max {
            return Err(self.wrong(part));
        }
        for number in (low..=high).step_by(step as usize) {
            chosen[number as usize] = true;
        }
        Ok(star && step == 1)
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
