//! The four roles KubeVirt gives to users, as values.
//!
//! Until 1.4 whoever had `admin` or `edit` in a namespace could also create and delete migrations there. Since 1.5 that takes
//! `kubevirt.io:migrate`, which nobody has until somebody grants it.

use std::collections::BTreeMap;

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::core::ObjectMeta;

use planner::kubevirt::{KUBEVIRT, MIGRATIONS, SUBRESOURCES};
use planner::rbac::rules::rule;

/// The role that carries the permission to migrate.
pub const MIGRATE: &str = "kubevirt.io:migrate";
/// Labels of this prefix make the aggregation controller add a role to another.
pub const AGGREGATE: &str = "rbac.authorization.k8s.io/aggregate-to-";

const ALL_VERBS: &[&str] =
    &["get", "delete", "create", "update", "patch", "list", "watch", "deletecollection"];
/// What `edit` had: it never could delete a whole collection.
const EDIT_VERBS: &[&str] = &["get", "delete", "create", "update", "patch", "list", "watch"];
const READ: &[&str] = &["get", "list", "watch"];

/// One of the four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The permission to migrate, which only a grant gives.
    Migrate,
    /// What everyone with `view` gets.
    View,
    /// What everyone with `edit` gets.
    Edit,
    /// What everyone with `admin` gets.
    Admin,
}

/// Which set of rules the roles shall have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Era {
    /// Up to KubeVirt 1.4: `admin` and `edit` may migrate.
    Old,
    /// Since KubeVirt 1.5: only who was granted it may.
    #[default]
    Current,
}

impl Role {
    /// All four, in the order in which an upgrade may touch them: what is newly needed comes before what is taken away.
    pub const ALL: [Self; 4] = [Self::Migrate, Self::View, Self::Edit, Self::Admin];

    /// Those that are part of Kubernetes' own `view`, `edit` and `admin`. KubeVirt's versions differ in them, and administrators
    /// change them.
    pub const OF_KUBERNETES: [Self; 3] = [Self::View, Self::Edit, Self::Admin];

    /// Its name in the cluster.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Migrate => MIGRATE,
            Self::View => "kubevirt.io:view",
            Self::Edit => "kubevirt.io:edit",
            Self::Admin => "kubevirt.io:admin",
        }
    }

    /// The Kubernetes role it is part of; none for the permission to migrate, where only administrators set that label.
    pub const fn part_of(self) -> Option<&'static str> {
        match self {
            Self::Migrate => None,
            Self::View => Some("view"),
            Self::Edit => Some("edit"),
            Self::Admin => Some("admin"),
        }
    }

    /// The labels nacre sets. `managed-by` is what KubeVirt's operator filters by: with it, an operator that comes later adopts the role.
    pub fn labels(self) -> BTreeMap<String, String> {
        let fixed = [
            ("kubevirt.io", ""),
            ("app.kubernetes.io/component", "kubevirt"),
            ("app.kubernetes.io/managed-by", "virt-operator"),
        ];
        let mut labels: BTreeMap<_, _> =
            fixed.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        labels.extend(self.part_of().map(|role| (format!("{AGGREGATE}{role}"), "true".to_owned())));
        labels
    }

    /// What it allows.
    pub fn rules(self, era: Era) -> Vec<PolicyRule> {
        match self {
            Self::Migrate => migrate_rules(ALL_VERBS),
            Self::View => view_rules(),
            Self::Edit => edit_rules(era),
            Self::Admin => admin_rules(era),
        }
    }

    /// What it lost with KubeVirt 1.5.
    pub fn lost(self) -> Vec<PolicyRule> {
        match self {
            Self::Migrate | Self::View => Vec::new(),
            Self::Edit => lost_by_edit(),
            Self::Admin => lost_by_admin(),
        }
    }

    /// The whole role, as it is re-created.
    pub fn object(self, era: Era) -> ClusterRole {
        ClusterRole {
            metadata: ObjectMeta {
                name: Some(self.name().to_owned()),
                labels: Some(self.labels()),
                ..ObjectMeta::default()
            },
            rules: Some(self.rules(era)),
            aggregation_rule: None,
        }
    }
}

/// What `admin` lost with KubeVirt 1.5.
pub fn lost_by_admin() -> Vec<PolicyRule> {
    migrate_rules(ALL_VERBS)
}

/// What `edit` lost with KubeVirt 1.5.
pub fn lost_by_edit() -> Vec<PolicyRule> {
    migrate_rules(EDIT_VERBS)
}

fn migrate_rules(verbs: &[&str]) -> Vec<PolicyRule> {
    vec![
        rule(&[SUBRESOURCES], &["virtualmachines/migrate"], &["update"]),
        rule(&[KUBEVIRT], &[MIGRATIONS], verbs),
    ]
}

/// Every part of a machine that a rule can name, but `migrate`.
pub(crate) const MACHINE_SUBRESOURCES: [&str; INSTANCE_READ.len() + MACHINE_ACTIONS.len()] = {
    let mut all = [""; INSTANCE_READ.len() + MACHINE_ACTIONS.len()];
    let mut place = 0;
    while place < all.len() {
        all[place] = if place < INSTANCE_READ.len() {
            INSTANCE_READ[place]
        } else {
            MACHINE_ACTIONS[place - INSTANCE_READ.len()]
        };
        place += 1;
    }
    all
};

