//! On OADP the doctor names what its role leaves out, and the one command that gives it.

use api::Kind;
use serde_json::json;

use super::tests::{healthy, read};
use super::*;
use crate::install::{UserRole, extras};

/// A cluster where OADP's operator runs nacre in `openshift-adp`, under an account of another name, with these roles.
fn oadp(given: &[Object]) -> Observed {
    let mut seen = healthy();
    seen.namespace = "openshift-adp".to_owned();
    let Reading::Found(controllers) = &mut seen.controllers else { unreachable!() };
    let own = &mut controllers[0];
    own.metadata.namespace = Some("openshift-adp".to_owned());
    own.metadata.owner_references = Some(vec![read(json!({
        "apiVersion": "oadp.openshift.io/v1alpha1", "kind": "DataProtectionApplication", "name": "dpa", "uid": "1"}))]);
    let pod = own.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()).unwrap();
    pod.service_account_name = Some("robot".to_owned());
    let Reading::Found(rbac) = &mut seen.rbac else { unreachable!() };
    for object in given {
        let body = object.body.clone();
        match object.kind {
            Kind::ClusterRole => rbac.cluster_roles.push(read(body)),
            Kind::ClusterRoleBinding => rbac.cluster_role_bindings.push(read(body)),
            Kind::Role => rbac.roles.push(read(body)),
            Kind::RoleBinding => rbac.role_bindings.push(read(body)),
            _ => {}
        }
    }
    seen
}

fn finding(seen: &Observed) -> Finding {
    super::oadp::examine(seen).unwrap()
}

#[test]
fn what_oadps_role_leaves_out_is_named_with_its_consequences_and_one_command() {
    let found = finding(&oadp(&[]));
    assert_eq!(found.verdict, CheckStatus::Warning);
    for consequence in
        ["restores from tenants' own storage are refused", "no leader election", "no schedules"]
    {
        assert!(found.message.contains(consequence), "{}", found.message);
    }
    assert!(found.message.contains("serviceaccount openshift-adp:robot"), "{}", found.message);
    assert_eq!(
        found.fix.as_deref(),
        Some(
            "kubectl nacre render --only oadp -n openshift-adp --service-account robot | kubectl apply --server-side -f -"
        )
    );
}

#[test]
fn with_the_extras_nothing_is_missing_and_for_another_account_everything_is() {
    assert_eq!(finding(&oadp(&extras("openshift-adp", "robot", &UserRole::ALL))).verdict, CheckStatus::Ok);
    for others in
        [extras("openshift-adp", "other", &UserRole::ALL), extras("velero", "robot", &UserRole::ALL)]
    {
        assert_eq!(finding(&oadp(&others)).message, finding(&oadp(&[])).message);
    }
}

#[test]
fn one_permission_less_is_named_alone() {
    let mut given = extras("openshift-adp", "robot", &UserRole::ALL);
    for role in &mut given {
        if let Some(rules) = role.body["rules"].as_array_mut() {
            rules.retain(|rule| rule["resources"] != json!(["serverstatusrequests"]));
        }
    }
    let found = finding(&oadp(&given));
    assert!(
        found.message.ends_with(
            ": nacre does not know Velero's version, so backups in tenants' storage are not imported. With it they are \
             from Velero 1.18.3 on"
        ),
        "{}",
        found.message
    );
}

#[test]
fn without_oadp_nothing_is_said() {
    assert!(super::oadp::examine(&healthy()).is_none());
}

/// No fix is for the namespace `velero` where Velero is elsewhere.
#[test]
fn every_fix_is_for_that_namespace() {
    let mut seen = oadp(&[]);
    for (_, found) in &mut seen.installed {
        *found = Reading::Absent;
    }
    for finding in examine(&seen) {
        let fix = finding.fix.unwrap_or_default();
        assert!(!fix.contains("deploy/nacre.yaml") && !fix.contains("-n velero"), "{fix}");
    }
}
