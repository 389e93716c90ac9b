use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{
    cel::{INFRASTRUCTURE as INFRA, MAY_BIND, MAY_DELETE_PODS, MAY_EVICT},
    *,
};
use crate::{
    contest::{MAX_REPAIRS, Repairs},
    fixtures::subject,
    settings::Settings,
};
use harness::Ask;
use planner::plan::{Action, Plan};

#[path = "../../../planner/src/vap/harness.rs"]
mod harness;

fn migration(annotations: &Value, priority: Option<&str>) -> Value {
    let mut object = json!({
        "metadata": {
            "name": "mig-1",
            "annotations": annotations,
            "finalizers": ["kubevirt.io/migrationJobFinalize"],
            "labels": { "kubevirt.io/vmi-name": "db" }
        },
        "spec": { "vmiName": "db" }
    });
    if let Some(priority) = priority {
        object["spec"]["priority"] = json!(priority);
    }
    object
}

fn drain() -> Value {
    migration(&json!({ "kubevirt.io/evacuationMigration": "node-1" }), Some("system-critical"))
}

fn own() -> Value {
    json!({ "metadata": { "name": "mine" }, "spec": { "vmiName": "db" } })
}

fn edited(object: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut edited = object.clone();
    change(&mut edited);
    edited
}

/// G2
/// planted: one demand of the guard is left out
#[test]
fn g2_tenants_delete_their_own_migrations_but_not_a_drains() {
    let policy = migrations::protected();
    assert!(Ask::delete(own()).passes(&policy));
    for infra in [
        drain(),
        migration(&json!({}), Some("system-maintenance")),
        migration(&json!({ "kubevirt.io/evacuationMigration": "node-1" }), None),
        migration(&json!({ "kubevirt.io/workloadUpdateMigration": "" }), None),
    ] {
        assert!(Ask::delete(infra.clone()).is_refused_only_by(&policy, &["may delete it"]), "{infra}");
        assert!(Ask::delete(infra.clone()).holding(INFRA).passes(&policy));
        assert!(Ask::delete(infra).in_deleting_namespace().passes(&policy));
    }
    let hotplug = migration(&json!({ "kubevirt.io/workloadUpdateMigration": "" }), Some("user-triggered"));
    assert!(Ask::delete(hotplug).passes(&policy));
}

/// G2
/// planted: one demand of the guard is left out
#[test]
fn g2_tenants_cannot_strip_a_drain_of_anything() {
    let policy = migrations::protected();
    let changes: [fn(&mut Value); 6] = [
        |object| drop(object["metadata"].as_object_mut().unwrap().remove("annotations")),
        |object| object["metadata"]["annotations"] = json!({}),
        |object| object["metadata"]["finalizers"] = json!([]),
        |object| object["metadata"]["labels"]["kubevirt.io/vmi-name"] = json!("other"),
        |object| object["metadata"]["ownerReferences"] = json!([{ "name": "gone" }]),
        |object| object["status"] = json!({ "phase": "Failed" }),
    ];
    for change in changes {
        let ask = Ask::update(drain(), edited(&drain(), change));
        assert!(ask.is_refused_only_by(&policy, &["may change it"]), "{ask:?}");
        assert!(ask.holding(INFRA).passes(&policy));
    }
    let touched = edited(&drain(), |object| object["metadata"]["resourceVersion"] = json!("2"));
    assert!(Ask::update(drain(), touched).passes(&policy));
    assert!(
        Ask::update(own(), edited(&own(), |object| object["metadata"]["labels"] = json!({ "a": "b" })))
            .passes(&policy)
    );
}

