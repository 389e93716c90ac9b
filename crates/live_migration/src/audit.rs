//! Watches who can migrate. The answer stands on the settings ConfigMap and changes only when the answer changes, so a
//! right that somebody handed out unnoticed is a write, an Event and a step of a counter.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use api::Kind;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use planner::plan::{Action, Event, Plan, Target};
use planner::rbac::Rbac;
use serde_json::json;

use super::who_can::rights;

/// The annotation with the answer, one subject and place a line.
pub const WHO_CAN: &str = "nacre.dev/who-can-migrate";

/// Event reason: the answer is another one.
pub const RIGHTS_CHANGED: &str = "MigrationRightsChanged";

/// How many lines are written down. More would not fit into an annotation.
const LINES: usize = 1000;

/// How many of them an Event names.
const NAMED: usize = 5;

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Who can do what where, sorted.
    pub lines: Vec<String>,
    /// How many subjects can migrate machines in all namespaces.
    pub everywhere: usize,
    /// How many can in some namespaces.
    pub in_namespaces: usize,
}

/// Asks RBAC who can migrate.
pub fn audit(rbac: &Rbac) -> Audit {
    let mut found: BTreeMap<(String, String), Vec<&str>> = BTreeMap::new();
    let (mut everywhere, mut in_namespaces) = (BTreeSet::new(), BTreeSet::new());
    for right in rights(rbac) {
        let who = right.who.to_string();
        let place = right
            .scope
            .namespace()
            .map_or_else(|| "all namespaces".to_owned(), |name| format!("namespace {name}"));
        let counted = if right.scope.namespace().is_none() { &mut everywhere } else { &mut in_namespaces };
        counted.insert(who.clone());
        found.entry((who, place)).or_default().push(right.power.name());
    }
    let line = |((who, place), powers): ((String, String), Vec<&str>)| {
        format!("{who} in {place}: {}", powers.join(", "))
    };
    Audit {
        lines: found.into_iter().map(line).collect(),
        everywhere: everywhere.len(),
        in_namespaces: in_namespaces.len(),
    }
}

impl Audit {
    /// As it is written down: the lines, and for those that do not fit their number and a checksum.
    fn text(&self) -> String {
        let (shown, rest) = self.lines.split_at(self.lines.len().min(LINES));
        let mut text = shown.join("\n");
        if !rest.is_empty() {
            // Writing to a text does not fail.
            let _ = write!(text, "\nand {} more ({:016x})", rest.len(), checksum(rest));
        }
        text
    }
}

/// FNV-1a: the same in every version of the program.
fn checksum(lines: &[String]) -> u64 {
    let bytes = lines.iter().flat_map(|line| line.bytes().chain([b'\n']));
    bytes.fold(0xCBF2_9CE4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
}

/// Decides whether to write the answer down. The first answer is no change.
pub fn decide(config: &ConfigMap, audit: &Audit) -> Plan {
    let text = audit.text();
    let old = config.annotations().get(WHO_CAN);
    if old == Some(&text) {
        return Plan::done();
    }
    let patch = json!({"metadata": {"annotations": {WHO_CAN: text}}});
    let plan = Plan::done().then(Action::Patch(Target::of(Kind::ConfigMap, &config.metadata), patch));
    match old {
        Some(old) => plan.with_event(Event::warning(RIGHTS_CHANGED, difference(old, &text))),
        None => plan,
    }
}

fn difference(old: &str, new: &str) -> String {
    let (old, new): (BTreeSet<&str>, BTreeSet<&str>) = (old.lines().collect(), new.lines().collect());
    let named = |lines: Vec<&str>| {
        let more = lines.len().saturating_sub(NAMED);
        let mut text = lines.into_iter().take(NAMED).collect::<Vec<_>>().join("; ");
        if more > 0 {
            let _ = write!(text, "; and {more} more");
        }
        if text.is_empty() { "nobody".to_owned() } else { text }
    };
    let (gained, lost) = (new.difference(&old).copied().collect(), old.difference(&new).copied().collect());
    format!("who can migrate machines changed; new: {}; no longer: {}", named(gained), named(lost))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{bound, bound_everywhere, standard_roles};
    use crate::roles::{Era, MIGRATE};

    fn cluster() -> Rbac {
        Rbac { cluster_roles: standard_roles(Era::Current), ..Rbac::default() }
    }

    fn written(config: &ConfigMap, plan: &Plan) -> ConfigMap {
        let mut config = config.clone();
        for action in &plan.actions {
            let Action::Patch(_, patch) = action else { panic!("{action:?}") };
            let text = patch["metadata"]["annotations"][WHO_CAN].as_str().unwrap().to_owned();
            config.annotations_mut().insert(WHO_CAN.to_owned(), text);
        }
        config
    }

    /// G6: the right to migrate is handed out unnoticed
    #[test]
    fn g6_a_right_that_is_handed_out_is_one_write_and_one_event() {
        let mut rbac = cluster();
        let config = ConfigMap::default();
        let first = decide(&config, &audit(&rbac));
        assert_eq!((first.actions.len(), first.events.len()), (1, 0), "the first answer is no change");
        let config = written(&config, &first);
        assert_eq!(decide(&config, &audit(&rbac)), Plan::done());

        rbac.role_bindings.push(bound("shop", "m", MIGRATE, &["user:ann"]));
        rbac.cluster_role_bindings.push(bound_everywhere("ops", MIGRATE, &["group:ops"]));
        let found = audit(&rbac);
        assert_eq!((found.everywhere, found.in_namespaces), (1, 1));
        let second = decide(&config, &found);
        let note = &second.events[0].note;
        assert!(note.contains("user ann in namespace shop: create"), "{note}");
        assert!(note.contains("group ops in all namespaces: create"), "{note}");
        let config = written(&config, &second);
        assert_eq!(decide(&config, &audit(&rbac)), Plan::done(), "reported once");

        rbac.role_bindings.clear();
        let third = decide(&config, &audit(&rbac));
        assert!(third.events[0].note.contains("no longer: user ann"), "{}", third.events[0].note);
    }

    #[test]
    fn g6_a_change_beyond_what_is_written_down_is_noticed_too() {
        let mut rbac = cluster();
        let many = |number: usize| bound(&format!("n{number:05}"), "m", MIGRATE, &["user:ann"]);
        rbac.role_bindings = (0..LINES + 2).map(many).collect();
        let config = written(&ConfigMap::default(), &decide(&ConfigMap::default(), &audit(&rbac)));
        assert!(config.annotations()[WHO_CAN].len() < 200_000);
        rbac.role_bindings.pop();
        rbac.role_bindings.push(many(99_999));
        assert_eq!(decide(&config, &audit(&rbac)).events.len(), 1, "as many as before, and others");
    }
}
