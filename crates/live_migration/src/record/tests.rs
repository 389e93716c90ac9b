use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use proptest::prelude::*;

use super::*;
use crate::{
    fixtures::{any_rule, cluster_role, labelled, standard_roles},
    kubevirt_versions::{VERSIONS, rules_in},
    narrow::lets_migrate,
    roles::{Era, MIGRATE},
    settings::Settings,
    world::World,
};

/// What selects the roles that some of these are made of.
const PART: &str = "example.com/part-of-kubevirt";

/// Kubernetes' own roles, and these.
fn cluster(roles: Vec<ClusterRole>) -> World {
    let kubernetes = standard_roles(Era::Old).into_iter();
    let mut all: Vec<_> = kubernetes.filter(|role| !role.name_any().starts_with("kubevirt.io:")).collect();
    all.extend(roles);
    let mut world = World::new(all, &Settings::default());
    world.settle_aggregation();
    world
}

/// Everything of a role but its version: labels, rules, aggregation.
type Content = (BTreeMap<String, String>, Vec<PolicyRule>, Option<AggregationRule>);

fn content(role: &ClusterRole) -> Content {
    (role.labels().clone(), role.rules.clone().unwrap_or_default(), role.aggregation_rule.clone())
}

fn roles_of(world: &World) -> BTreeMap<&'static str, Content> {
    let found = |role: Role| Some((role.name(), content(world.role(role.name())?)));
    Role::OF_KUBERNETES.into_iter().filter_map(found).collect()
}

fn any_labels(role: Role) -> impl Strategy<Value = BTreeMap<String, String>> {
    let ours: Vec<_> = role
        .labels()
        .into_iter()
        .map(|(key, value)| {
            let value = prop_oneof![Just(Some(value)), Just(None), Just(Some("other".to_owned()))];
            value.prop_map(move |value| value.map(|value| (key.clone(), value)))
        })
        .collect();
    (ours, any::<bool>()).prop_map(|(ours, is_foreign)| {
        let foreign = is_foreign.then(|| ("team".to_owned(), "virt".to_owned()));
        ours.into_iter().flatten().chain(foreign).collect()
    })
}

fn any_role(role: Role) -> impl Strategy<Value = ClusterRole> {
    let rules = prop::collection::vec(any_rule(), 0..6);
    (rules, any_labels(role), prop::bool::weighted(0.25)).prop_map(move |(rules, labels, is_aggregated)| {
        let selector = LabelSelector {
            match_labels: Some([(PART.to_owned(), "true".to_owned())].into()),
            ..Default::default()
        };
        let mut found = cluster_role(role.name(), rules);
        found.metadata.labels = Some(labels);
        found.aggregation_rule =
            is_aggregated.then(|| AggregationRule { cluster_role_selectors: Some(vec![selector]) });
        found
    })
}

/// At least one of the three, perhaps the role to migrate, and a role that some may be made of.
fn any_roles() -> impl Strategy<Value = Vec<ClusterRole>> {
    let some = prop::sample::subsequence(Role::OF_KUBERNETES.to_vec(), 1..=3);
    let roles = some.prop_flat_map(|some| some.into_iter().map(any_role).collect::<Vec<_>>());
    (roles, prop::collection::vec(any_rule(), 0..4), any::<bool>()).prop_map(
        |(mut roles, rules, is_there)| {
            roles.push(cluster_role("custom", rules));
            roles.extend(is_there.then(|| cluster_role(MIGRATE, Vec::new())));
            labelled(&mut roles, "custom", PART, "true");
            roles
        },
    )
}

/// nacre carries out so many actions of its plan and dies, again and again.
fn crashes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..4_usize, 0..4)
}

