//! Timeouts of hooks in the annotations of pods. Velero takes those instead of what a Backup or Restore says, so nacre
//! cannot cap them there, and nobody can cancel a hook that hangs: Velero's only worker waits for it.
//!
//! The administrators exempt a namespace with the label [`EXEMPT`]. Not covered: pods that were there before, and a hook
//! after a restore without a `wait-timeout`, which most pods leave out. Velero 1.18.3 waits for such a hook for ten minutes
//! (its resource timeout); older versions wait for ever.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use crate::vap::{
    Draft,
    cel::{at, list},
};

/// On a namespace whose pods may have any timeout. Only who may change all namespaces sets it.
pub(super) const EXEMPT: &str = "nacre.dev/any-hook-timeout";

/// The annotations in which Velero looks for timeouts.
const TIMEOUTS: [&str; 5] = [
    "pre.hook.backup.velero.io/timeout",
    "post.hook.backup.velero.io/timeout",
    "hook.backup.velero.io/timeout",
    "post.hook.restore.velero.io/exec-timeout",
    "post.hook.restore.velero.io/wait-timeout",
];

/// At most an hour, in the forms that people write. Anything else could be longer, or stand for "for ever".
const AT_MOST_AN_HOUR: &str = "^(([0-9]{1,3}|[12][0-9]{3}|3[0-5][0-9]{2}|3600)s|([0-9]|[1-5][0-9]|60)m\
                               |([0-9]|[1-5][0-9])m([0-9]|[1-5][0-9])s|1h|1h0m|1h0m0s|[0-9]{1,6}ms)$";

/// The timeouts of hooks in pods are at most an hour. Annotations can be written with a pod's status too.
pub(super) fn timeouts() -> ValidatingAdmissionPolicy {
    let keys = list(&TIMEOUTS);
    let annotations = at("object", &["metadata", "annotations"], "{}");
    Draft::over("nacre-hook-timeouts", &["CREATE", "UPDATE"], &[("", &["pods", "pods/status"])])
        .except_namespaces_with(EXEMPT)
        .only_if("has-a-timeout", format!("{keys}.exists(key, key in ({annotations}))"))
        .with("new", annotations)
        .with("old", at("oldObject", &["metadata", "annotations"], "{}"))
        .demand(
            format!(
                "{keys}.all(key, !(key in variables.new) || variables.new[key].matches('{AT_MOST_AN_HOUR}') \
                 || (key in variables.old && variables.old[key] == variables.new[key]))"
            ),
            "annotations for Velero's hooks (hook.backup.velero.io/timeout, hook.restore.velero.io/exec-timeout and \
             wait-timeout): a hook may take at most an hour, since every other backup and restore waits for it; \
             write for example 90s, 30m or 1h",
        )
        .done()
}
