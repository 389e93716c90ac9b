//! Logs.

use tracing::warn;
use tracing_subscriber::EnvFilter;

use crate::args::Args;

/// Starts logging to standard error as the environment says.
pub(crate) fn start(args: &Args) {
    let level = level(&args.log_level);
    // Libraries log one level lower: their info is our debug. The engine itself logs once which kinds it is not
    // permitted to watch.
    let filter = format!("{},kube_runtime::watcher=error,nacre={level},engine={level}", level_below(level));
    let log = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(std::io::stderr)
        .with_target(false);
    if args.log_format == "json" {
        log.json().init();
    } else {
        log.with_ansi(false).init();
    }
    if args.log_level.trim().parse::<u8>().is_ok_and(|given| given <= 6) || args.log_level.is_empty() {
        return;
    }
    warn!("LOG_LEVEL {:?} is not a number from 0 to 6; logging as if it were 4", args.log_level);
}

/// OADP's operator sets the log levels of logrus, the Go controller's logger.
fn level(text: &str) -> &'static str {
    match text.trim() {
        "0" | "1" | "2" => "error",
        "3" => "warn",
        "5" => "debug",
        "6" => "trace",
        _ => "info",
    }
}

fn level_below(level: &str) -> &'static str {
    match level {
        "trace" => "debug",
        "debug" => "info",
        "error" => "error",
        _ => "warn",
    }
}

#[cfg(test)]
mod tests {
    use super::level;

    #[test]
    fn levels_are_those_oadp_sets() {
        assert_eq!(
            [level("0"), level("3"), level("4"), level("6"), level(""), level("x")],
            ["error", "warn", "info", "trace", "info", "info"]
        );
    }
}
