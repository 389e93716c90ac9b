use jiff::{Timestamp, ToSpan};
use k8s_openapi::api::rbac::v1::AggregationRule;
use proptest::prelude::*;

use super::*;
use crate::{
    bridge,
    contest::MAX_REPAIRS,
    fixtures::{aggregated, bound, labelled, standard_roles},
    roles::MIGRATE,
    world::World,
};
use planner::kubevirt::Power;
use planner::rbac::rules::rule;

const TO_ADMIN: &str = "rbac.authorization.k8s.io/aggregate-to-admin";

fn rules_of(world: &World) -> Vec<(&'static str, Vec<k8s_openapi::api::rbac::v1::PolicyRule>)> {
    Role::ALL.map(|role| (role.name(), world.role(role.name()).unwrap().rules.clone().unwrap())).to_vec()
}

fn bare() -> World {
    let kubernetes =
        standard_roles(Era::Current).into_iter().filter(|role| !role.name_any().starts_with("kubevirt.io:"));
    World::new(kubernetes.collect(), &Settings { roles: Some(Era::Current), ..Settings::default() })
}

fn current() -> World {
    let mut world = bare();
    world.settle();
    world
}

#[test]
fn a_fresh_install_and_an_upgrade_end_alike() {
    let mut upgraded = World::before_upgrade();
    upgraded.settle();
    assert_alike(&upgraded, &current());
}

/// Whether the roles of two clusters give the same.
fn assert_alike(one: &World, other: &World) {
    for ((name, one), (_, other)) in rules_of(one).into_iter().zip(rules_of(other)) {
        assert!(rules::same(&one, &other), "{name}: {one:?} {other:?}");
    }
}

#[test]
fn what_the_roles_were_is_written_down_before_they_change_and_a_rollback_is_exact() {
    let mut world = World::before_upgrade();
    // A version of KubeVirt that nacre does not know, and a rule that an administrator has added.
    world.edit("kubevirt.io:edit", |role| {
        let rules = role.rules.as_mut().unwrap();
        rules.retain(|rule| rule.api_groups.as_ref().unwrap()[0] != "backup.kubevirt.io");
        rules.insert(0, rule(&["example.com"], &["things"], &["get"]));
    });
    let before = world.clone();
    for _ in 0..10 {
        let plan = world.plan();
        for action in &plan.actions {
            if matches!(action, Action::Patch(target, _) if target.name == "kubevirt.io:edit") {
                let record = world.settings().before_upgrade.unwrap();
                assert!(record.roles.contains_key("kubevirt.io:edit"));
            }
            world.carry_out(action);
        }
    }
    assert_eq!(world.plan(), Plan::done());
    let edit = world.role("kubevirt.io:edit").unwrap().rules.clone().unwrap();
    assert_eq!(
        edit,
        crate::narrow::narrowed(before.role("kubevirt.io:edit").unwrap().rules.as_deref().unwrap())
    );
    assert_eq!(edit[0], rule(&["example.com"], &["things"], &["get"]));
    assert_eq!(Power::given_by(&edit), []);
    // Drift after the upgrade does not change what was written down.
    world.edit("kubevirt.io:edit", |role| {
        role.rules.as_mut().unwrap().push(rule(
            &["kubevirt.io"],
            &["virtualmachineinstancemigrations"],
            &["*"],
        ));
    });
    world.settle();
    world.ask(Era::Old);
    world.settle();
    for name in ["kubevirt.io:admin", "kubevirt.io:view"] {
        assert_eq!(world.role(name).unwrap().rules, before.role(name).unwrap().rules);
    }
    let edit = world.role("kubevirt.io:edit").unwrap().rules.clone().unwrap();
    let was = before.role("kubevirt.io:edit").unwrap().rules.clone().unwrap();
    assert_eq!(Power::given_by(&edit), Power::given_by(&was));
    assert!(world.settings().before_upgrade.unwrap().rolled_back);
}

#[test]
fn what_is_settled_is_silent() {
    let world = current();
    assert_eq!(world.plan(), Plan::done());
}

#[test]
fn the_right_to_migrate_is_there_before_anything_is_taken_away() {
    let plan = World::before_upgrade().plan();
    let [Action::Patch(noted, _), Action::Apply(first)] = plan.actions.as_slice() else { panic!("{plan:?}") };
    assert_eq!((noted.kind, first.name()), (Kind::ConfigMap, MIGRATE));
}

#[test]
fn an_outline_shows_every_step_in_order() {
    let world = World::before_upgrade();
    let steps = outline(&world.observed(&world.settings()));
    let name = |action: &Action| match action {
        Action::Apply(object) => object.name().to_owned(),
        Action::Patch(target, _) => target.name.clone(),
        other => panic!("{other:?}"),
    };
    let names: Vec<_> = steps.actions.iter().map(name).collect();
    assert_eq!(names, [super::super::settings::NAME, MIGRATE, "kubevirt.io:edit", "kubevirt.io:admin"]);
}

