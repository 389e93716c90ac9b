//! Machines that get in the way of every migration, on purpose or not.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::cel::INFRASTRUCTURE;
use planner::kubevirt::KUBEVIRT;
use planner::vap::{
    Draft,
    cel::{at, carried_over, list},
};

/// The policy that only ever warns.
pub(super) const EXTERNAL_EVICTION: &str = "nacre-migration-external-eviction";

const MACHINES: &[&str] =
    &["virtualmachines", "virtualmachineinstances", "virtualmachineinstancereplicasets"];

/// Where annotations of machines are written: on them, and in every template they are made from.
const PLACES: &[(&str, &[&str])] = &[
    ("own", &["metadata", "annotations"]),
    ("template", &["spec", "template", "metadata", "annotations"]),
    ("pool", &["spec", "virtualMachineTemplate", "metadata", "annotations"]),
    ("pool_template", &["spec", "virtualMachineTemplate", "spec", "template", "metadata", "annotations"]),
];

/// G5: annotations made for KubeVirt's own tests, which make migrations fail, and the one that lowers the priority of an evacuation.
pub(super) fn marks() -> ValidatingAdmissionPolicy {
    let reserved = format!(
        "key.startsWith('kubevirt.io/func-test-') || key in {}",
        list(&["kubevirt.io/testWorkloadUpdateMigrationAbortion", "kubevirt.io/eviction-source"])
    );
    let kinds: &[(&str, &[&str])] = &[(KUBEVIRT, MACHINES), ("pool.kubevirt.io", &["virtualmachinepools"])];
    let draft = Draft::over("nacre-migration-machine-marks", &["CREATE", "UPDATE"], kinds)
        .only_if("not-infrastructure", format!("!{INFRASTRUCTURE}"))
        .with("new", "dyn(object)")
        .with("old", "dyn(oldObject)");
    let draft = PLACES.iter().fold(draft, |draft, (name, path)| {
        draft
            .with(name, at("variables.new", path, "{}"))
            .with(&format!("old_{name}"), at("variables.old", path, "{}"))
    });
    // One that is there already never stands in the way of another change.
    let untouched: Vec<String> = PLACES
        .iter()
        .map(|(name, _)| {
            carried_over(&format!("variables.{name}"), &format!("variables.old_{name}"), &reserved)
        })
        .collect();
    draft
        .demand(
            untouched.join(" && "),
            "annotations that make migrations fail or lower their priority are for KubeVirt and its tests",
        )
        .done()
}

/// G6: a machine that leaves its eviction to somebody else holds up a drain for as long as that somebody likes.
pub(super) fn external_eviction() -> ValidatingAdmissionPolicy {
    let strategy = |object: &str| {
        let own = at(object, &["spec", "evictionStrategy"], "''");
        let template = at(object, &["spec", "template", "spec", "evictionStrategy"], "''");
        format!("[({own}), ({template})]")
    };
    Draft::over(EXTERNAL_EVICTION, &["CREATE", "UPDATE"], &[(KUBEVIRT, MACHINES)])
        .with("new", "dyn(object)")
        .with("old", "dyn(oldObject)")
        .with("strategies", strategy("variables.new"))
        .with("old_strategies", strategy("variables.old"))
        .demand(
            "!('External' in variables.strategies) || 'External' in variables.old_strategies",
            "evictionStrategy External: no drain moves this machine until an outside controller does",
        )
        .done()
}
