use k8s_openapi::api::rbac::v1::{PolicyRule, Role};
use kube::ResourceExt as _;
use planner::rbac::aggregate;

use super::*;
use crate::{
    fixtures::{bound, bound_everywhere, cluster_role, labelled, standard_roles},
    indirect::{Detour, roundabouts},
    roles::{Era, MIGRATE},
};
use planner::rbac::rules::rule;

fn cluster(era: Era) -> Rbac {
    Rbac { cluster_roles: standard_roles(era), ..Rbac::default() }
}

fn lines(rbac: &Rbac) -> Vec<String> {
    rights(rbac)
        .iter()
        .map(|right| {
            let place = right.scope.namespace().unwrap_or("everywhere");
            format!("{} {} {place}", right.who, right.power.name())
        })
        .collect()
}

fn powers_of(rbac: &Rbac, who: &str) -> Vec<Power> {
    rights(rbac).into_iter().filter(|right| right.who.to_string() == who).map(|right| right.power).collect()
}

#[test]
fn before_the_upgrade_admin_has_one_verb_more_than_edit() {
    let mut rbac = cluster(Era::Old);
    rbac.role_bindings = vec![
        bound("shop", "a", "admin", &["user:ann"]),
        bound("shop", "e", "edit", &["user:ed"]),
        bound("shop", "v", "view", &["user:vic"]),
    ];
    assert_eq!(powers_of(&rbac, "user ann"), Power::ALL);
    assert_eq!(
        powers_of(&rbac, "user ed"),
        [Power::Create, Power::Update, Power::Patch, Power::Delete, Power::Migrate]
    );
    assert_eq!(powers_of(&rbac, "user vic"), []);
}

#[test]
fn after_it_neither_has_any_until_granted() {
    let mut rbac = cluster(Era::Current);
    rbac.role_bindings = vec![
        bound("shop", "a", "admin", &["user:ann"]),
        bound("shop", "direct", "kubevirt.io:admin", &["user:dan"]),
    ];
    assert_eq!(lines(&rbac), Vec::<String>::new());
    rbac.role_bindings.push(bound("shop", "m", MIGRATE, &["user:ann", "group:ops", "sa:shop:robot"]));
    assert_eq!(powers_of(&rbac, "user ann"), Power::ALL);
    assert_eq!(powers_of(&rbac, "group ops"), Power::ALL);
    assert_eq!(powers_of(&rbac, "serviceaccount shop:robot"), Power::ALL);
}

#[test]
fn the_path_names_binding_role_rule_and_label() {
    let mut rbac = cluster(Era::Current);
    labelled(&mut rbac.cluster_roles, MIGRATE, "rbac.authorization.k8s.io/aggregate-to-edit", "true");
    rbac.cluster_roles = aggregate::settle(&rbac.cluster_roles);
    rbac.role_bindings = vec![bound("shop", "owners", "admin", &["user:ann"])];
    let right = rights(&rbac).into_iter().find(|right| right.power == Power::Migrate).unwrap();
    insta::assert_json_snapshot!(right.paths, @r#"
    [
      {
        "binding": "rolebinding/owners",
        "role": "clusterrole/admin",
        "via": [
          {
            "role": "edit",
            "label": "rbac.authorization.k8s.io/aggregate-to-admin=true"
          },
          {
            "role": "kubevirt.io:migrate",
            "label": "rbac.authorization.k8s.io/aggregate-to-edit=true"
          }
        ],
        "rule": "update virtualmachines/migrate.subresources.kubevirt.io"
      }
    ]
    "#);
}

#[test]
fn a_right_the_aggregation_controller_has_yet_to_take_away_is_still_a_right() {
    let mut rbac = cluster(Era::Current);
    let old_admin = standard_roles(Era::Old).into_iter().find(|role| role.name_any() == "admin").unwrap();
    for role in rbac.cluster_roles.iter_mut().filter(|role| role.name_any() == "admin") {
        role.rules.clone_from(&old_admin.rules);
    }
    rbac.role_bindings = vec![bound("shop", "owners", "admin", &["user:ann"])];
    assert_eq!(powers_of(&rbac, "user ann"), Power::ALL);
    assert!(rights(&rbac).iter().flat_map(|right| &right.paths).all(|path| path.via.is_empty()));
}

#[test]
fn wildcards_names_and_hoarded_roles_are_found() {
    let mut rbac = cluster(Era::Current);
    rbac.cluster_roles.push(cluster_role("all-kubevirt", vec![rule(&["kubevirt.io"], &["*"], &["*"])]));
    let narrow = PolicyRule {
        resource_names: Some(vec!["mig-1".to_owned()]),
        ..rule(&["kubevirt.io"], &["virtualmachineinstancemigrations"], &["delete"])
    };
    let mut hoard = Role { rules: Some(vec![narrow]), ..Role::default() };
    hoard.metadata.name = Some("mine".to_owned());
    hoard.metadata.namespace = Some("shop".to_owned());
    rbac.roles = vec![hoard];
    rbac.role_bindings = vec![
        bound("shop", "mine", "role/mine", &["user:hoarder"]),
        bound("other", "mine", "role/mine", &["user:elsewhere"]),
        bound("shop", "wild", "all-kubevirt", &["group:wild"]),
    ];
    rbac.cluster_role_bindings = vec![bound_everywhere("root", "cluster-admin", &["group:system:masters"])];
    assert_eq!(powers_of(&rbac, "user elsewhere"), []);
    assert_eq!(powers_of(&rbac, "group system:masters"), Power::ALL);
    // The group of machines is not the group of what is done to them: five of six.
    assert_eq!(powers_of(&rbac, "group wild"), Power::ALL[..5]);
    let right = rights(&rbac).into_iter().find(|right| right.who.to_string() == "user hoarder").unwrap();
    assert_eq!((right.power, right.whole()), (Power::Delete, false));
    assert_eq!(right.paths[0].only, ["mig-1"]);
}

#[test]
fn a_grant_to_a_service_account_is_a_detour_for_whoever_can_act_as_it() {
    let mut rbac = cluster(Era::Current);
    rbac.role_bindings = vec![bound("shop", "e", "edit", &["user:ed"])];
    let detours = |rbac: &Rbac| -> Vec<Detour> {
        roundabouts(rbac, &rights(rbac)).into_iter().map(|found| found.detour).collect()
    };
    assert_eq!(detours(&rbac), [Detour::Evict]);
    rbac.role_bindings.push(bound("shop", "m", MIGRATE, &["sa:shop:robot"]));
    assert_eq!(
        detours(&rbac),
        [
            Detour::Evict,
            Detour::ActAsServiceAccount,
            Detour::TokenOfServiceAccount,
            Detour::RunAsServiceAccount
        ]
    );
}

#[test]
fn a_right_serves_members_of_its_group_in_its_namespace() {
    let mut rbac = cluster(Era::Current);
    rbac.role_bindings = vec![bound("shop", "m", MIGRATE, &["group:system:serviceaccounts:ops"])];
    let right = rights(&rbac).into_iter().next().unwrap();
    assert!(right.serves(&Who::account("ops", "robot").identity(), "shop"));
    assert!(!right.serves(&Who::account("ops", "robot").identity(), "other"));
    assert!(!right.serves(&Who::account("shop", "robot").identity(), "shop"));
}