#[test]
fn roles_nobody_asked_about_are_left_alone() {
    let mut world = World::before_upgrade();
    world.config.data = Some(Settings::default().data());
    assert_eq!(world.plan(), Plan::done());
}

#[test]
fn a_role_of_the_same_name_is_adopted_with_its_foreign_labels() {
    let mut world = current();
    world.edit(MIGRATE, |role| {
        role.metadata.labels = Some([("team".to_owned(), "virt".to_owned())].into());
        role.rules = None;
    });
    world.settle();
    let role = world.role(MIGRATE).unwrap();
    assert_eq!(role.labels()["team"], "virt");
    assert_eq!(role.labels()["kubevirt.io"], "");
    assert_eq!(role.rules, Some(Role::Migrate.rules(Era::Current)));
}

#[test]
fn where_an_operator_manages_the_roles_nacre_steps_aside() {
    let mut world = World::before_upgrade();
    let settings = world.settings();
    let seen = |world: &World, operator: Option<&'static str>, settings: &Settings| {
        decide(&Observed {
            settings,
            config: Some(&world.config),
            cluster_roles: &world.roles,
            virt_operator: operator,
            repairs: Repairs { at: &[], now: Timestamp::UNIX_EPOCH },
        })
    };
    assert_ne!(seen(&world, None, &settings), Plan::done());
    assert_eq!(seen(&world, Some("kubevirt"), &settings), Plan::done());
    world.edit("kubevirt.io:admin", |role| {
        role.annotations_mut().insert(OPERATORS_MARK.to_owned(), "v1.4.0".to_owned());
    });
    assert_eq!(seen(&world, None, &settings), Plan::done());
    let taken = Settings { take_over: true, ..settings };
    assert_ne!(seen(&world, None, &taken), Plan::done());
    assert_eq!(seen(&world, Some("kubevirt"), &taken), Plan::done());
}

