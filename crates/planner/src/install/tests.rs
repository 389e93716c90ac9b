use api::{Kind, labels};
use serde_json::{Value, json};

use super::record::record;
use super::uninstall::{self, Scope};
use super::{
    CONTROLLER, Found, Observed, SINCE_1_36, Settings, decide, definitions, objects, program, recorder,
    request_definitions,
};
use crate::{Action, Target};

/// A cluster in which nacre was installed with the defaults, as the API server would show it.
pub(super) fn installed() -> Vec<Found> {
    installed_with(&Settings::default())
}

/// The same with other settings.
pub(super) fn installed_with(settings: &Settings) -> Vec<Found> {
    let namespace = json!({"kind": "Namespace", "metadata": {"name": "velero"}});
    let mut found = objects(settings);
    found.push(record(settings));
    found.push(Found { kind: Kind::Namespace, body: namespace });
    for (number, object) in found.iter_mut().enumerate() {
        object.body["metadata"]["uid"] = format!("uid-{number}").into();
        object.body["metadata"]["creationTimestamp"] = "2026-11-15T00:00:00Z".into();
    }
    found
}

pub(super) fn find<'a>(found: &'a mut [Found], kind: Kind, name: &str) -> &'a mut Found {
    found.iter_mut().find(|one| one.kind == kind && one.name() == name).unwrap()
}

fn steps(settings: &Settings, found: &[Found]) -> Vec<String> {
    let decision = decide(&Observed { settings, found, unserved: &[], velero: None });
    assert_eq!(decision.refusals, Vec::<String>::new());
    decision.plan.actions.iter().map(shown).collect()
}

fn shown(action: &Action) -> String {
    match action {
        Action::Apply(object) => {
            let what = if object.body["metadata"]["uid"].is_string() { "change" } else { "make" };
            format!("{what} {} {}", object.kind.name(), object.name())
        }
        Action::Create(object) => format!("create {} {}", object.kind.name(), object.name()),
        Action::Delete(target) => format!("delete {} {}", target.kind.name(), target.name),
        Action::RemoveFinalizer(target, _) => format!("release {}", target.name),
        other => panic!("{other:?}"),
    }
}

fn refused(settings: &Settings, found: &[Found]) -> String {
    let decision = decide(&Observed { settings, found, unserved: &[], velero: None });
    assert!(decision.plan.actions.is_empty());
    decision.refusals.join("\n")
}

