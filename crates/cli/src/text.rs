//! Formatting of times, numbers and untrusted text.

use jiff::Timestamp;

/// How long ago, as kubectl writes ages: two units at most, coarser the longer it is.
pub(crate) fn age(since: Timestamp, now: Timestamp) -> String {
    span(now.as_second() - since.as_second())
}

/// A number of seconds, as kubectl writes ages.
pub(crate) fn span(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: i64, unit: char, small: i64, rest: char| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{rest}"),
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, 'd', hours % 24, 'h'),
        _ => format!("{days}d"),
    }
}

/// A text without what a terminal would obey: somebody else may have written it.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// `1 error`, `2 errors`.
pub(crate) fn count(number: i64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// A number of bytes, in the unit that leaves few digits: `12 KiB`, `1.5 GiB`.
pub(crate) fn bytes(number: i64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut tenths = i128::from(number.max(0)) * 10;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    let (whole, rest) = (tenths / 10, tenths % 10);
    let unit = UNITS[unit];
    if rest == 0 || whole >= 10 { format!("{whole} {unit}") } else { format!("{whole}.{rest} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::{bytes, count, printable, span};

    #[test]
    fn bytes_have_few_digits() {
        let sizes = [0, 1023, 1024, 1536, 8 << 20, 3 << 29, 5 << 50];
        assert_eq!(sizes.map(bytes), ["0 B", "1023 B", "1 KiB", "1.5 KiB", "8 MiB", "1.5 GiB", "5120 TiB"]);
    }

    #[test]
    fn spans_read_like_kubectls() {
        let spans =
            [-3, 0, 119, 120, 130, 599, 600, 10_799, 10_800, 12_000, 28_800, 172_800, 180_000, 700_000];
        let words = spans.map(span);
        assert_eq!(
            words,
            [
                "0s", "0s", "119s", "2m", "2m10s", "9m59s", "10m", "179m", "3h", "3h20m", "8h", "2d", "2d2h",
                "8d"
            ]
        );
    }

    #[test]
    fn a_terminal_is_told_nothing_by_strangers() {
        assert_eq!(printable("a\u{1b}[2Jb\r\nc"), "a\u{fffd}[2Jb\u{fffd}\nc");
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!((count(1, "error"), count(0, "error")), ("1 error".into(), "0 errors".into()));
    }
}
