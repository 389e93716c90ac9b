//! Times and numbers as people say them.

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
        ..120 => format!("{seconds}s"),
        ..600 => two(minutes, 'm', seconds % 60, 's'),
        ..10_800 => format!("{minutes}m"),
        ..28_800 => two(hours, 'h', minutes % 60, 'm'),
        ..172_800 => format!("{hours}h"),
        ..691_200 => two(days, 'd', hours % 24, 'h'),
        _ => format!("{days}d"),
    }
}

/// `1 error`, `2 errors`.
pub(crate) fn count(number: i64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::{count, span};

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
    fn one_is_not_many() {
        assert_eq!((count(1, "error"), count(0, "error")), ("1 error".into(), "0 errors".into()));
    }
}
