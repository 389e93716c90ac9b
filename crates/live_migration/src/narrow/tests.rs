use proptest::prelude::*;

use super::*;
use crate::{
    fixtures::any_rule,
    kubevirt_versions::rules_in,
    roles::{Era, Role},
};

/// KubeVirt 1.5 took away the permissions to migrate, and gave one that has nothing to do with them.
#[test]
fn an_upgrade_takes_out_of_1_3_and_1_4_what_kubevirts_own_did_and_nothing_else() {
    for role in [Role::Admin, Role::Edit, Role::View] {
        let mut since_1_5 = rules_in(5, role);
        for rule in &mut since_1_5 {
            rule.resources.as_mut().unwrap().retain(|name| name != "virtualmachineinstances/reset");
        }
        assert_eq!(narrowed(&rules_in(4, role)), since_1_5, "{role:?}");
        for rule in &mut since_1_5 {
            rule.resources.as_mut().unwrap().retain(|name| name != "virtualmachineinstances/usbredir");
        }
        assert_eq!(narrowed(&rules_in(3, role)), since_1_5, "{role:?}");
    }
    let gave = |minor, role| Power::given_by(&rules_in(minor, role));
    for minor in [3, 4] {
        assert_eq!(gave(minor, Role::Admin), Power::ALL);
        assert_eq!(gave(minor, Role::Edit).len(), Power::ALL.len() - 1);
        assert_eq!(gave(minor, Role::View), []);
    }
}

#[test]
fn the_rules_of_later_versions_stay_as_they_are() {
    for (minor, role) in (5..=7).flat_map(|minor| Role::OF_KUBERNETES.map(|role| (minor, role))) {
        assert_eq!(narrowed(&rules_in(minor, role)), rules_in(minor, role), "1.{minor} {role:?}");
    }
    for role in Role::OF_KUBERNETES {
        assert_eq!(narrowed(&role.rules(Era::Current)), role.rules(Era::Current), "{role:?}");
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
fn a_star_as_group_keeps_what_the_rule_names() {
    let mixed = rule(&["*"], &["virtualmachines", MIGRATIONS, "*/migrate"], &["get", "create", "update"]);
    let left = [
        rule(&["*"], &["virtualmachines"], &["get", "create", "update"]),
        rule(&["*"], &[MIGRATIONS], &["get"]),
    ];
    assert_eq!(narrowed(&[mixed]), left);
}

#[test]
fn what_somebody_added_since_stays_when_the_permissions_come_back() {
    let before = rules_in(4, Role::Edit);
    let mut now = narrowed(&before);
    now.push(rule(&["example.com"], &["things"], &["get"]));
    let back = widened(&now, &before);
    assert_eq!(back[..now.len()], now);
    assert_eq!(Power::given_by(&back), Power::given_by(&before));
    assert_eq!(widened(&back, &before), back, "once");
}

#[test]
fn a_permission_for_single_objects_comes_back_for_these_and_no_others() {
    let named = PolicyRule {
        resource_names: Some(vec!["db".to_owned()]),
        ..rule(&[KUBEVIRT], &[MIGRATIONS], &["get", "delete"])
    };
    let now = vec![rule(&["example.com"], &["things"], &["get"])];
    let back = widened(&now, std::slice::from_ref(&named));
    assert_eq!(back[1..], [PolicyRule { verbs: vec!["delete".to_owned()], ..named }]);
    assert_eq!(Power::given_by(&back), []);
}

/// What KubeVirt's two groups have, and kinds of others.
fn requests() -> impl Iterator<Item = rules::Request> {
    let of = |group, named: &'static str| {
        let (resource, subresource) = named.split_once('/').unwrap_or((named, ""));
        Power::ALL.into_iter().map(|power| power.request().verb).chain(READ).map(move |verb| rules::Request {
            group,
            resource,
            subresource,
            verb,
        })
    };
    let machines = MACHINES.into_iter().chain([MIGRATIONS]).map(|name| (KUBEVIRT, name));
    let actions = MACHINE_SUBRESOURCES.into_iter().chain([MIGRATE[0]]).map(|name| (SUBRESOURCES, name));
    let others = ["pods", "virtualmachines", MIGRATIONS, "virtualmachines/migrate"];
    let elsewhere = ["", "snapshot.kubevirt.io", "example.com"];
    let elsewhere = elsewhere.into_iter().flat_map(move |group| others.map(|name| (group, name)));
    machines.chain(actions).chain(elsewhere).flat_map(move |(group, name)| of(group, name))
}

/// Whether a rule names the resource of a request, or its group, and not only by a star for both.
fn names(rule: &PolicyRule, request: &rules::Request) -> bool {
    let plain = request.subresource.is_empty();
    let resource = rule.resources.iter().flatten().any(|name| plain && name == request.resource);
    resource || rule.api_groups.iter().flatten().any(|group| group == request.group)
}

proptest! {
    /// Whatever the rules are: nobody may migrate afterwards, a second upgrade changes nothing, and what has nothing to do
    /// with migrations is there as it was.
    #[test]
    fn an_upgrade_removes_only_migration(rules in prop::collection::vec(any_rule(), 0..8)) {
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
    }

    /// A rule that gives migrations next to other things answers everything but writes of migrations as before, and for the
    /// same object names. A star stands for what KubeVirt's two groups have, and for reading in all others.
    #[test]
    fn the_other_permissions_of_a_mixed_rule_stay(rule in any_rule()) {
        let has = |words: &Option<Vec<String>>, wanted: &str| words.iter().flatten().any(|word| word == wanted);
        let star_as_group = has(&rule.api_groups, "*");
        let after = narrowed(std::slice::from_ref(&rule));
        for request in requests() {
            let read = READ.contains(&request.verb);
            let is_kubevirts = [KUBEVIRT, SUBRESOURCES].contains(&request.group);
            let writes_migrations = request.subresource == "migrate" || request.resource == MIGRATIONS && !read;
            let unlisted = has(&rule.resources, "*") && star_as_group && !is_kubevirts && !read;
            if writes_migrations && (is_kubevirts || star_as_group) || unlisted && !names(&rule, &request) {
                continue;
            }
            let stays = after.iter().find_map(|part| rules::reach(part, &request));
            prop_assert_eq!(stays, rules::reach(&rule, &request), "{:?}", request);
        }
    }

    /// Whatever somebody has made of a role since: all that migrated may again, and nothing else has changed.
    #[test]
    fn a_rollback_gives_back_every_permission_to_migrate(
        before in prop::collection::vec(any_rule(), 0..6),
        now in prop::collection::vec(any_rule(), 0..6),
    ) {
        let back = widened(&now, &before);
        for part in before.iter().flat_map(only_migration) {
            prop_assert!(covers(&back, &part), "{part:?} is not back");
        }
        prop_assert!(back == before || back.starts_with(&now));
        prop_assert!(back == before || back[now.len()..].iter().all(|part| covers(&before, part)));
        prop_assert_eq!(widened(&back, &before), back);
    }
}