fn with_crashes(world: &mut World, crashes: &[usize]) {
    for count in crashes {
        world.plan().actions.iter().take(*count).for_each(|action| world.carry_out(action));
        world.settle_aggregation();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever the roles are and wherever nacre dies: after an upgrade nobody may migrate by them and all else is as it was.
    /// After a rollback they are what they were. So it is the second time.
    #[test]
    fn an_upgrade_and_a_rollback_are_exact(
        roles in any_roles(),
        (up, down) in (crashes(), crashes()),
        by_hand in any::<bool>(),
    ) {
        let mut world = cluster(roles);
        let before = roles_of(&world);
        for _ in 0..2 {
            if by_hand { world.ask_by_hand(Era::Current) } else { world.ask(Era::Current) }
            with_crashes(&mut world, &up);
            world.settle();
            let after = roles_of(&world);
            prop_assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
            for (name, (labels, rules, _)) in &after {
                let (old_labels, old_rules, _) = &before[name];
                prop_assert!(!rules.iter().any(lets_migrate), "{name} lets somebody migrate");
                let kept: Vec<_> = old_rules.iter().filter(|rule| !lets_migrate(rule)).collect();
                let there: Vec<_> = rules.iter().filter(|rule| kept.contains(rule)).collect();
                prop_assert_eq!(there, kept);
                prop_assert_eq!(labels.get("team"), old_labels.get("team"));
            }
            world.ask(Era::Old);
            with_crashes(&mut world, &down);
            world.settle();
            prop_assert_eq!(&roles_of(&world), &before);
            prop_assert!(world.role(MIGRATE).is_some());
        }
    }

    /// The same if somebody changes their mind while nacre is at it.
    #[test]
    fn a_rollback_in_the_middle_of_an_upgrade_is_exact(roles in any_roles(), up in crashes(), down in crashes()) {
        let mut world = cluster(roles);
        let before = roles_of(&world);
        for _ in 0..2 {
            world.ask(Era::Current);
            with_crashes(&mut world, &up);
            world.ask(Era::Old);
            with_crashes(&mut world, &down);
        }
        world.settle();
        prop_assert_eq!(roles_of(&world), before);
    }
}

/// A cluster as this version of KubeVirt left it.
fn kubevirt(minor: u32) -> World {
    let made = |role: Role| ClusterRole {
        metadata: ObjectMeta { resource_version: Some("1".to_owned()), ..role.object(Era::Old).metadata },
        rules: Some(rules_in(minor, role)),
        aggregation_rule: None,
    };
    cluster(Role::OF_KUBERNETES.map(made).to_vec())
}

#[test]
fn every_version_of_kubevirt_is_upgraded_and_rolled_back_exactly() {
    for minor in VERSIONS {
        let mut world = kubevirt(minor);
        let before = roles_of(&world);
        world.ask(Era::Current);
        world.settle();
        let changed: BTreeSet<_> = roles_of(&world)
            .into_iter()
            .filter(|(name, role)| before[name] != *role)
            .map(|(name, _)| name)
            .collect();
        let expected: &[&str] = if minor < 5 { &["kubevirt.io:admin", "kubevirt.io:edit"] } else { &[] };
        assert_eq!(changed, expected.iter().copied().collect(), "1.{minor}");
        world.ask(Era::Old);
        world.settle();
        assert_eq!(roles_of(&world), before, "1.{minor}");
    }
}

#[test]
fn once_rolled_back_the_roles_are_left_alone() {
    let mut world = kubevirt(4);
    world.ask(Era::Current);
    world.settle();
    world.ask(Era::Old);
    world.settle();
    world.edit("kubevirt.io:edit", |role| {
        role.rules = None;
        role.labels_mut().clear();
    });
    world.roles.retain(|role| role.name_any() != "kubevirt.io:view");
    let before = roles_of(&world);
    world.settle();
    assert_eq!(roles_of(&world), before);
    // The next upgrade begins with these.
    world.ask(Era::Current);
    world.settle();
    world.ask(Era::Old);
    world.settle();
    assert_eq!(roles_of(&world), before);
}

#[test]
fn a_role_that_somebody_deletes_comes_back_as_it_was() {
    let mut world = kubevirt(4);
    world.edit("kubevirt.io:edit", |role| _ = role.labels_mut().remove("kubevirt.io"));
    labelled(&mut world.roles, "kubevirt.io:edit", "team", "virt");
    let before = roles_of(&world);
    world.ask(Era::Current);
    world.settle();
    let upgraded = roles_of(&world);
    world.roles.retain(|role| role.name_any() != "kubevirt.io:edit");
    world.settle();
    assert_eq!(roles_of(&world), upgraded);
    world.roles.retain(|role| role.name_any() != "kubevirt.io:edit");
    world.ask(Era::Old);
    world.settle();
    assert_eq!(roles_of(&world), before);
}

#[test]
fn a_role_that_comes_after_the_upgrade_is_written_down_before_it_is_changed() {
    let mut world = kubevirt(4);
    let edit = world.role("kubevirt.io:edit").unwrap().clone();
    world.roles.retain(|role| role.name_any() != "kubevirt.io:edit");
    world.ask(Era::Current);
    world.settle();
    assert!(world.role("kubevirt.io:edit").is_none(), "nacre does not make it");
    world.roles.push(edit.clone());
    world.settle();
    assert!(!rules_of(world.role("kubevirt.io:edit").unwrap()).iter().any(lets_migrate));
    world.ask(Era::Old);
    world.settle();
    assert_eq!(content(world.role("kubevirt.io:edit").unwrap()), content(&edit));
}
