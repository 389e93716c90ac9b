//! Flags and environment. The environment is OADP's operator's, the flags are the Go controller's.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::LazyLock;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::lease::LeaseArgs;

/// What `--version` prints.
static VERSION: LazyLock<String> = LazyLock::new(|| planner::version::text(option_env!("NACRE_COMMIT")));

/// Backup and restore for namespace owners, by way of Velero. With no arguments and WATCH_NAMESPACE set, runs the
/// controller.
#[derive(Clone, Debug, Parser)]
#[command(name = "nacre", version = VERSION.as_str(), about)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// The namespace Velero is installed in
    #[arg(long, env = "WATCH_NAMESPACE", global = true)]
    pub(crate) watch_namespace: Option<String>,

    /// How much to log: 0 (only fatal errors) to 6 (everything)
    #[arg(long, env = "LOG_LEVEL", default_value = "4", global = true)]
    pub(crate) log_level: String,

    /// How to log: json, or anything else for text
    #[arg(long, env = "LOG_FORMAT", default_value = "text", global = true)]
    pub(crate) log_format: String,

    /// Address of /metrics; 0 to disable
    #[arg(long, env = "METRICS_BIND_ADDRESS", default_value = ":8080", value_parser = address, global = true)]
    pub(crate) metrics_bind_address: Bind,

    /// Address of /livez, /readyz and /healthz; 0 to disable
    #[arg(long, env = "HEALTH_PROBE_BIND_ADDRESS", default_value = ":8081", value_parser = address, global = true)]
    pub(crate) health_probe_bind_address: Bind,

    /// Address of the validating webhook; 0 to disable
    #[arg(long, env = "WEBHOOK_BIND_ADDRESS", default_value = ":9443", value_parser = address)]
    pub(crate) webhook_bind_address: Bind,

    /// Lifetime of the webhook's certificate; it is renewed before it expires
    #[arg(long, env = "WEBHOOK_CERTIFICATE_LIFETIME", default_value = "2160h", value_parser = lifetime)]
    pub(crate) webhook_certificate_lifetime: Duration,

    /// Velero is for tenants alone and not cluster-admin: give it its permissions in tenants' namespaces
    #[arg(long, env = "FENCE", num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub(crate) fence: bool,

    /// Number of objects reconciled at the same time
    #[arg(long, default_value_t = 32)]
    pub(crate) workers: usize,

    /// The background task of this name panics when it starts: a test of what comes of it
    #[arg(long, hide = true, env = "NACRE_PANIC_TASK", global = true)]
    pub(crate) panic_task: Option<String>,

    #[command(flatten)]
    pub(crate) lease: LeaseArgs,

    /// Accepted for compatibility with the Go controller; there is always leader election
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true")]
    leader_elect: Option<bool>,

    /// Accepted for compatibility with the Go controller; has no effect
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true")]
    metrics_secure: Option<bool>,

    /// Accepted for compatibility with the Go controller; has no effect
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true")]
    enable_http2: Option<bool>,

    /// Accepted for compatibility with the Go controller; has no effect
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true")]
    zap_devel: Option<bool>,

    /// Accepted for compatibility with the Go controller; has no effect
    #[arg(long, hide = true)]
    zap_encoder: Option<String>,

    /// Accepted for compatibility with the Go controller; has no effect
    #[arg(long, hide = true)]
    zap_log_level: Option<String>,

    /// Accepted for compatibility with the Go controller; has no effect
    #[arg(long, hide = true)]
    zap_stacktrace_level: Option<String>,

    /// Accepted for compatibility with the Go controller; has no effect
    #[arg(long, hide = true)]
    zap_time_encoding: Option<String>,
}

/// Subcommands; without one, the program is the controller.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Replace OADP's operator: install, update and remove the controller as a DataProtectionApplication says
    Operator {
        /// The controller's image, if an application names none
        #[arg(long, env = "RELATED_IMAGE_NON_ADMIN_CONTROLLER")]
        image: Option<String>,
    },
    /// Serve the browser console: everybody signs in with their own token, and it has no permissions of its own
    Console {
        /// Flags of `kubectl nacre console --in-cluster`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

/// An address to listen on, or none.
pub(crate) type Bind = Option<SocketAddr>;

/// A certificate that lasts shorter than this could not be replaced in time.
const SHORTEST: Duration = Duration::from_secs(6);

/// Reads a duration as Velero writes them.
fn lifetime(text: &str) -> Result<Duration, String> {
    let read = api::Duration::from(text).to_std();
    read.filter(|lifetime| *lifetime >= SHORTEST)
        .ok_or_else(|| format!("{text:?} is no lifetime; write for example 2160h, and at least 6s"))
}

/// Reads `0`, `:8080`, `127.0.0.1:8080` or `[::1]:8080`.
fn address(text: &str) -> Result<Bind, String> {
    if text == "0" {
        return Ok(None);
    }
    if let Some(port) = text.strip_prefix(':') {
        let port: u16 = port.parse().map_err(|_| format!("{text:?} has no port; write for example :8080"))?;
        return Ok(Some((Ipv6Addr::UNSPECIFIED, port).into()));
    }
    text.parse()
        .map(Some)
        .map_err(|_| format!("{text:?} is no address; write for example :8080, 127.0.0.1:8080 or 0"))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::{Args, address, lifetime};

    #[test]
    fn the_version_is_that_of_nacre() {
        let version = Args::command().render_version();
        assert!(version.starts_with(concat!("nacre ", env!("CARGO_PKG_VERSION"), " (commit ")), "{version}");
        assert!(version.contains("Velero 1.14 to 1.18"), "{version}");
    }

    #[test]
    fn the_go_controllers_flags_are_taken() {
        let given = [
            "nacre",
            "--leader-elect",
            "--metrics-bind-address=0",
            "--zap-devel=true",
            "--enable-http2=false",
        ];
        let args = Args::try_parse_from(given).unwrap();
        assert_eq!(args.metrics_bind_address, None);
        assert!(Args::try_parse_from(["nacre"]).unwrap().health_probe_bind_address.is_some());
        assert!(args.command.is_none(), "no argument runs the controller");
        let given = ["nacre", "operator", "--watch-namespace=velero", "--image=mine:1"];
        let args = Args::try_parse_from(given).unwrap();
        assert_eq!(args.watch_namespace.as_deref(), Some("velero"));
        assert!(
            matches!(args.command, Some(super::Command::Operator { image: Some(image) }) if image == "mine:1")
        );
    }

    #[test]
    fn a_certificates_lifetime_is_read_and_bounded() {
        assert_eq!(lifetime("2160h").unwrap().as_secs(), 2160 * 3600);
        assert!(lifetime("5s").is_err() && lifetime("soon").is_err() && lifetime("-1h").is_err());
        assert!(Args::try_parse_from(["nacre"]).unwrap().webhook_bind_address.is_some());
    }

    #[test]
    fn addresses_are_read_as_go_writes_them() {
        assert_eq!(address(":8080").unwrap().unwrap().port(), 8080);
        assert_eq!(address("127.0.0.1:1").unwrap().unwrap().to_string(), "127.0.0.1:1");
        assert!(address("8080").is_err() && address(":x").is_err());
    }
}
