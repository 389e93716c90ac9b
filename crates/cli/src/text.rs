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

#[cfg(test)]
mod tests {
    use super::{count, printable, span};

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
