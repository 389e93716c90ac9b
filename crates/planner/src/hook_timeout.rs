//! The longest a hook may take. Velero waits for each hook, and nobody can cancel one that hangs.

use api::Duration;
use api::velero::{ExecHook, ExecRestoreHook};

/// A command in a backup: without a timeout Velero stops it after 30 seconds.
pub(crate) fn exec(hook: ExecHook, limit: &Duration) -> ExecHook {
    ExecHook { timeout: at_most(hook.timeout, limit), ..hook }
}

/// A command in a restore: without a wait timeout Velero waits for the container for ever.
pub(crate) fn exec_restore(hook: ExecRestoreHook, limit: &Duration) -> ExecRestoreHook {
    let wait = hook.wait_timeout.filter(|wait| !wait.is_zero());
    let bounded = (!limit.is_zero()).then(|| limit.clone());
    ExecRestoreHook {
        exec_timeout: at_most(hook.exec_timeout, limit),
        wait_timeout: at_most(wait, limit).or(bounded),
        ..hook
    }
}

/// A timeout that is not longer than the limit. A negative one means for ever to Velero.
fn at_most(timeout: Option<Duration>, limit: &Duration) -> Option<Duration> {
    let Some(longest) = limit.nanos().filter(|limit| *limit > 0) else { return timeout };
    let fine = |timeout: &Duration| timeout.nanos().is_some_and(|nanos| (0..=longest).contains(&nanos));
    Some(timeout?).map(|timeout| if fine(&timeout) { timeout } else { limit.clone() })
}

#[cfg(test)]
mod tests {
    use api::Duration;
    use api::velero::{ExecHook, ExecRestoreHook};

    use super::{exec, exec_restore};

    fn of(text: &str) -> Option<Duration> {
        (!text.is_empty()).then(|| Duration::from(text))
    }

    /// F2: a hook that never ends, and with it Velero's only worker
    /// H7: a hook with a timeout of weeks, or with none
    /// planted: a policy without the limit
    #[test]
    fn f2_h7_a_command_in_a_backup_takes_no_longer_than_the_limit() {
        let capped = |timeout, limit: &str| {
            exec(ExecHook { timeout, ..ExecHook::default() }, &Duration::from(limit)).timeout
        };
        assert_eq!(capped(of("5m"), "10m"), of("5m"));
        assert_eq!(capped(of("11m"), "10m"), of("10m"));
        assert_eq!(capped(of("-1s"), "10m"), of("10m"), "Velero takes it for no limit at all");
        assert_eq!(capped(of("soon"), "10m"), of("10m"));
        assert_eq!(capped(None, "10m"), None, "Velero stops it after 30 seconds");
        assert_eq!(capped(of("11m"), "0"), of("11m"), "the policy sets no limit");
    }

    /// F2
    /// H7
    /// planted: a policy without the limit
    #[test]
    fn f2_h7_a_command_in_a_restore_does_not_wait_for_ever() {
        let capped = |exec_timeout, wait_timeout, limit: &str| {
            let hook = ExecRestoreHook { exec_timeout, wait_timeout, ..ExecRestoreHook::default() };
            let hook = exec_restore(hook, &Duration::from(limit));
            (hook.exec_timeout, hook.wait_timeout)
        };
        assert_eq!(capped(None, None, "10m"), (None, of("10m")));
        assert_eq!(capped(of("1h"), of("0"), "10m"), (of("10m"), of("10m")));
        assert_eq!(capped(of("1m"), of("-1s"), "10m"), (of("1m"), of("10m")));
        assert_eq!(capped(of("1m"), of("2m"), "10m"), (of("1m"), of("2m")));
        assert_eq!(capped(None, None, "0"), (None, None));
    }
}
