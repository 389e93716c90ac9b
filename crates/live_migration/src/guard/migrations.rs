//! Migrations that drains and upgrades depend on: tenants neither end nor change nor imitate them.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::{cel::INFRASTRUCTURE, stamp::REQUESTED_BY};
use planner::kubevirt::{KUBEVIRT, MIGRATIONS};
use planner::vap::{
    Draft,
    cel::{LEAVING, at, carried_over, list},
};

/// Set by KubeVirt when a node is drained.
const EVACUATION: &str = "kubevirt.io/evacuationMigration";
/// Set by KubeVirt when it upgrades itself, and when it hotplugs.
const WORKLOAD_UPDATE: &str = "kubevirt.io/workloadUpdateMigration";
/// Set by KubeVirt when a volume moves.
const VOLUME_UPDATE: &str = "kubevirt.io/volume-update-migration";
/// Made for KubeVirt's own tests; one of them replaces the image of the pod a migration goes to.
const TEST_PREFIX: &str = "kubevirt.io/func-test-";

/// G1: what infrastructure made, only infrastructure changes or deletes.
pub(super) fn protected() -> ValidatingAdmissionPolicy {
    let annotations = at("oldObject", &["metadata", "annotations"], "{}");
    let priority = at("oldObject", &["spec", "priority"], "''");
    // Before KubeVirt 1.7 there is no priority and an upgrade looks like a hotplug: then both are protected.
    let protected = format!(
        "variables.priority in ['system-critical', 'system-maintenance'] || '{EVACUATION}' in variables.annotations || \
         ('{WORKLOAD_UPDATE}' in variables.annotations && variables.priority != 'user-triggered')"
    );
    let parts: [(&[&str], &str); 6] = [
        (&["metadata", "annotations"], "{}"),
        (&["metadata", "labels"], "{}"),
        (&["metadata", "finalizers"], "[]"),
        (&["metadata", "ownerReferences"], "[]"),
        (&["spec"], "{}"),
        (&["status"], "{}"),
    ];
    let unchanged = parts
        .map(|(path, none)| format!("({}) == ({})", at("object", path, none), at("oldObject", path, none)))
        .join(" && ");
    let status = format!("{MIGRATIONS}/status");
    Draft::over("nacre-migration-protected", &["UPDATE", "DELETE"], &[(KUBEVIRT, &[MIGRATIONS, status.as_str()])])
        .only_if("not-infrastructure", format!("!{INFRASTRUCTURE}"))
        .with(LEAVING.0, LEAVING.1)
        .with("annotations", annotations)
        .with("priority", priority)
        .with("protected", protected)
        .demand(
            "request.operation != 'DELETE' || variables.leaving || !variables.protected",
            "this migration moves a machine for the cluster (a drain or an upgrade): only infrastructure may delete it",
        )
        .demand(
            format!("request.operation != 'UPDATE' || variables.leaving || !variables.protected || ({unchanged})"),
            "this migration moves a machine for the cluster (a drain or an upgrade): only infrastructure may change it",
        )
        .done()
}

/// G2: nobody else makes a migration that looks like infrastructure's, or chooses nodes like it.
pub(super) fn marks() -> ValidatingAdmissionPolicy {
    let reserved =
        format!("key in {} || key.startsWith('{TEST_PREFIX}')", list(&[EVACUATION, WORKLOAD_UPDATE]));
    let reserved_later = format!("{reserved} || key == '{REQUESTED_BY}'");
    let labels = format!("key == '{VOLUME_UPDATE}'");
    let both = |map: &str, reserved: &str| {
        let (new, old) = (format!("variables.{map}"), format!("variables.old_{map}"));
        format!("{} && {}", carried_over(&new, &old, reserved), carried_over(&old, &new, reserved))
    };
    let kept = format!(
        "(request.operation == 'CREATE' ? ({}) : ({})) && {}",
        both("annotations", &reserved),
        both("annotations", &reserved_later),
        both("labels", &labels)
    );
    let prefixes = ["kubevirt-evacuation-", "kubevirt-workload-update-"].map(|prefix| {
        format!("!variables.name.startsWith('{prefix}') && !variables.stem.startsWith('{prefix}')")
    });
    Draft::over("nacre-migration-marks", &["CREATE", "UPDATE"], &[(KUBEVIRT, &[MIGRATIONS])])
        .only_if("not-infrastructure", format!("!{INFRASTRUCTURE}"))
        .with("annotations", at("object", &["metadata", "annotations"], "{}"))
        .with("old_annotations", at("oldObject", &["metadata", "annotations"], "{}"))
        .with("labels", at("object", &["metadata", "labels"], "{}"))
        .with("old_labels", at("oldObject", &["metadata", "labels"], "{}"))
        .with("name", at("object", &["metadata", "name"], "''"))
        .with("stem", at("object", &["metadata", "generateName"], "''"))
        .with("priority", at("object", &["spec", "priority"], "''"))
        .with("old_priority", at("oldObject", &["spec", "priority"], "''"))
        .with("selector", at("object", &["spec", "addedNodeSelector"], "{}"))
        .with("old_selector", at("oldObject", &["spec", "addedNodeSelector"], "{}"))
        .demand(
            kept,
            "annotations and labels by which KubeVirt knows its own migrations, and those made for its tests, are not for users",
        )
        .demand(
            "variables.priority == variables.old_priority",
            "the priority of a migration is for infrastructure to set",
        )
        .demand(
            "size(variables.selector) == 0 || variables.selector == variables.old_selector",
            "spec.addedNodeSelector: only infrastructure chooses the nodes a machine goes to; leave the field out",
        )
        .demand(
            format!("request.operation != 'CREATE' || ({})", prefixes.join(" && ")),
            "names that begin like those of drains and upgrades are reserved for them",
        )
        .demand(
            format!(
                "request.operation != 'CREATE' || !('{REQUESTED_BY}' in variables.annotations) || \
                 variables.annotations['{REQUESTED_BY}'] == request.userInfo.username"
            ),
            "who asked for a migration is whoever asked for it",
        )
        .done()
}
