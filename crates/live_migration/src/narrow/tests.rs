use proptest::prelude::*;

use super::*;
use crate::roles::{Era, Role};

const G8: &[&str] = &["get", "delete", "create", "update", "patch", "list", "watch", "deletecollection"];
const G7: &[&str] = &["get", "delete", "create", "update", "patch", "list", "watch"];

/// What matters of `admin` (8 verbs) or `edit` (7 verbs) in KubeVirt 1.3 and 1.4, in KubeVirt's order: migrations
/// stand among the machines, and `migrate` among the actions.
fn until_1_4(verbs: &[&str]) -> Vec<PolicyRule> {
    vec![
        rule(&[SUBRESOURCES], &["virtualmachineinstances/console", "virtualmachineinstances/vnc"], &["get"]),
        rule(
            &[SUBRESOURCES],
            &["virtualmachineinstances/pause", "virtualmachineinstances/unpause"],
            &["update"],
        ),
        rule(&[SUBRESOURCES], &["virtualmachines/expand-spec", "virtualmachines/portforward"], &["get"]),
        rule(
            &[SUBRESOURCES],
            &[
                "virtualmachines/start",
                "virtualmachines/stop",
                "virtualmachines/restart",
                "virtualmachines/migrate",
            ],
            &["update"],
        ),
        rule(&[SUBRESOURCES], &["expand-vm-spec"], &["update"]),
        rule(
            &[KUBEVIRT],
            &[
                "virtualmachines",
                "virtualmachineinstances",
                "virtualmachineinstancepresets",
                "virtualmachineinstancereplicasets",
                MIGRATIONS,
            ],
            verbs,
        ),
        rule(&["snapshot.kubevirt.io"], &["virtualmachinesnapshots", "virtualmachinerestores"], verbs),
        rule(&["migrations.kubevirt.io"], &["migrationpolicies"], &READ),
    ]
}

/// The same in KubeVirt 1.5 and 1.6, and with `evacuate/cancel` in 1.7.
fn since_1_5(verbs: &[&str], cancels_evacuation: bool) -> Vec<PolicyRule> {
    let mut rules = until_1_4(verbs);
    let actions = rules[3].resources.as_mut().unwrap();
    actions.retain(|name| name != "virtualmachines/migrate");
    if cancels_evacuation {
        actions.push("virtualmachines/evacuate/cancel".to_owned());
    }
    rules[5].resources.as_mut().unwrap().pop();
    rules.insert(6, rule(&[KUBEVIRT], &[MIGRATIONS], &READ));
    rules
}

#[test]
fn an_upgrade_takes_out_of_1_4_what_kubevirts_own_does_and_nothing_else() {
    for verbs in [G8, G7] {
        assert_eq!(narrowed(&until_1_4(verbs)), since_1_5(verbs, false));
    }
}

#[test]
fn the_rules_of_later_versions_stay_as_they_are() {
    for rules in [since_1_5(G8, false), since_1_5(G7, true), Role::Edit.rules(Era::Current)] {
        assert_eq!(narrowed(&rules), rules);
    }
}

#[test]
fn a_star_becomes_everything_but_migrations() {
    let stars = [
        rule(&[KUBEVIRT], &["*"], &["*"]),
        rule(&[SUBRESOURCES], &["*"], &["update"]),
        rule(&["pool.kubevirt.io", KUBEVIRT], &["*"], &["delete"]),
    ];
    let left = narrowed(&stars);
    assert_eq!(Power::given_by(&left), []);
    let allows = |group, resource, subresource, verb| {
        rules::allow(&left, &rules::Request { group, resource, subresource, verb })
    };
    assert!(allows(KUBEVIRT, "virtualmachines", "", "create"));
    assert!(allows(KUBEVIRT, MIGRATIONS, "", "watch"));
    assert!(allows(SUBRESOURCES, "virtualmachines", "start", "update"));
    assert!(allows("pool.kubevirt.io", "virtualmachinepools", "", "delete"));
}

#[test]
fn what_somebody_added_since_stays_when_the_permissions_come_back() {
    let before = until_1_4(G7);
    let mut now = narrowed(&before);
    now.push(rule(&["example.com"], &["things"], &["get"]));
    let back = widened(&now, Some(&before), &[]);
    assert_eq!(back[..now.len()], now);
    assert_eq!(Power::given_by(&back), Power::given_by(&before));
}

fn words(from: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    prop::sample::subsequence(from.to_vec(), 1..=from.len())
        .prop_map(|words| words.into_iter().map(str::to_owned).collect())
}

fn any_rule() -> impl Strategy<Value = PolicyRule> {
    let groups = words(&[KUBEVIRT, SUBRESOURCES, "snapshot.kubevirt.io", "", "*"]);
    let resources =
        words(&[MIGRATIONS, "virtualmachines", "virtualmachines/migrate", "*/migrate", "pods", "*"]);
    let verbs = words(&["get", "watch", "create", "update", "deletecollection", "*"]);
    let names = prop::option::weighted(0.2, words(&["a", "b"]));
    (groups, resources, verbs, names).prop_map(|(groups, resources, verbs, names)| PolicyRule {
        api_groups: Some(groups),
        resources: Some(resources),
        verbs,
        resource_names: names,
        ..PolicyRule::default()
    })
}

proptest! {
    /// Whatever the rules are: nobody may migrate afterwards, a second upgrade changes nothing, what has nothing to do
    /// with migrations is there as it was, and rolling back is exact.
    #[test]
    fn an_upgrade_removes_only_migration_and_a_rollback_is_exact(rules in prop::collection::vec(any_rule(), 0..8)) {
        let after = narrowed(&rules);
        prop_assert!(!after.iter().any(lets_migrate));
        prop_assert_eq!(&narrowed(&after), &after);
        for rule in rules.iter().filter(|rule| !lets_migrate(rule)) {
            prop_assert!(after.contains(rule), "{rule:?} is gone");
        }
        for rule in &after {
            for verb in &rule.verbs {
                let was = rules.iter().any(|old| old.verbs.contains(verb) || old.verbs.iter().any(|verb| verb == "*"));
                prop_assert!(was, "{verb} is new");
            }
        }
        prop_assert_eq!(widened(&after, Some(&rules), &[]), rules);
    }
}