#[test]
fn tenants_cannot_fake_infrastructure() {
    let policy = migrations::marks();
    assert!(Ask::create(own()).passes(&policy));
    let fakes: [fn(&mut Value); 8] = [
        |object| object["metadata"]["annotations"] = json!({ "kubevirt.io/evacuationMigration": "n" }),
        |object| object["metadata"]["annotations"] = json!({ "kubevirt.io/workloadUpdateMigration": "" }),
        |object| {
            object["metadata"]["annotations"] =
                json!({ "kubevirt.io/func-test-migration-target-image-override": "evil" });
        },
        |object| object["metadata"]["labels"] = json!({ "kubevirt.io/volume-update-migration": "db" }),
        |object| object["metadata"]["annotations"] = json!({ REQUESTED_BY: "root" }),
        |object| object["metadata"]["name"] = json!("kubevirt-evacuation-abc"),
        |object| object["metadata"]["generateName"] = json!("kubevirt-workload-update-"),
        |object| object["spec"]["priority"] = json!("system-critical"),
    ];
    for (position, fake) in fakes.into_iter().enumerate() {
        let forged = edited(&own(), fake);
        assert!(!Ask::create(forged.clone()).passes(&policy), "{forged}");
        assert!(Ask::create(forged.clone()).holding(INFRA).passes(&policy));
        // Names cannot change; everything else cannot be added later either.
        assert_eq!(Ask::update(own(), forged).passes(&policy), matches!(position, 5 | 6));
    }
    let stamped = edited(&own(), |object| object["metadata"]["annotations"] = json!({ REQUESTED_BY: "ann" }));
    assert!(Ask::create(stamped.clone()).passes(&policy));
    assert!(!Ask::create(stamped.clone()).by("bob").passes(&policy));
    assert!(!Ask::update(stamped, own()).passes(&policy), "the stamp cannot be taken off");
}

#[test]
fn a_mark_that_is_there_does_not_stand_in_the_way_of_other_edits() {
    let policy = migrations::marks();
    let hotplug = migration(&json!({ "kubevirt.io/workloadUpdateMigration": "" }), Some("user-triggered"));
    let labelled = edited(&hotplug, |object| object["metadata"]["labels"]["mine"] = json!("yes"));
    assert!(Ask::update(hotplug.clone(), labelled).passes(&policy));
    let stripped = edited(&hotplug, |object| object["metadata"]["annotations"] = json!({}));
    assert!(!Ask::update(hotplug, stripped).passes(&policy));
}

fn binding(role: &str, who: &[&str]) -> Value {
    let subjects: Vec<_> = who.iter().map(|who| subject(who)).collect();
    json!({ "metadata": { "name": "b" }, "roleRef": { "kind": "ClusterRole", "name": role }, "subjects": subjects })
}

/// G5
/// planted: one demand of the guard is left out
#[test]
fn g5_the_right_is_not_handed_on() {
    let policy = bindings::bindings();
    let grant = binding("kubevirt.io:migrate", &["user:bob"]);
    assert!(Ask::create(grant.clone()).is_refused_only_by(&policy, &["may grant it"]));
    assert!(Ask::create(grant.clone()).holding(MAY_BIND).passes(&policy));
    assert!(!Ask::create(grant.clone()).holding(INFRA).passes(&policy));
    assert!(!Ask::create(binding("kubevirt.io:upgrademigrate", &["user:bob"])).passes(&policy));
    assert!(Ask::create(binding("view", &["user:bob"])).passes(&policy));

    let wider = binding("kubevirt.io:migrate", &["user:bob", "user:eve"]);
    assert!(Ask::update(grant.clone(), wider.clone()).is_refused_only_by(&policy, &["may grant it"]));
    assert!(Ask::update(wider, grant.clone()).passes(&policy), "narrowing is everybody's");
    assert!(
        Ask::update(grant.clone(), edited(&grant, |one| one["metadata"]["labels"] = json!({ "a": "b" })))
            .passes(&policy)
    );
}

/// G5
/// planted: one demand of the guard is left out
#[test]
fn g5_a_grant_is_not_prolonged_by_its_holder() {
    let policy = bindings::bindings();
    let grant = edited(&binding("kubevirt.io:migrate", &["user:bob"]), |grant| {
        grant["metadata"]["labels"] = json!({ "nacre.dev/migration-grant": "true" });
        grant["metadata"]["annotations"] = json!({ "nacre.dev/expires": "2026-01-01T00:00:00Z" });
    });
    let changes: [fn(&mut Value); 3] = [
        |grant| grant["metadata"]["annotations"] = json!({}),
        |grant| grant["metadata"]["annotations"]["nacre.dev/expires"] = json!("2036-01-01T00:00:00Z"),
        |grant| grant["metadata"]["labels"] = json!({}),
    ];
    for change in changes {
        let ask = Ask::update(grant.clone(), edited(&grant, change));
        assert!(ask.is_refused_only_by(&policy, &["change when a grant ends"]), "{ask:?}");
        assert!(ask.holding(MAY_BIND).passes(&policy));
    }
}

