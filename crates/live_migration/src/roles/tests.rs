use super::*;
use planner::kubevirt::Power;
use planner::rbac::rules;

fn request(
    group: &'static str,
    resource: &'static str,
    subresource: &'static str,
    verb: &'static str,
) -> rules::Request {
    rules::Request { group, resource, subresource, verb }
}

#[test]
fn only_migrate_may_migrate() {
    for role in [Role::Admin, Role::Edit, Role::View] {
        assert_eq!(Power::given_by(&role.rules(Era::Current)), [], "{role:?}");
        for verb in ["get", "list", "watch"] {
            assert!(
                rules::allow(&role.rules(Era::Current), &request(KUBEVIRT, MIGRATIONS, "", verb)),
                "{role:?}"
            );
        }
    }
    assert_eq!(Power::given_by(&Role::Migrate.rules(Era::Current)), Power::ALL);
    assert_eq!(Role::Migrate.rules(Era::Current).len(), 2);
}

#[test]
fn the_old_set_gave_edit_all_but_deletecollection() {
    assert_eq!(Power::given_by(&Role::Admin.rules(Era::Old)), Power::ALL);
    let edit = Power::given_by(&Role::Edit.rules(Era::Old));
    assert_eq!(edit, Power::given_by(&lost_by_edit()));
    assert!(!edit.contains(&Power::DeleteCollection) && edit.contains(&Power::Migrate));
    assert_eq!(Role::View.rules(Era::Old), Role::View.rules(Era::Current));
}

#[test]
fn the_eras_differ_in_nothing_but_migrations() {
    for (role, lost) in [(Role::Admin, lost_by_admin()), (Role::Edit, lost_by_edit())] {
        let kept_and_lost = [role.rules(Era::Current), lost].concat();
        assert!(rules::same(&role.rules(Era::Old), &kept_and_lost), "{role:?}");
    }
}

/// Hotplug goes on: the rights it needs are not live-migration permissions, although KubeVirt migrates to carry it out.
#[test]
fn hotplug_is_left_alone() {
    for role in [Role::Admin, Role::Edit] {
        let rules = role.rules(Era::Current);
        for machine in ["virtualmachines", "virtualmachineinstances"] {
            for action in ["addvolume", "removevolume"] {
                assert!(rules::allow(&rules, &request(SUBRESOURCES, machine, action, "update")));
            }
            for verb in ["update", "patch"] {
                assert!(rules::allow(&rules, &request(KUBEVIRT, machine, "", verb)));
            }
        }
    }
}

#[test]
fn no_role_says_star_and_none_touches_the_status_of_a_migration() {
    for role in Role::ALL {
        for era in [Era::Old, Era::Current] {
            for rule in role.rules(era) {
                let words =
                    [&rule.verbs, rule.resources.as_ref().unwrap(), rule.api_groups.as_ref().unwrap()];
                assert!(words.into_iter().flatten().all(|word| !word.contains('*')));
                assert!(
                    rule.resources
                        .unwrap()
                        .iter()
                        .all(|resource| !resource.starts_with(&format!("{MIGRATIONS}/")))
                );
            }
        }
    }
}

#[test]
fn migrate_is_part_of_nothing_by_default() {
    assert!(Role::Migrate.labels().keys().all(|key| !key.starts_with(AGGREGATE)));
    assert_eq!(Role::Edit.labels().get("rbac.authorization.k8s.io/aggregate-to-edit").unwrap(), "true");
    // KubeVirt's proposal for live-migration roles lists these two.
    assert_eq!(Role::Migrate.labels().get("app.kubernetes.io/component").unwrap(), "kubevirt");
    assert_eq!(Role::Migrate.labels().get("app.kubernetes.io/managed-by").unwrap(), "virt-operator");
}
