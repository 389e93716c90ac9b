//! Under OLM the doctor reports what viewers can read, with a command that OLM does not undo, and nothing else that OLM makes.

use serde_json::{Value, json};

use super::tests::{healthy, read, roles};
use super::*;
use crate::rbac::aggregate::settle;

/// Some CRDs that OADP's operator brings, and a number that stands for each in OLM's labels.
const CRDS: [(&str, &str, &str); 7] = [
    ("nonadminbackups.oadp.openshift.io", "v1alpha1", "a1"),
    ("nonadminbackupstoragelocationrequests.oadp.openshift.io", "v1alpha1", "a2"),
    ("nonadmindownloadrequests.oadp.openshift.io", "v1alpha1", "a3"),
    ("dataprotectionapplications.oadp.openshift.io", "v1alpha1", "a4"),
    ("backups.velero.io", "v1", "a5"),
    ("downloadrequests.velero.io", "v1", "a6"),
    ("datauploads.velero.io", "v2alpha1", "a7"),
];

/// What OLM makes of them, and of its own.
fn made_by_olm() -> Vec<Value> {
    let mut all = Vec::new();
    for (crd, version, hash) in CRDS {
        let (plural, group) = crd.split_once('.').unwrap();
        let own = |suffix: &str| format!("olm.opgroup.permissions/aggregate-to-{hash}-{suffix}");
        let mut role = |name: &str, suffix: &str, rule: Value| {
            let shared = format!("rbac.authorization.k8s.io/aggregate-to-{suffix}");
            all.push(json!({"metadata": {"name": format!("{crd}-{version}-{name}"),
                "labels": {"olm.managed": "true", own(suffix): "true", shared: "true"}}, "rules": [rule]}));
        };
        let about = |verbs: Value| json!({"apiGroups": [group], "resources": [plural], "verbs": verbs});
        role("admin", "admin", about(json!(["*"])));
        role("edit", "edit", about(json!(["create", "update", "patch", "delete"])));
        role("view", "view", about(json!(["get", "list", "watch"])));
        let definition = json!({"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
            "resourceNames": [crd], "verbs": ["get"]});
        role("crdview", "view", definition);
    }
    for suffix in ["admin", "edit", "view"] {
        let selectors: Vec<Value> = CRDS
            .iter()
            .map(|(_, _, hash)| json!({"matchLabels": {format!("olm.opgroup.permissions/aggregate-to-{hash}-{suffix}"): "true"}}))
            .collect();
        all.push(json!({"metadata": {"name": format!("olm.og.openshift-adp.{suffix}-x7k2p"),
            "labels": {"olm.owner": "openshift-adp", "olm.owner.kind": "OperatorGroup", "olm.owner.namespace": "openshift-adp"}},
            "aggregationRule": {"clusterRoleSelectors": selectors}}));
    }
    let to = |role: &str| format!("rbac.authorization.k8s.io/aggregate-to-{role}");
    all.push(json!({"metadata": {"name": "aggregate-olm-edit", "labels": {to("admin"): "true", to("edit"): "true"}},
        "rules": [{"apiGroups": ["operators.coreos.com"], "resources": ["subscriptions"], "verbs": ["create", "update", "patch", "delete"]},
            {"apiGroups": ["operators.coreos.com"], "resources": ["clusterserviceversions", "installplans"], "verbs": ["delete"]}]}));
    all.push(json!({"metadata": {"name": "aggregate-olm-view", "labels": {to("admin"): "true", to("edit"): "true", to("view"): "true"}},
        "rules": [{"apiGroups": ["operators.coreos.com"], "resources": ["clusterserviceversions", "operatorgroups"],
            "verbs": ["get", "list", "watch"]}]}));
    all
}

/// A cluster with these roles besides Kubernetes' own, after aggregation.
fn with(more: &[Value]) -> Observed {
    let mut seen = healthy();
    let rbac = roles(more);
    seen.rbac = Reading::Found(Rbac { cluster_roles: settle(&rbac.cluster_roles), ..rbac });
    seen
}

/// What is wrong with the permissions there.
fn wrong(seen: &Observed) -> Vec<Finding> {
    let found = super::permissions::examine(seen).into_iter();
    found.filter(|one| one.verdict >= CheckStatus::Warning).collect()
}