/// G5
/// planted: one demand of the guard is left out
#[test]
fn g5_a_restore_brings_no_grant_back_whatever_velero_may() {
    let policy = bindings::bindings();
    let grant = binding("kubevirt.io:migrate", &["user:bob"]);
    let velero = "system:serviceaccount:openshift-adp:velero";
    let by_velero = Ask::create(grant.clone()).by(velero).holding(MAY_BIND);
    assert!(by_velero.is_refused_only_by(&policy, &["a restore does not bring back"]));
    let restored = edited(&grant, |one| one["metadata"]["labels"] = json!({ "velero.io/restore-name": "r" }));
    assert!(!Ask::create(restored).holding(MAY_BIND).passes(&policy));
    assert!(Ask::create(binding("view", &["user:bob"])).by(velero).holding(MAY_BIND).passes(&policy));
}

/// G5
/// planted: one demand of the guard is left out
#[test]
fn g5_the_right_is_not_hoarded_in_a_role_of_ones_own() {
    let policy = bindings::own_roles();
    let role = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!({ "metadata": { "name": "mine" }, "rules": [{ "apiGroups": groups, "resources": resources, "verbs": verbs }] });
    let vmim = "virtualmachineinstancemigrations";
    for hoard in [
        role(&["kubevirt.io"], &[vmim], &["delete"]),
        role(&["kubevirt.io"], &["*"], &["create"]),
        role(&["*"], &["*"], &["*"]),
        role(&["subresources.kubevirt.io"], &["virtualmachines/migrate"], &["update"]),
        role(&["subresources.kubevirt.io"], &["*/migrate"], &["*"]),
    ] {
        assert!(Ask::create(hoard.clone()).is_refused_only_by(&policy, &["into a role"]), "{hoard}");
        assert!(Ask::create(hoard.clone()).holding(MAY_BIND).passes(&policy));
        let relabelled = edited(&hoard, |role| role["metadata"]["labels"] = json!({ "a": "b" }));
        assert!(Ask::update(hoard.clone(), relabelled).passes(&policy));
        assert!(
            !Ask::create(hoard).by("system:serviceaccount:velero:velero").holding(MAY_BIND).passes(&policy)
        );
    }
    for harmless in [
        role(&["kubevirt.io"], &[vmim], &["get", "list", "watch"]),
        role(&[""], &["*"], &["*"]),
        role(&["kubevirt.io"], &["virtualmachines"], &["*"]),
        json!({ "metadata": { "name": "empty" } }),
        json!({ "metadata": { "name": "urls" }, "rules": [{ "nonResourceURLs": ["/x"], "verbs": ["get"] }] }),
    ] {
        assert!(Ask::create(harmless.clone()).passes(&policy), "{harmless}");
    }
}

#[test]
fn evicting_a_machine_takes_the_right_at_cluster_scope() {
    let policy = pods::evictions();
    let evict = |pod: &str| Ask::create(json!({ "metadata": { "name": pod } })).named(pod);
    assert!(!evict("virt-launcher-db-x7x").passes(&policy));
    assert!(evict("virt-launcher-db-x7x").holding(MAY_EVICT).passes(&policy));
    assert!(evict("virt-launcher-db-x7x").in_deleting_namespace().passes(&policy));
    assert!(evict("web-0").passes(&policy));
}

