//! What the aggregation controller makes of KubeVirt's roles.

use crate::{
    fixtures::{labelled, standard_roles},
    roles::{Era, MIGRATE, Role},
};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::ResourceExt as _;
use planner::kubevirt::Power;
use planner::rbac::aggregate::{settled_rules, sources};

fn powers(name: &str, all: &[ClusterRole]) -> Vec<Power> {
    Power::given_by(&settled_rules(all.iter().find(|role| role.name_any() == name).unwrap(), all))
}

#[test]
fn edit_flows_into_admin_but_not_back() {
    let mut all = standard_roles(Era::Current);
    assert_eq!(powers("admin", &all), []);
    labelled(&mut all, MIGRATE, "rbac.authorization.k8s.io/aggregate-to-edit", "true");
    assert_eq!(powers("edit", &all), Power::ALL);
    assert_eq!(powers("admin", &all), Power::ALL);
    assert_eq!(powers("view", &all), []);

    let mut all = standard_roles(Era::Current);
    labelled(&mut all, MIGRATE, "rbac.authorization.k8s.io/aggregate-to-admin", "true");
    assert_eq!(powers("admin", &all), Power::ALL);
    assert_eq!(powers("edit", &all), []);
}

#[test]
fn only_the_word_true_aggregates() {
    let mut all = standard_roles(Era::Current);
    labelled(&mut all, MIGRATE, "rbac.authorization.k8s.io/aggregate-to-admin", "True");
    assert_eq!(powers("admin", &all), []);
}

#[test]
fn the_way_to_a_right_is_told_step_by_step() {
    let all = standard_roles(Era::Old);
    let admin = all.iter().find(|role| role.name_any() == "admin").unwrap();
    let edit = sources(admin, &all).into_iter().find(|source| source.role.name_any() == Role::Edit.name());
    let steps: Vec<_> =
        edit.unwrap().via.into_iter().map(|via| format!("{} ({})", via.role, via.label)).collect();
    assert_eq!(
        steps,
        [
            "edit (rbac.authorization.k8s.io/aggregate-to-admin=true)",
            "kubevirt.io:edit (rbac.authorization.k8s.io/aggregate-to-edit=true)"
        ]
    );
}

#[test]
fn roles_that_select_each_other_do_not_hang() {
    let mut all = standard_roles(Era::Current);
    labelled(&mut all, "admin", "rbac.authorization.k8s.io/aggregate-to-view", "true");
    assert_eq!(powers("view", &all), []);
}