const INSTANCE_READ: &[&str] = &[
    "virtualmachineinstances/console",
    "virtualmachineinstances/vnc",
    "virtualmachineinstances/portforward",
    "virtualmachineinstances/guestosinfo",
    "virtualmachineinstances/filesystemlist",
    "virtualmachineinstances/userlist",
    "virtualmachineinstances/sev/fetchcertchain",
    "virtualmachineinstances/sev/querylaunchmeasurement",
    "virtualmachineinstances/usbredir",
    "virtualmachineinstances/objectgraph",
    "virtualmachines/objectgraph",
    "virtualmachines/expand-spec",
    "virtualmachines/portforward",
];

const MACHINE_ACTIONS: &[&str] = &[
    "virtualmachineinstances/pause",
    "virtualmachineinstances/unpause",
    "virtualmachineinstances/addvolume",
    "virtualmachineinstances/removevolume",
    "virtualmachineinstances/freeze",
    "virtualmachineinstances/unfreeze",
    "virtualmachineinstances/softreboot",
    "virtualmachineinstances/reset",
    "virtualmachineinstances/sev/setupsession",
    "virtualmachineinstances/sev/injectlaunchsecret",
    "virtualmachineinstances/evacuate/cancel",
    "virtualmachines/start",
    "virtualmachines/stop",
    "virtualmachines/restart",
    "virtualmachines/addvolume",
    "virtualmachines/removevolume",
    "virtualmachines/memorydump",
    "virtualmachines/removememorydump",
    "virtualmachines/evacuate/cancel",
    "expand-vm-spec",
];

/// What `admin` and `edit` write in KubeVirt's own group, without migrations.
pub(crate) const MACHINES: [&str; 4] = [
    "virtualmachines",
    "virtualmachineinstances",
    "virtualmachineinstancepresets",
    "virtualmachineinstancereplicasets",
];

/// Groups that `admin` and `edit` write and `view` reads, all of them alike.
const NEIGHBOURS: &[(&str, &[&str])] = &[
    (
        "snapshot.kubevirt.io",
        &["virtualmachinesnapshots", "virtualmachinesnapshotcontents", "virtualmachinerestores"],
    ),
    ("backup.kubevirt.io", &["virtualmachinebackups", "virtualmachinebackuptrackers"]),
    ("export.kubevirt.io", &["virtualmachineexports"]),
    ("clone.kubevirt.io", &["virtualmachineclones"]),
    (
        "instancetype.kubevirt.io",
        &[
            "virtualmachineinstancetypes",
            "virtualmachineclusterinstancetypes",
            "virtualmachinepreferences",
            "virtualmachineclusterpreferences",
        ],
    ),
    ("pool.kubevirt.io", &["virtualmachinepools"]),
];

fn admin_rules(era: Era) -> Vec<PolicyRule> {
    let mut rules = writer_rules(ALL_VERBS, era);
    rules.push(rule(&[SUBRESOURCES], &["virtualmachineinstances/vnc/screenshot"], &["get"]));
    rules.push(rule(&["plugin.kubevirt.io"], &["plugins"], ALL_VERBS));
    rules
}

fn edit_rules(era: Era) -> Vec<PolicyRule> {
    let mut rules = writer_rules(EDIT_VERBS, era);
    rules.push(rule(&[KUBEVIRT], &["kubevirts"], &["get", "list"]));
    rules
}

fn writer_rules(verbs: &[&str], era: Era) -> Vec<PolicyRule> {
    let mut rules = vec![
        rule(&[SUBRESOURCES], INSTANCE_READ, &["get"]),
        rule(&[SUBRESOURCES], MACHINE_ACTIONS, &["update"]),
        rule(&[KUBEVIRT], &MACHINES, verbs),
    ];
    rules.extend(NEIGHBOURS.iter().map(|(group, resources)| rule(&[group], resources, verbs)));
    rules.push(rule(&["migrations.kubevirt.io"], &["migrationpolicies"], READ));
    match era {
        Era::Old => rules.extend(migrate_rules(verbs)),
        Era::Current => rules.push(rule(&[KUBEVIRT], &[MIGRATIONS], READ)),
    }
    rules
}

fn view_rules() -> Vec<PolicyRule> {
    let mut rules = vec![
        rule(&[KUBEVIRT], &["kubevirts"], &["get", "list"]),
        rule(
            &[SUBRESOURCES],
            &[
                "virtualmachines/expand-spec",
                "virtualmachines/objectgraph",
                "virtualmachineinstances/guestosinfo",
                "virtualmachineinstances/filesystemlist",
                "virtualmachineinstances/userlist",
                "virtualmachineinstances/sev/fetchcertchain",
                "virtualmachineinstances/sev/querylaunchmeasurement",
                "virtualmachineinstances/objectgraph",
            ],
            &["get"],
        ),
        rule(&[SUBRESOURCES], &["expand-vm-spec"], &["update"]),
        rule(&[KUBEVIRT], &MACHINES, READ),
        rule(&[KUBEVIRT], &[MIGRATIONS], READ),
        rule(&["migrations.kubevirt.io"], &["migrationpolicies"], READ),
        rule(&["plugin.kubevirt.io"], &["plugins"], READ),
    ];
    rules.extend(NEIGHBOURS.iter().map(|(group, resources)| rule(&[group], resources, READ)));
    rules
}

#[cfg(test)]
mod tests;