#[test]
fn the_pod_a_migration_goes_to_stays_and_stays_labelled() {
    let policy = pods::targets();
    let target = json!({ "metadata": { "name": "virt-launcher-db-x", "labels": { "kubevirt.io/migrationJobUID": "1" } } });
    assert!(!Ask::delete(target.clone()).passes(&policy));
    assert!(Ask::delete(target.clone()).holding(MAY_DELETE_PODS).passes(&policy));
    assert!(Ask::delete(target.clone()).in_deleting_namespace().passes(&policy));
    let stripped = json!({ "metadata": { "name": "virt-launcher-db-x" } });
    assert!(!Ask::update(target.clone(), stripped).passes(&policy));
    let annotated = edited(&target, |pod| pod["metadata"]["annotations"] = json!({ "a": "b" }));
    assert!(Ask::update(target, annotated).passes(&policy));
    let selector = policy.spec.unwrap().match_constraints.unwrap().object_selector.unwrap();
    assert_eq!(selector.match_expressions.unwrap()[0].operator, "Exists");
}

#[test]
fn annotations_that_break_migrations_are_not_for_users() {
    let policy = machines::marks();
    let marks = [
        "kubevirt.io/func-test-force-launcher-migration-failure",
        "kubevirt.io/eviction-source",
        "kubevirt.io/testWorkloadUpdateMigrationAbortion",
    ];
    let plain =
        json!({ "metadata": { "name": "db" }, "spec": { "template": { "metadata": null, "spec": {} } } });
    assert!(Ask::create(plain.clone()).passes(&policy));
    for mark in marks {
        let map = json!({ mark: "x" });
        let machines = [
            json!({ "metadata": { "annotations": map }, "spec": {} }),
            json!({ "metadata": {}, "spec": { "template": { "metadata": { "annotations": map } } } }),
            json!({ "metadata": {}, "spec": { "virtualMachineTemplate": { "metadata": { "annotations": map } } } }),
            json!({ "metadata": {}, "spec": { "virtualMachineTemplate": { "spec": { "template": { "metadata": { "annotations": map } } } } } }),
        ];
        for machine in machines {
            assert!(!Ask::create(machine.clone()).passes(&policy), "{machine}");
            assert!(!Ask::update(plain.clone(), machine.clone()).passes(&policy));
            assert!(Ask::create(machine.clone()).holding(INFRA).passes(&policy));
            let touched = edited(&machine, |machine| machine["metadata"]["labels"] = json!({ "a": "b" }));
            assert!(Ask::update(machine.clone(), touched).passes(&policy));
            assert!(Ask::update(machine, plain.clone()).passes(&policy), "taking one off is welcome");
        }
    }
}

#[test]
fn leaving_eviction_to_others_is_warned_about_and_never_refused() {
    let policy = machines::external_eviction();
    let machine =
        json!({ "metadata": {}, "spec": { "template": { "spec": { "evictionStrategy": "External" } } } });
    let instance = json!({ "metadata": {}, "spec": { "evictionStrategy": "External" } });
    for odd in [machine.clone(), instance] {
        assert!(!Ask::create(odd).passes(&policy));
    }
    assert!(Ask::update(machine.clone(), machine).passes(&policy));
    assert!(
        Ask::create(json!({ "metadata": {}, "spec": { "evictionStrategy": "LiveMigrate" } })).passes(&policy)
    );
    for guard in [Guard::Warn, Guard::Deny] {
        let actions = parts::binding(&policy, guard).spec.validation_actions;
        assert_eq!(actions, ["Warn", "Audit"]);
    }
}

#[test]
fn the_roll_out_warns_before_it_denies() {
    let actions = |guard| parts::binding(&migrations::protected(), guard).spec.validation_actions;
    assert_eq!(actions(Guard::Warn), ["Warn", "Audit"]);
    assert_eq!(actions(Guard::Deny), ["Deny"]);
}

/// A guard that only warns is what the first installation brings.
#[test]
fn g4_h11_machines_are_kept_from_other_clusters_in_mode_warn_too() {
    for guard in [Guard::Warn, Guard::Deny] {
        let actions = parts::binding(&targets::targets(""), guard).spec.validation_actions;
        assert_eq!(actions, ["Deny"], "{guard:?}");
    }
}

#[test]
fn every_refusal_says_forbidden_and_why() {
    for policy in policies(&Settings::default()) {
        for validation in policy.spec.unwrap().validations.unwrap() {
            assert_eq!(validation.reason.as_deref(), Some("Forbidden"));
            assert!(!validation.message.unwrap().contains('\n'));
        }
    }
}