/// A role, and what somebody does to it.
type Drift = (&'static str, fn(&mut ClusterRole));

#[test]
fn every_drift_of_our_own_is_repaired() {
    let wild = || rule(&["kubevirt.io"], &["*"], &["*"]);
    let drifts: [Drift; 7] = [
        (MIGRATE, |role| role.rules.as_mut().unwrap()[1].verbs.push("bind".to_owned())),
        (MIGRATE, |role| drop(role.rules.as_mut().unwrap()[1].verbs.pop())),
        ("kubevirt.io:admin", |role| {
            role.rules.as_mut().unwrap().push(rule(&["kubevirt.io"], &["*"], &["delete"]));
        }),
        ("kubevirt.io:edit", |role| {
            drop(role.labels_mut().remove("rbac.authorization.k8s.io/aggregate-to-edit"));
        }),
        ("kubevirt.io:view", |role| {
            role.labels_mut()
                .insert("rbac.authorization.k8s.io/aggregate-to-view".to_owned(), "false".to_owned());
        }),
        ("kubevirt.io:edit", |role| drop(role.labels_mut().remove("app.kubernetes.io/managed-by"))),
        (MIGRATE, |role| {
            let selectors = aggregated("edit").aggregation_rule;
            role.aggregation_rule = Some(AggregationRule { ..selectors.unwrap() });
        }),
    ];
    let good = current();
    for (name, drift) in drifts {
        let mut world = good.clone();
        world.edit(name, drift);
        world.edit("admin", |role| role.rules.as_mut().unwrap().push(wild()));
        world.settle();
        let rules = |name: &str| world.role(name).unwrap().rules.clone().unwrap();
        assert_eq!(
            Power::given_by(&rules(name)),
            Power::given_by(good.role(name).unwrap().rules.as_ref().unwrap()),
            "{name}"
        );
        assert_eq!(world.role(name).unwrap().labels(), good.role(name).unwrap().labels(), "{name}");
        assert_eq!(world.role(name).unwrap().aggregation_rule, None);
    }
}

#[test]
fn reordered_rules_are_no_drift() {
    let mut world = current();
    world.edit("kubevirt.io:admin", |role| role.rules.as_mut().unwrap().reverse());
    assert_eq!(world.plan(), Plan::done());
}

#[test]
fn custom_labels_stay_and_survive_the_deletion_of_the_role() {
    let mut world = current();
    labelled(&mut world.roles, MIGRATE, TO_ADMIN, "true");
    world.settle();
    assert_eq!(world.role(MIGRATE).unwrap().labels()[TO_ADMIN], "true");
    world.roles.retain(|role| role.name_any() != MIGRATE);
    world.settle();
    assert_eq!(world.role(MIGRATE).unwrap().labels()[TO_ADMIN], "true");

    world.edit(MIGRATE, |role| drop(role.labels_mut().remove(TO_ADMIN)));
    world.settle();
    world.roles.retain(|role| role.name_any() != MIGRATE);
    world.settle();
    assert!(!world.role(MIGRATE).unwrap().labels().contains_key(TO_ADMIN));
}

#[test]
fn rolling_back_restores_the_old_rules_and_keeps_the_opt_ins() {
    let mut world = current();
    labelled(&mut world.roles, MIGRATE, TO_ADMIN, "true");
    world.ask(Era::Old);
    world.settle();
    for role in [Role::Admin, Role::Edit] {
        let rules = world.role(role.name()).unwrap().rules.clone().unwrap();
        assert!(rules::same(&rules, &role.rules(Era::Old)), "{role:?}");
    }
    assert_eq!(world.role(MIGRATE).unwrap().labels()[TO_ADMIN], "true");
    world.ask(Era::Current);
    world.settle();
    assert_alike(&world, &current());
    assert_eq!(world.role(MIGRATE).unwrap().labels()[TO_ADMIN], "true");
}

#[test]
fn a_role_that_somebody_keeps_changing_is_left_alone_for_a_while() {
    let mut world = current();
    world.edit(MIGRATE, |role| role.rules = None);
    let now = Timestamp::UNIX_EPOCH + 1.hour();
    let plan = |ago: i64, times: usize| {
        decide(&Observed {
            settings: &world.settings(),
            config: Some(&world.config),
            cluster_roles: &world.roles,
            virt_operator: None,
            repairs: Repairs {
                at: &vec![(format!("ClusterRole/{MIGRATE}"), now - ago.seconds()); times],
                now,
            },
        })
    };
    assert_eq!(plan(10, MAX_REPAIRS - 1).actions.len(), 1);
    let waiting = plan(10, MAX_REPAIRS);
    assert!(waiting.actions.is_empty() && waiting.delay() == Some(CONTEST));
    assert_eq!(waiting.events[0].reason, ROLES_CONTESTED);
    assert_eq!(plan(700, MAX_REPAIRS).actions.len(), 1);

    // That is about one role, and says nothing of the others.
    let other = decide(&Observed {
        settings: &world.settings(),
        config: Some(&world.config),
        cluster_roles: &world.roles,
        virt_operator: None,
        repairs: Repairs { at: &vec![("ClusterRole/kubevirt.io:view".to_owned(), now); MAX_REPAIRS], now },
    });
    assert_eq!(other.actions.len(), 1);

    // Somebody who keeps deleting it means it as much.
    world.roles.retain(|role| role.name_any() != MIGRATE);
    let deleted = decide(&Observed {
        settings: &world.settings(),
        config: Some(&world.config),
        cluster_roles: &world.roles,
        virt_operator: None,
        repairs: Repairs { at: &vec![(format!("ClusterRole/{MIGRATE}"), now); MAX_REPAIRS], now },
    });
    assert!(deleted.actions.is_empty());
}

#[test]
fn bridges_and_custom_roles_are_never_touched() {
    let mut world = World::before_upgrade();
    world.roles.extend(bridge::roles());
    world.edit(bridge::NAME, |role| role.rules = None);
    let before = world.role(bridge::NAME).cloned();
    world.settle();
    assert_eq!(world.role(bridge::NAME).cloned(), before);
}

/// What may happen between two writes of ours.
#[derive(Clone, Debug)]
enum Meanwhile {
    /// The aggregation controller gets round to one role.
    Aggregated(&'static str),
    /// nacre takes a step: the first so many actions of its plan, and dies.
    Step(usize),
}

fn meanwhile() -> impl Strategy<Value = Vec<Meanwhile>> {
    let one = prop_oneof![
        prop::sample::select(vec!["view", "edit", "admin"]).prop_map(Meanwhile::Aggregated),
        (0..4_usize).prop_map(Meanwhile::Step),
    ];
    prop::collection::vec(one, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However the aggregation controller lags and wherever nacre dies, whoever is bridged or bound in advance always may, and
    /// the end is the same.
    #[test]
    fn an_upgrade_disrupts_nobody_and_always_arrives(story in meanwhile(), bridged_early in any::<bool>()) {
        let mut world = World::before_upgrade();
        world.bindings = vec![
            bound("shop", "owners", "admin", &["user:ann"]),
            bound("shop", "editors", "edit", &["user:ed"]),
            bound("shop", "migrate", MIGRATE, &["user:pre"]),
            bound("shop", "direct", "kubevirt.io:edit", &["user:pre"]),
        ];
        world.roles.extend(bridge::roles());
        if bridged_early {
            world.settle_aggregation();
        }
        for event in story {
            match event {
                Meanwhile::Aggregated(name) => world.aggregate(name),
                Meanwhile::Step(count) => {
                    for action in world.plan().actions.iter().take(count) {
                        world.carry_out(action);
                        prop_assert!(world.may("pre", Power::Create), "bound in advance");
                    }
                }
            }
            for (user, power) in [("ann", Power::DeleteCollection), ("ed", Power::Migrate), ("pre", Power::Delete)] {
                prop_assert!(world.may(user, power), "{user} lost {power:?}");
            }
        }
        world.settle();
        assert_alike(&world, &current());
    }
}