#[test]
fn before_1_36_the_webhook_records_who_asks_until_the_api_server_can() {
    let settings = Settings::default();
    let decided = |settings: &Settings, found: &[Found], unserved: &[Kind]| {
        decide(&Observed { settings, found, unserved, velero: None })
    };
    let first = decided(&settings, &[], &SINCE_1_36);
    let names: Vec<_> = first.plan.actions.iter().map(shown).collect();
    for made in ["MutatingWebhookConfiguration", "ClusterRole", "ClusterRoleBinding"] {
        assert!(names.contains(&format!("make {made} nacre-requester")), "{names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("MutatingAdmissionPolicy")), "{names:?}");
    assert!(
        first.remarks.iter().any(|remark| remark.contains("webhook records who asks")),
        "{:?}",
        first.remarks
    );
    // Settled.
    let mut found = installed_with(&settings);
    found.retain(|one| !SINCE_1_36.contains(&one.kind));
    found.extend(recorder(&settings));
    assert_eq!(decided(&settings, &found, &SINCE_1_36).plan.actions, []);
    // The API server is upgraded.
    let after: Vec<_> = decided(&settings, &found, &[]).plan.actions.iter().map(shown).collect();
    let deleted: Vec<_> =
        after.iter().filter(|step| step.starts_with("delete")).map(String::as_str).collect();
    assert_eq!(
        deleted,
        [
            "delete ClusterRole nacre-requester",
            "delete ClusterRoleBinding nacre-requester",
            "delete MutatingWebhookConfiguration nacre-requester"
        ]
    );
    assert_eq!(after.iter().filter(|step| step.starts_with("make Mutating")).count(), 9, "{after:?}");
    // Without a webhook there is nobody to record it.
    let off = decided(&Settings { webhook: false, ..settings }, &[], &SINCE_1_36);
    let names: Vec<_> = off.plan.actions.iter().map(shown).collect();
    assert!(
        !names.iter().any(|name| name.ends_with(" nacre-requester") && !name.contains("Validating")),
        "{names:?}"
    );
    assert!(off.remarks.iter().any(|remark| remark.contains("nobody records who asks")), "{:?}", off.remarks);
}

#[test]
fn an_empty_cluster_gets_everything_and_then_nothing() {
    let first = steps(&Settings::default(), &[]);
    assert_eq!(first[0], "create Namespace velero");
    assert_eq!(first.len(), 2 + objects(&Settings::default()).len());
    assert_eq!(first.last().unwrap(), "make ConfigMap nacre-install-values");
    let place = |step: &str| first.iter().position(|one| one == step).unwrap();
    assert!(place("make ClusterRoleBinding nacre") < place("make Deployment non-admin-controller"));
    assert_eq!(steps(&Settings::default(), &installed()), Vec::<String>::new());
}

#[test]
fn an_upgrade_changes_what_differs_and_removes_what_is_of_no_more_use() {
    let one = Settings { replicas: 1, image: "other:2".to_owned(), ..Settings::default() };
    assert_eq!(
        steps(&one, &installed()),
        [
            "change Deployment non-admin-controller",
            "change ConfigMap nacre-install-values",
            "delete PodDisruptionBudget non-admin-controller"
        ]
    );
    let mut found = installed();
    find(&mut found, Kind::ClusterRole, "nacre").body["rules"].as_array_mut().unwrap().pop();
    assert_eq!(steps(&Settings::default(), &found), ["change ClusterRole nacre"]);
}

#[test]
fn definitions_and_accounts_that_others_made_are_never_overwritten() {
    let mut found = installed();
    for one in &mut found {
        if matches!(one.kind, Kind::CustomResourceDefinition | Kind::ServiceAccount) {
            one.body["metadata"]["labels"] = json!({});
            one.body["spec"] = json!({"theirs": true});
        }
    }
    let decision =
        decide(&Observed { settings: &Settings::default(), found: &found, unserved: &[], velero: None });
    assert!(decision.plan.actions.is_empty() && decision.refusals.is_empty());
    assert_eq!(decision.remarks.len(), 8, "{:?}", decision.remarks);
    // Roles of nacre's own names have to be nacre's.
    find(&mut found, Kind::ClusterRole, "nacre").body["metadata"]["labels"] = json!({});
    assert!(refused(&Settings::default(), &found).contains("clusterrole/nacre is not nacre's"));
}

#[test]
fn what_stands_in_the_way_is_named_with_what_would_help() {
    let mut oadp = installed();
    let deployment = find(&mut oadp, Kind::Deployment, CONTROLLER);
    deployment.body["metadata"]["labels"] = json!({"control-plane": CONTROLLER});
    deployment.body["metadata"]["ownerReferences"] = json!([{"kind": "DataProtectionApplication"}]);
    let words = refused(&Settings::default(), &oadp);
    assert!(
        words.contains("OADP's operator made it") && words.contains("nonAdminControllerImageFqin"),
        "{words}"
    );

    let elsewhere = Settings { namespace: "backup".to_owned(), ..Settings::default() };
    assert!(refused(&elsewhere, &installed()).contains("installed in namespace velero already"));

    let mut helm = installed();
    find(&mut helm, Kind::Deployment, CONTROLLER).body["metadata"]["annotations"] =
        json!({"meta.helm.sh/release-name": "mine", "meta.helm.sh/release-namespace": "velero"});
    assert!(refused(&Settings::default(), &helm).contains("release mine in velero"));

    let mut operator = installed();
    find(&mut operator, Kind::Deployment, CONTROLLER).body["metadata"]["labels"]
        [crate::dpa_operator::INSTALLED_BY.0] = crate::dpa_operator::INSTALLED_BY.1.into();
    assert!(refused(&Settings::default(), &operator).contains("made by `nacre operator`"));

    let odd = Settings { log_level: 9, log_format: "xml".to_owned(), ..Settings::default() };
    let words = refused(&odd, &[]);
    assert!(words.contains("logLevel is 9") && words.contains("logFormat is \"xml\""), "{words}");
}

#[test]
fn uninstalling_names_the_storage_of_tenants_that_nothing_fences_any_more() {
    assert_eq!(uninstall::unfenced(0, "velero"), None);
    let said = uninstall::unfenced(2, "velero").unwrap();
    assert!(
        said.starts_with("2 storage locations of tenants in velero: nacre's admission policies fence"),
        "{said}"
    );
    let command =
        "kubectl delete backupstoragelocations.velero.io -n velero -l openshift.io/oadp-nabsl-origin-nacuuid";
    assert!(said.ends_with(command), "{said}");
}

#[test]
fn uninstalling_stops_the_program_first_then_lets_go_of_requests_then_removes_the_rest() {
    let with_finalizer = Target {
        kind: Kind::NonAdminBackup,
        namespace: "shop".to_owned(),
        name: "daily".to_owned(),
        uid: "u".to_owned(),
        resource_version: "1".to_owned(),
        finalizers: vec!["theirs/x".to_owned(), labels::NAB_FINALIZER.to_owned()],
    };
    let foreign = Target {
        name: "other".to_owned(),
        finalizers: vec!["theirs/x".to_owned()],
        ..with_finalizer.clone()
    };
    let mut found = installed();
    let copy = Target {
        kind: Kind::Backup,
        name: "copy".to_owned(),
        finalizers: Vec::new(),
        ..with_finalizer.clone()
    };
    let mut seen = vec![with_finalizer, foreign];
    let mut copies = vec![copy];
    let mut at_work = Some("pod x");
    let mut trace = Vec::new();
    for _ in 0..10 {
        let observed = uninstall::Observed {
            scope: Scope::Installation,
            found: &found,
            with_finalizer: &seen,
            copies: &copies,
            at_work,
        };
        let decision = uninstall::decide(&observed);
        if let Some(who) = decision.waiting_for {
            trace.push(format!("wait for {who}"));
            at_work = None;
        } else if decision.plan.actions.is_empty() {
            break;
        }
        for action in &decision.plan.actions {
            trace.push(shown(action));
            match action {
                Action::RemoveFinalizer(target, finalizer) => seen
                    .iter_mut()
                    .find(|one| one.name == target.name)
                    .unwrap()
                    .finalizers
                    .retain(|one| one != finalizer),
                Action::Delete(target) => {
                    copies.retain(|one| one.name != target.name);
                    found.retain(|one| (one.kind, one.name()) != (target.kind, target.name.as_str()));
                }
                other => panic!("{other:?}"),
            }
        }
    }
    let place = |step: &str| trace.iter().position(|one| one == step).unwrap_or_else(|| panic!("{trace:#?}"));
    assert!(place("delete Deployment non-admin-controller") < place("wait for pod x"));
    assert!(place("wait for pod x") < place("release daily"));
    assert!(place("release daily") < place("delete Backup copy"));
    assert!(place("delete Backup copy") < place("delete ClusterRole nacre"));
    assert!(!trace.contains(&"release other".to_owned()));
    // Definitions stay, with every request, and so does the namespace.
    let left: Vec<_> = found.iter().map(|one| one.kind).collect();
    assert_eq!(left.iter().filter(|kind| **kind == Kind::CustomResourceDefinition).count(), 7);
    assert_eq!(left.len(), 8);
    let all = uninstall::Observed {
        scope: Scope::Definitions,
        found: &found,
        with_finalizer: &[],
        copies: &[],
        at_work: None,
    };
    assert_eq!(uninstall::decide(&all).plan.actions.len(), 7);
    // What OLM brought is OADP's, also if somebody applied our CRD over it, which adds our label.
    for label in ["olm.managed", "operators.coreos.com/oadp-operator.openshift-adp"] {
        let mut found = found.clone();
        let dpas =
            found.iter_mut().find(|one| one.name().starts_with("dataprotectionapplications.")).unwrap();
        dpas.body["metadata"]["labels"][label] = json!("");
        let decision = uninstall::decide(&uninstall::Observed { found: &found, ..all });
        let deleted: Vec<_> = decision.plan.actions.iter().map(shown).collect();
        assert_eq!(deleted.len(), 6, "{deleted:?}");
        assert!(!deleted.iter().any(|step| step.contains("dataprotectionapplications")), "{deleted:?}");
    }
}

#[test]
fn the_crds_of_requests_can_be_had_without_oadps_own() {
    let names =
        |objects: &[crate::Object]| objects.iter().map(|one| one.name().to_owned()).collect::<Vec<_>>();
    let (all, requests) = (names(&definitions()), names(&request_definitions()));
    let left_out: Vec<_> = all.iter().filter(|name| !requests.contains(name)).collect();
    assert_eq!(left_out, ["dataprotectionapplications.oadp.openshift.io"]);
}

#[test]
fn pods_pass_the_restricted_standard() {
    let program = program(&Settings::default());
    let pod =
        &program.iter().find(|one| one.kind == Kind::Deployment).unwrap().body["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    let container = &pod["containers"][0]["securityContext"];
    assert_eq!(container["allowPrivilegeEscalation"], false);
    assert_eq!(container["capabilities"]["drop"], json!(["ALL"]));
}

/// H13: the metrics, with the names of tenants' namespaces, read by whoever reaches their port
#[test]
fn h13_the_network_policy_that_ships_is_about_nacres_pods_and_ports() {
    let text = include_str!("../../../../deploy/monitoring/network-policy.yaml");
    let shipped: Value = serde_saphyr::from_str(text).unwrap();
    let settings = Settings::default();
    let deployment = program(&settings).into_iter().find(|object| object.kind == Kind::Deployment).unwrap();
    let spec = &deployment.body["spec"];
    assert_eq!(shipped["metadata"]["namespace"], json!(settings.namespace));
    assert_eq!(shipped["spec"]["podSelector"], spec["selector"]);
    assert_eq!(shipped["spec"]["policyTypes"], json!(["Ingress"]));
    for (port, from_everywhere) in [("metrics", Some(false)), ("webhook", Some(true)), ("health", None)] {
        let ports = spec["template"]["spec"]["containers"][0]["ports"].as_array().unwrap();
        let number = &ports.iter().find(|one| one["name"] == port).unwrap()["containerPort"];
        let rules = shipped["spec"]["ingress"].as_array().unwrap();
        let rule = rules.iter().find(|rule| rule["ports"][0]["port"] == *number);
        assert_eq!(rule.map(|rule| rule.get("from").is_none()), from_everywhere, "{port}");
    }
}
