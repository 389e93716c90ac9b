use jiff::ToSpan;

use super::*;
use crate::{
    fixtures::{bound, bound_everywhere, standard_roles},
    roles::Era,
};
use planner::kubevirt::Power;

const NOON: Timestamp = Timestamp::UNIX_EPOCH;

fn rbac() -> Rbac {
    Rbac { cluster_roles: standard_roles(Era::Current), ..Rbac::default() }
}

fn request(who: &[Who]) -> GrantRequest {
    GrantRequest {
        who: who.to_vec(),
        scope: Scope::Namespace("shop".to_owned()),
        expires: None,
        force: false,
    }
}

fn ann() -> Who {
    Who::User("ann".to_owned())
}

/// The cluster with what a plan creates in it.
fn granted(request: &GrantRequest, mut rbac: Rbac) -> Rbac {
    for action in decide(request, &rbac, NOON).actions {
        let Action::Create(object) = action else { panic!("{action:?}") };
        match object.kind {
            Kind::RoleBinding => rbac.role_bindings.push(serde_json::from_value(object.body).unwrap()),
            _ => rbac.cluster_role_bindings.push(serde_json::from_value(object.body).unwrap()),
        }
    }
    rbac
}

#[test]
fn a_grant_is_one_binding_marked_as_ours_and_kept_out_of_backups() {
    let plan = decide(&GrantRequest { expires: Some(NOON + 24.hours()), ..request(&[ann()]) }, &rbac(), NOON);
    let [Action::Create(object)] = plan.actions.as_slice() else { panic!("{plan:?}") };
    insta::assert_json_snapshot!(object.body, @r#"
    {
      "apiVersion": "rbac.authorization.k8s.io/v1",
      "kind": "RoleBinding",
      "metadata": {
        "annotations": {
          "nacre.dev/expires": "1970-01-02T00:00:00Z"
        },
        "labels": {
          "nacre.dev/migration-grant": "true",
          "velero.io/exclude-from-backup": "true"
        },
        "name": "nacre:migrate:user:ann",
        "namespace": "shop"
      },
      "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "kubevirt.io:migrate"
      },
      "subjects": [
        {
          "apiGroup": "rbac.authorization.k8s.io",
          "kind": "User",
          "name": "ann"
        }
      ]
    }
    "#);
}

#[test]
fn granting_again_changes_nothing_and_a_new_end_is_one_patch() {
    let first = request(&[ann(), Who::account("ops", "robot")]);
    let after = granted(&first, rbac());
    assert_eq!(decide(&first, &after, NOON), Plan::done());
    let longer = GrantRequest { expires: Some(NOON + 1.hour()), ..first };
    let plan = decide(&longer, &after, NOON);
    assert_eq!(plan.actions.len(), 2);
    let Action::Patch(_, patch) = &plan.actions[0] else { panic!("{plan:?}") };
    assert_eq!(patch["metadata"]["annotations"][EXPIRES], "1970-01-01T01:00:00Z");
}

#[test]
fn crowds_are_refused_unless_forced() {
    for crowd in [
        "system:authenticated",
        "system:unauthenticated",
        "system:serviceaccounts",
        "system:serviceaccounts:shop",
    ] {
        let request = request(&[Who::Group(crowd.to_owned())]);
        assert_eq!(refusals(&request, &rbac(), NOON).len(), 1, "{crowd}");
        assert_eq!(decide(&request, &rbac(), NOON), Plan::done());
        assert_eq!(decide(&GrantRequest { force: true, ..request }, &rbac(), NOON).actions.len(), 1);
    }
    assert!(refusals(&request(&[Who::Group("devs".to_owned())]), &rbac(), NOON).is_empty());
}

#[test]
fn a_grant_that_is_over_before_it_begins_is_refused() {
    let request = GrantRequest { expires: Some(NOON), ..request(&[ann()]) };
    assert_eq!(refusals(&request, &rbac(), NOON), ["the grant would end before it begins"]);
}

#[test]
fn somebody_elses_binding_of_that_name_is_not_overwritten() {
    let mut rbac = rbac();
    rbac.role_bindings = vec![bound("shop", &binding_name(&ann()), "view", &["user:ann"])];
    assert_eq!(refusals(&request(&[ann()]), &rbac, NOON).len(), 1);
    rbac.role_bindings[0].labels_mut().insert(GRANT.to_owned(), "true".to_owned());
    let plan = decide(&request(&[ann()]), &rbac, NOON);
    assert!(matches!(plan.actions.as_slice(), [Action::Delete(_), Action::Create(_)]), "{plan:?}");
}

#[test]
fn a_service_account_among_tenants_is_warned_about_with_names() {
    let mut rbac = rbac();
    rbac.role_bindings = vec![bound("shop", "editors", "edit", &["user:ed"])];
    assert_eq!(
        warnings(&request(&[Who::account("shop", "robot")]), &rbac),
        [
            "serviceaccount shop:robot lives in a tenant's namespace: user ed can act as it (impersonation, tokens, pods) \
          and so can migrate too"
        ]
    );
    assert!(warnings(&request(&[Who::account("ops", "robot"), ann()]), &rbac).is_empty());
}

#[test]
fn an_end_that_nobody_will_see_to_is_warned_about() {
    let until = GrantRequest { expires: Some(NOON + 1.hour()), ..request(&[ann()]) };
    assert_eq!(warnings(&until, &rbac()).len(), 1);
    let mut kept = rbac();
    kept.cluster_role_bindings = vec![bound_everywhere(access::NAME, access::NAME, &["sa:nacre:nacre"])];
    assert!(warnings(&until, &kept).is_empty());
}

#[test]
fn names_never_collide() {
    let name = |user: &str| binding_name(&Who::User(user.to_owned()));
    assert_ne!(name("a/b"), name("a_2fb"));
    assert_eq!(name("https://idp/u%1"), "nacre:migrate:user:https:_2f_2fidp_2fu_251");
}

#[test]
fn revoking_takes_hand_made_bindings_too_and_spares_the_other_subjects() {
    let mut rbac = granted(&request(&[ann()]), rbac());
    rbac.role_bindings.push(bound("shop", "kvmigrate", MIGRATE, &["user:ann", "group:ops"]));
    rbac.role_bindings.push(bound("other", "kvmigrate", MIGRATE, &["user:ann"]));
    rbac.cluster_role_bindings.push(bound_everywhere("everywhere", MIGRATE, &["user:ann"]));
    let plan = revoke(&[ann()], &Scope::Namespace("shop".to_owned()), &rbac);
    let [Action::Delete(ours), Action::Patch(shared, patch)] = plan.actions.as_slice() else {
        panic!("{plan:?}")
    };
    assert_eq!((ours.name.as_str(), shared.name.as_str()), ("nacre:migrate:user:ann", "kvmigrate"));
    assert_eq!(patch["subjects"].as_array().unwrap().len(), 1);
    assert_eq!(patch["subjects"][0]["name"], "ops");
}

#[test]
fn what_revoking_leaves_is_told() {
    let mut rbac = granted(&request(&[ann()]), rbac());
    let shop = Scope::Namespace("shop".to_owned());
    assert_eq!(left_after_revoking(&[ann()], &shop, &rbac), []);
    rbac.cluster_role_bindings.push(bound_everywhere("root", "cluster-admin", &["user:ann"]));
    let left = left_after_revoking(&[ann()], &shop, &rbac);
    assert_eq!(left.len(), Power::ALL.len());
    assert!(left.iter().all(|right| right.scope == Scope::Cluster));
}