/// The guard as it would be found in a cluster.
struct Standing {
    settings: Settings,
    policies: Vec<ValidatingAdmissionPolicy>,
    bindings: Vec<ValidatingAdmissionPolicyBinding>,
    roles: Vec<k8s_openapi::api::rbac::v1::ClusterRole>,
    role_bindings: Vec<k8s_openapi::api::rbac::v1::ClusterRoleBinding>,
}

impl Standing {
    fn new(guard: Guard) -> Self {
        Self {
            settings: Settings { guard, ..Settings::default() },
            policies: policies(&Settings::default()),
            bindings: policy_bindings(guard),
            roles: vec![infrastructure_role()],
            role_bindings: vec![infrastructure_binding("kubevirt")],
        }
    }

    fn plan(&self) -> Plan {
        self.plan_after(&[])
    }

    fn plan_after(&self, repairs: &[(String, Timestamp)]) -> Plan {
        decide(&Observed {
            settings: &self.settings,
            policies: &self.policies,
            bindings: &self.bindings,
            mutating: None,
            cluster_roles: &self.roles,
            cluster_role_bindings: &self.role_bindings,
            repairs: Repairs { at: repairs, now: Timestamp::UNIX_EPOCH },
        })
    }
}

#[test]
fn a_guard_that_stands_is_left_alone_and_one_that_was_bent_is_straightened() {
    let mut standing = Standing::new(Guard::Deny);
    assert_eq!(standing.plan(), Plan::done());
    standing.policies[0].spec.as_mut().unwrap().match_constraints.as_mut().unwrap().exclude_resource_rules =
        Some(Vec::new());
    standing.bindings[1].spec.validation_actions = vec!["Audit".to_owned()];
    standing.role_bindings[0].subjects = Some(vec![subject("sa:drain:robot")]);
    let plan = standing.plan();
    let [Action::Patch(_, infra), Action::Patch(_, policy), Action::Patch(_, binding)] =
        plan.actions.as_slice()
    else {
        panic!("{plan:?}")
    };
    assert_eq!(infra["subjects"].as_array().unwrap().len(), 8, "whom an administrator added stays");
    assert_eq!(policy["spec"]["matchConstraints"], json!({ "excludeResourceRules": null }));
    assert_eq!(binding["spec"]["validationActions"], json!(["Deny"]));
}

#[test]
fn a_guard_that_somebody_keeps_bending_is_left_alone_for_a_while() {
    let mut standing = Standing::new(Guard::Deny);
    standing.bindings.remove(0);
    let of = |kind: &str| (format!("{kind}/nacre-migration-protected"), Timestamp::UNIX_EPOCH);
    let repair = of("ValidatingAdmissionPolicyBinding");
    let policys = of("ValidatingAdmissionPolicy");
    assert_eq!(
        standing.plan_after(&vec![policys; MAX_REPAIRS]).actions.len(),
        1,
        "its policy is another object"
    );
    assert_eq!(standing.plan_after(&vec![repair.clone(); MAX_REPAIRS - 1]).actions.len(), 1);
    let waiting = standing.plan_after(&vec![repair.clone(); MAX_REPAIRS]);
    assert!(waiting.actions.is_empty() && waiting.delay().is_some() && waiting.events[0].warning);
    assert_eq!(Standing::new(Guard::Deny).plan_after(&vec![repair; MAX_REPAIRS]), Plan::done());
}

