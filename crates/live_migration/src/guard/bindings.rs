//! The permission to migrate stays with whom an administrator gave it to.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::cel::MAY_BIND;
use crate::{
    bridge,
    grant::{EXPIRES, GRANT},
    roles::MIGRATE,
};
use planner::rbac::subject::RBAC;
use planner::vap::{
    Draft,
    cel::{at, list},
};

/// Velero holds every right, but what it restores was once somebody's to write: it may not hand out this one. Its account goes by that
/// name in every distribution, and whatever it restores carries its label.
const VELERO: &str = "(request.userInfo.username.startsWith('system:serviceaccount:') && \
                      request.userInfo.username.endsWith(':velero')) || \
                      ('velero.io/restore-name' in variables.labels && !('velero.io/restore-name' in variables.old_labels))";

/// G3: binding the right takes the right to bind it at cluster scope; having it is not enough.
pub(super) fn bindings() -> ValidatingAdmissionPolicy {
    let roles = list(&[MIGRATE, bridge::NAME, bridge::EDIT_NAME]);
    let same = |map: &str, key: &str| {
        let value = |map: &str| format!("('{key}' in variables.{map} ? variables.{map}['{key}'] : '')");
        format!("{} == {}", value(map), value(&format!("old_{map}")))
    };
    let narrower = format!(
        "oldObject != null && variables.subjects.all(subject, subject in variables.old_subjects) && {} && {}",
        same("labels", GRANT),
        same("annotations", EXPIRES)
    );
    with_marks(Draft::over(
        "nacre-migration-bindings",
        &["CREATE", "UPDATE"],
        &[(RBAC, &["rolebindings", "clusterrolebindings"])],
    ))
    .with("grants", format!("object.roleRef.kind == 'ClusterRole' && object.roleRef.name in {roles}"))
    .with("subjects", at("object", &["subjects"], "[]"))
    .with("old_subjects", at("oldObject", &["subjects"], "[]"))
    .with("annotations", at("object", &["metadata", "annotations"], "{}"))
    .with("old_annotations", at("oldObject", &["metadata", "annotations"], "{}"))
    .with("narrower", narrower)
    .demand(
        "!variables.grants || variables.narrower || !variables.velero",
        "a restore does not bring back the permission to migrate: grant it again",
    )
    .demand(
        format!("!variables.grants || variables.narrower || {MAY_BIND}"),
        "only who may bind kubevirt.io:migrate everywhere may grant it, or change when a grant ends",
    )
    .done()
}

/// G3, the other way: a role of one's own that says the same.
pub(super) fn own_roles() -> ValidatingAdmissionPolicy {
    let any = |field: &str, words: &[&str]| format!("rule.{field}.exists(word, word in {})", list(words));
    let objects = [
        any("apiGroups", &["kubevirt.io", "*"]),
        any("resources", &["virtualmachineinstancemigrations", "*"]),
        any("verbs", &["create", "update", "patch", "delete", "deletecollection", "*"]),
    ]
    .join(" && ");
    let requests = [
        any("apiGroups", &["subresources.kubevirt.io", "*"]),
        any("resources", &["virtualmachines/migrate", "*/migrate", "*"]),
        any("verbs", &["update", "*"]),
    ]
    .join(" && ");
    let holds = format!(
        "variables.rules.exists(rule, has(rule.apiGroups) && has(rule.resources) && (({objects}) || ({requests})))"
    );
    with_marks(Draft::over("nacre-migration-own-roles", &["CREATE", "UPDATE"], &[(RBAC, &["roles"])]))
        .with("rules", at("object", &["rules"], "[]"))
        .with("old_rules", at("oldObject", &["rules"], "[]"))
        .with("holds", holds)
        .with("unchanged", "oldObject != null && variables.rules == variables.old_rules")
        .demand(
            "!variables.holds || variables.unchanged || !variables.velero",
            "a restore does not bring back a role with the permission to migrate",
        )
        .demand(
            format!("!variables.holds || variables.unchanged || {MAY_BIND}"),
            "only who may bind kubevirt.io:migrate everywhere may put the permission to migrate into a role",
        )
        .done()
}

fn with_marks(draft: Draft) -> Draft {
    draft
        .with("labels", at("object", &["metadata", "labels"], "{}"))
        .with("old_labels", at("oldObject", &["metadata", "labels"], "{}"))
        .with("velero", VELERO)
}
