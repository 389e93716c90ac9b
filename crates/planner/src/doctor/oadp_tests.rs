//! On OADP the doctor names what its role leaves out, and the one command that gives it.

use api::Kind;
use serde_json::json;

use super::tests::{examine, healthy, healthy_lease, read};
use super::*;
use crate::install::{SINCE_1_36, UserRole, extras};

/// A cluster where OADP's operator runs nacre in `openshift-adp`, under an account of another name, with these roles.
pub(super) fn oadp(given: &[Object]) -> Observed {
    let mut seen = healthy();
    seen.namespace = "openshift-adp".to_owned();
    // OADP's role has no leases.
    seen.lease = Reading::Absent;
    seen.lease_in_secret = healthy_lease("2026-11-15T12:00:18.000000Z");
    if let Reading::Found(lease) = &mut seen.lease_in_secret {
        lease.spec.as_mut().unwrap().holder_identity =
            Some("openshift-adp/non-admin-controller-1_a".to_owned());
    }
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
    for consequence in ["restores from tenants' own storage are refused", "in a Secret", "no schedules"] {
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

/// OADP's operator runs it as `non-admin-controller`. There one command brings all that is missing, whatever is missing.
#[test]
fn one_command_brings_everything_also_before_kubernetes_1_36() {
    let fixes = |unserved: &[Kind]| -> Vec<String> {
        let mut seen = oadp(&[]);
        let Reading::Found(controllers) = &mut seen.controllers else { unreachable!() };
        let pod = controllers[0].spec.as_mut().and_then(|spec| spec.template.spec.as_mut()).unwrap();
        pod.service_account_name = Some("non-admin-controller".to_owned());
        seen.unserved = unserved.to_vec();
        for (_, found) in &mut seen.installed {
            *found = Reading::Absent;
        }
        let ours = examine(&seen).into_iter().filter_map(|finding| finding.fix);
        let mut fixes: Vec<_> = ours.filter(|fix| fix.contains("nacre render")).collect();
        fixes.dedup();
        fixes
    };
    let command = |recorder: &str| {
        vec![format!(
            "kubectl nacre render --only oadp,admission,{recorder} -n openshift-adp | kubectl apply --server-side -f -"
        )]
    };
    assert_eq!(fixes(&[]), command("requester"));
    assert_eq!(fixes(&SINCE_1_36), command("requester-webhook"));
}

/// Admission policies know nacre by its account.
#[test]
fn under_another_account_policies_are_not_advised() {
    let mut seen = oadp(&[]);
    for (_, found) in &mut seen.installed {
        *found = Reading::Absent;
    }
    let fixes: Vec<String> = examine(&seen).into_iter().filter_map(|finding| finding.fix).collect();
    assert!(fixes.iter().any(|fix| fix.starts_with("run nacre as the service account non-admin-controller")));
    assert!(!fixes.iter().any(|fix| fix.contains("admission,")), "{fixes:#?}");
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

/// Its role has no Leases: the record of the leader is in a Secret.
#[test]
fn without_the_extras_nacre_is_not_called_down() {
    let about_nacre = |seen: &Observed| -> Vec<String> {
        let findings = examine(seen).into_iter();
        let ours = findings.filter(|finding| {
            finding.message.contains("lead")
                || finding.message.contains("lease")
                || finding.message.contains("asks nacre")
        });
        ours.map(|finding| format!("{:?} {}", finding.verdict, finding.message)).collect()
    };
    let leads = "Ok openshift-adp/non-admin-controller-1_a is leader, as its lease shows";
    let asked = "Ok the API server asks nacre about requests, and its certificate fits";
    let found = about_nacre(&oadp(&[]));
    assert!(found.contains(&leads.to_owned()) && found.contains(&asked.to_owned()), "{found:#?}");

    // An old Lease of an earlier time does not count, and without any record nacre is down.
    let mut seen = oadp(&[]);
    seen.lease = healthy_lease("2026-11-15T10:00:00.000000Z");
    assert!(about_nacre(&seen).contains(&leads.to_owned()));
    seen.lease = Reading::Absent;
    seen.lease_in_secret = Reading::Forbidden;
    let found = about_nacre(&seen);
    assert!(
        found
            .iter()
            .any(|line| line.ends_with("you may not get secret nacre-lease in namespace openshift-adp")),
        "{found:#?}"
    );
    seen.lease_in_secret = Reading::Absent;
    let found = about_nacre(&seen);
    assert!(
        found.contains(&"Problem nobody holds the lease nacre in kube-system: nacre does not run".to_owned()),
        "{found:#?}"
    );
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