#[test]
fn going_up_infrastructure_is_known_before_anything_is_refused() {
    let mut standing = Standing::new(Guard::Deny);
    standing.policies.clear();
    standing.bindings.clear();
    standing.roles.clear();
    standing.role_bindings.clear();
    let kinds: Vec<&str> = standing
        .plan()
        .actions
        .iter()
        .map(|action| match action {
            Action::Apply(object) => object.kind.name(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds[..2], ["ClusterRole", "ClusterRoleBinding"]);
    assert_eq!(kinds.len(), 2 + 2 * policies(&Settings::default()).len());
    assert!(kinds[2..10].iter().all(|kind| *kind == "ValidatingAdmissionPolicy"));
}

#[test]
fn from_warning_to_denying_only_bindings_change() {
    let mut standing = Standing::new(Guard::Warn);
    standing.settings.guard = Guard::Deny;
    let plan = standing.plan();
    // All but the one that never refuses, and the one that always does.
    assert_eq!(plan.actions.len(), policies(&Settings::default()).len() - 2);
    assert!(plan.actions.iter().all(|action| matches!(action, Action::Patch(target, _) if target.kind.name() == "ValidatingAdmissionPolicyBinding")));
}

#[test]
fn taken_down_only_what_is_the_guards_goes() {
    let mut standing = Standing::new(Guard::Deny);
    standing.settings.guard = Guard::Off;
    let mut other = policies(&Settings::default()).remove(0);
    other.metadata.name = Some("somebody-elses".to_owned());
    standing.policies.push(other);
    let plan = standing.plan();
    assert_eq!(plan.actions.len(), 2 * policies(&Settings::default()).len());
    assert!(plan.actions.iter().all(
        |action| matches!(action, Action::Delete(target) if target.name.starts_with("nacre-migration-"))
    ));
    assert!(
        policies(&Settings::default()).iter().all(|policy| policy.name_any().starts_with("nacre-migration-"))
    );
}

#[test]
fn a_grant_makes_nobody_infrastructure() {
    use crate::roles::{Era, Role};
    use planner::rbac::rules::{Request, allow};
    let verb = Request {
        group: "kubevirt.io",
        resource: "virtualmachineinstancemigrations",
        subresource: "",
        verb: VERB,
    };
    for role in Role::ALL {
        assert!(!allow(&role.rules(Era::Current), &verb) && !allow(&role.rules(Era::Old), &verb));
    }
    assert!(allow(&infrastructure_role().rules.unwrap(), &verb));
    assert!(INFRA.contains(VERB));
}

/// G4: a machine's memory is sent to another cluster, by whoever may create a migration
/// planted: one demand of the guard is left out
#[test]
fn g4_h11_machines_are_sent_only_where_the_administrators_allow() {
    let policy = targets::targets("a.example.com:1, b.example.com:2,it's:3");
    let none = targets::targets("");
    let sent = |url: &str| {
        edited(&own(), |object| object["spec"]["sendTo"] = json!({"connectURL": url, "migrationID": "m"}))
    };
    for url in ["evil.example.com:9185", "", "a.example.com:1,b.example.com:2", ",", "it's:3"] {
        let ask = Ask::create(sent(url));
        assert!(ask.is_refused_only_by(&policy, &["spec.sendTo"]), "{url}");
        assert!(!ask.passes(&none), "{url}");
        assert!(!Ask::update(own(), sent(url)).passes(&none), "{url}");
        assert!(ask.holding(INFRA).passes(&policy));
    }
    assert!(Ask::create(sent("b.example.com:2")).passes(&policy));
    assert!(!Ask::create(sent("b.example.com")).passes(&policy), "not a part of one");
    assert!(!Ask::create(sent("b.example.com:2")).passes(&none));
    assert!(Ask::create(own()).passes(&none));
    // What runs already can be ended.
    let running = sent("old.example.com:1");
    let ending = edited(&running, |object| object["metadata"]["finalizers"] = json!([]));
    assert!(Ask::update(running, ending).passes(&none));
}

/// G3: migrations that gather machines on chosen nodes
/// planted: one demand of the guard is left out
#[test]
fn g3_tenants_choose_no_nodes() {
    let policy = migrations::marks();
    let chosen = edited(&own(), |object| {
        object["spec"]["addedNodeSelector"] = json!({"kubernetes.io/hostname": "n1"});
    });
    assert!(Ask::create(chosen.clone()).is_refused_only_by(&policy, &["spec.addedNodeSelector"]));
    assert!(!Ask::update(own(), chosen.clone()).passes(&policy));
    assert!(Ask::create(chosen.clone()).holding(INFRA).passes(&policy));
    assert!(Ask::update(chosen.clone(), chosen).passes(&policy));
}
