//! A Velero for tenants alone: it has its permissions in tenants' namespaces by a RoleBinding in each.

use api::Kind;
use serde_json::json;

use crate::world::World;
use crate::world::manifests::{nab, namespace, object};

fn dedicated(namespaces: &[&str]) -> World {
    let mut world = World::with(&[]);
    world.dedicate_velero();
    for name in namespaces {
        world.apply(namespace(name));
    }
    world.settle();
    world
}

#[test]
fn velero_has_its_permissions_where_tenants_may_make_requests_and_nowhere_else() {
    let mut world = dedicated(&["shop", "kube-system", "office"]);
    assert_eq!(world.names(Kind::RoleBinding), ["office/nacre-velero", "shop/nacre-velero"]);
    let binding = world.get("RoleBinding shop/nacre-velero");
    assert_eq!(binding["roleRef"]["name"], "nacre:velero-tenant");
    assert_eq!(binding["subjects"][0]["namespace"], "velero");
    world.policy(|policy| policy.namespaces.excluded.push("off*".to_owned()));
    world.settle();
    assert_eq!(world.names(Kind::RoleBinding), ["shop/nacre-velero"]);
    world.apply(namespace("new"));
    world.settle();
    assert_eq!(world.names(Kind::RoleBinding), ["new/nacre-velero", "shop/nacre-velero"]);
}

#[test]
fn what_a_tenant_deletes_or_changes_of_it_comes_back() {
    let mut world = dedicated(&["shop"]);
    let before = world.get("RoleBinding shop/nacre-velero");
    world.delete("RoleBinding shop/nacre-velero");
    world.settle();
    assert_eq!(world.get("RoleBinding shop/nacre-velero")["subjects"], before["subjects"]);
    world.edit("RoleBinding shop/nacre-velero", json!({"subjects": []}));
    world.settle();
    assert_eq!(world.get("RoleBinding shop/nacre-velero")["subjects"], before["subjects"]);
    let writes = world.writes();
    world.restart();
    world.dedicate_velero();
    world.settle();
    assert_eq!(world.writes(), writes, "a settled cluster is silent");
}

#[test]
fn a_backup_waits_until_velero_has_its_permissions() {
    let mut world = World::with(&[]);
    world.dedicate_velero();
    world.refuse_creates(Kind::RoleBinding, 403);
    world.apply(namespace("shop"));
    world.apply(nab("shop/daily"));
    world.rest();
    assert_eq!(world.names(Kind::Backup), [""; 0]);
    let accepted = world.condition("nab shop/daily", "Accepted");
    assert!(accepted.contains("Velero does not have its permissions in this namespace yet"), "{accepted}");
    assert!(accepted.ends_with("the backup starts when it has"), "{accepted}");
    world.relent();
    world.pass(std::time::Duration::from_mins(10));
    assert_eq!(world.names(Kind::Backup).len(), 1);
}

#[test]
fn without_the_flag_nothing_is_bound() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    world.settle();
    assert_eq!(world.names(Kind::RoleBinding), [""; 0]);
    assert_eq!(world.names(Kind::Backup).len(), 1);
}

#[test]
fn roles_do_not_come_back_through_it() {
    let mut world = dedicated(&["shop"]);
    world.apply(object(Kind::ConfigMap, "velero/nacre-policy", json!({"data": {"policy.yaml": "{}"}})));
    let mut state = world.state();
    state.read_policy();
    let left_out = state.policy("shop").unwrap().restore.excluded_from_platform_storage.clone();
    assert!(left_out.contains(&"rolebindings.rbac.authorization.k8s.io".to_owned()), "{left_out:?}");
}