fn editors() -> Value {
    let to = |role: &str| format!("rbac.authorization.k8s.io/aggregate-to-{role}");
    json!({"metadata": {"name": "nacre:edit", "labels": {to("admin"): "true", to("edit"): "true"}},
        "rules": [{"apiGroups": ["oadp.openshift.io"], "resources": ["nonadmindownloadrequests"], "verbs": ["get"]}]})
}

/// OLM gives owners every verb on requests for storage and on applications. In their namespaces these decide nothing.
#[test]
fn only_the_links_for_viewers_are_a_problem() {
    let [found] = &wrong(&with(&[made_by_olm(), vec![editors()]].concat()))[..] else { panic!() };
    insta::assert_snapshot!(
        format!("{:?} {}\n{}", found.verdict, found.message, found.fix.as_deref().unwrap()),
        @r#"
    Problem viewers can read download links, and by them all that was backed up, Secrets included: OLM makes nonadmindownloadrequests.oadp.openshift.io-v1alpha1-view, downloadrequests.velero.io-v1-view part of view, and would make it so again
    kubectl patch clusterrole view --type=merge -p '{"aggregationRule":{"clusterRoleSelectors":[{"matchExpressions":[{"key":"olm.opgroup.permissions/aggregate-to-a3-view","operator":"DoesNotExist"},{"key":"olm.opgroup.permissions/aggregate-to-a6-view","operator":"DoesNotExist"}],"matchLabels":{"rbac.authorization.k8s.io/aggregate-to-view":"true"}}]},"metadata":{"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"false"}}}'
    "#
    );
}

#[test]
fn without_nacres_own_roles_editors_would_lose_the_links_too() {
    let [found] = &wrong(&with(&made_by_olm()))[..] else { panic!() };
    assert!(found.message.ends_with("; editors then need nacre:edit to read them"), "{}", found.message);
}

/// OLM writes its roles again, and a new version of the operator brings new ones. `view` is not OLM's.
#[test]
fn the_command_is_enough_whatever_olm_does() {
    let mut seen = with(&[made_by_olm(), vec![editors()]].concat());
    let fix = wrong(&seen)[0].fix.clone().unwrap();
    let patch = fix.strip_prefix("kubectl patch clusterrole view --type=merge -p '").unwrap();
    let patch: Value = serde_json::from_str(patch.strip_suffix('\'').unwrap()).unwrap();
    let Reading::Found(rbac) = &mut seen.rbac else { unreachable!() };
    let view = rbac.cluster_roles.iter_mut().find(|role| role.name_any() == "view").unwrap();
    view.aggregation_rule = Some(read(patch["aggregationRule"].clone()));
    rbac.cluster_roles = settle(&rbac.cluster_roles);
    assert_eq!(wrong(&seen), []);
    // Viewers have everything else that OLM gives them.
    let Reading::Found(rbac) = &seen.rbac else { unreachable!() };
    let view = rbac.cluster_roles.iter().find(|role| role.name_any() == "view").unwrap();
    let kinds = |role: &k8s_openapi::api::rbac::v1::ClusterRole| -> Vec<String> {
        role.rules.iter().flatten().flat_map(|rule| rule.resources.clone().unwrap_or_default()).collect()
    };
    for kind in ["nonadminbackups", "backups", "clusterserviceversions"] {
        assert!(kinds(view).contains(&kind.to_owned()), "{kind}");
    }
    assert!(!kinds(view).iter().any(|kind| kind.ends_with("downloadrequests")));
}

/// Statuses are nacre's to write, whoever made the role.
#[test]
fn what_else_is_too_much_is_reported_in_olms_roles_too() {
    let mut all = made_by_olm();
    all[1]["rules"][0]["resources"] = json!(["nonadminbackups", "nonadminbackups/status"]);
    let found = wrong(&with(&[all, vec![editors()]].concat()));
    let about = "clusterrole nonadminbackups.oadp.openshift.io-v1alpha1-edit lets owners of namespaces \
                 patch nonadminbackups/status, update nonadminbackups/status";
    assert!(found.iter().any(|one| one.message == about), "{found:#?}");
}
