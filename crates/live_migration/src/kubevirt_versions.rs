//! The rules of `kubevirt.io:admin`, `edit` and `view` in KubeVirt 1.3 to 1.7, written by hand: nacre's own roles are not
//! their own judge. The order is KubeVirt's.

use k8s_openapi::api::rbac::v1::PolicyRule;

use super::roles::Role;
use planner::rbac::rules::rule;

/// The minor versions.
pub(crate) const VERSIONS: std::ops::RangeInclusive<u32> = 3..=7;

const READ: &[&str] = &["get", "list", "watch"];
const EDIT: &[&str] = &["get", "delete", "create", "update", "patch", "list", "watch"];
const ADMIN: &[&str] = &["get", "delete", "create", "update", "patch", "list", "watch", "deletecollection"];

const SUBRESOURCES: &str = "subresources.kubevirt.io";

/// Resources, with the first and the last minor version that has them.
type Resources = &'static [(&'static str, u32, u32)];

const ALWAYS: u32 = 0;
const STILL: u32 = u32::MAX;

const LOOKED_AT: Resources = &[
    ("virtualmachineinstances/console", ALWAYS, STILL),
    ("virtualmachineinstances/vnc", ALWAYS, STILL),
    ("virtualmachineinstances/vnc/screenshot", ALWAYS, STILL),
    ("virtualmachineinstances/portforward", ALWAYS, STILL),
    ("virtualmachineinstances/guestosinfo", ALWAYS, STILL),
    ("virtualmachineinstances/filesystemlist", ALWAYS, STILL),
    ("virtualmachineinstances/userlist", ALWAYS, STILL),
    ("virtualmachineinstances/sev/fetchcertchain", ALWAYS, STILL),
    ("virtualmachineinstances/sev/querylaunchmeasurement", ALWAYS, STILL),
    ("virtualmachineinstances/usbredir", 4, STILL),
    ("virtualmachines/objectgraph", 6, STILL),
    ("virtualmachineinstances/objectgraph", 6, STILL),
];

const DONE_TO_INSTANCES: Resources = &[
    ("virtualmachineinstances/pause", ALWAYS, STILL),
    ("virtualmachineinstances/unpause", ALWAYS, STILL),
    ("virtualmachineinstances/addvolume", ALWAYS, STILL),
    ("virtualmachineinstances/removevolume", ALWAYS, STILL),
    ("virtualmachineinstances/freeze", ALWAYS, STILL),
    ("virtualmachineinstances/unfreeze", ALWAYS, STILL),
    ("virtualmachineinstances/softreboot", ALWAYS, STILL),
    ("virtualmachineinstances/reset", 5, STILL),
    ("virtualmachineinstances/sev/setupsession", ALWAYS, STILL),
    ("virtualmachineinstances/sev/injectlaunchsecret", ALWAYS, STILL),
    ("virtualmachineinstances/evacuate/cancel", 7, STILL),
];

const DONE_TO_MACHINES: Resources = &[
    ("virtualmachines/start", ALWAYS, STILL),
    ("virtualmachines/stop", ALWAYS, STILL),
    ("virtualmachines/restart", ALWAYS, STILL),
    ("virtualmachines/addvolume", ALWAYS, STILL),
    ("virtualmachines/removevolume", ALWAYS, STILL),
    ("virtualmachines/migrate", ALWAYS, 4),
    ("virtualmachines/memorydump", ALWAYS, STILL),
    ("virtualmachines/evacuate/cancel", 7, STILL),
];

const VIEWED: Resources = &[
    ("virtualmachines/expand-spec", ALWAYS, STILL),
    ("virtualmachineinstances/guestosinfo", ALWAYS, STILL),
    ("virtualmachineinstances/filesystemlist", ALWAYS, STILL),
    ("virtualmachineinstances/userlist", ALWAYS, STILL),
    ("virtualmachineinstances/sev/fetchcertchain", ALWAYS, STILL),
    ("virtualmachineinstances/sev/querylaunchmeasurement", ALWAYS, STILL),
    ("virtualmachines/objectgraph", 6, STILL),
    ("virtualmachineinstances/objectgraph", 6, STILL),
];

/// Until 1.4 writers could write migrations like machines; viewers read both in one rule in every version.
const WRITTEN: Resources = &[
    ("virtualmachines", ALWAYS, STILL),
    ("virtualmachineinstances", ALWAYS, STILL),
    ("virtualmachineinstancepresets", ALWAYS, STILL),
    ("virtualmachineinstancereplicasets", ALWAYS, STILL),
    ("virtualmachineinstancemigrations", ALWAYS, 4),
];

const NEIGHBOURS: &[(&str, &[&str])] = &[
    (
        "snapshot.kubevirt.io",
        &["virtualmachinesnapshots", "virtualmachinesnapshotcontents", "virtualmachinerestores"],
    ),
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

/// The rules of a role in KubeVirt 1.`minor`.
pub(crate) fn rules_in(minor: u32, role: Role) -> Vec<PolicyRule> {
    let in_it = |all: Resources| -> Vec<&str> {
        all.iter()
            .filter(|(_, first, last)| (*first..=*last).contains(&minor))
            .map(|(name, ..)| *name)
            .collect()
    };
    let kubevirts = rule(&["kubevirt.io"], &["kubevirts"], &["get", "list"]);
    let mut rules = match role {
        Role::Migrate => return role.rules(super::roles::Era::Current),
        Role::View => vec![
            kubevirts.clone(),
            rule(&[SUBRESOURCES], &in_it(VIEWED), &["get"]),
            rule(&[SUBRESOURCES], &["expand-vm-spec"], &["update"]),
            rule(&["kubevirt.io"], &WRITTEN.iter().map(|(name, ..)| *name).collect::<Vec<_>>(), READ),
        ],
        Role::Edit | Role::Admin => vec![
            rule(&[SUBRESOURCES], &in_it(LOOKED_AT), &["get"]),
            rule(&[SUBRESOURCES], &in_it(DONE_TO_INSTANCES), &["update"]),
            rule(&[SUBRESOURCES], &["virtualmachines/expand-spec", "virtualmachines/portforward"], &["get"]),
            rule(&[SUBRESOURCES], &in_it(DONE_TO_MACHINES), &["update"]),
            rule(&[SUBRESOURCES], &["expand-vm-spec"], &["update"]),
            rule(&["kubevirt.io"], &in_it(WRITTEN), verbs(role)),
        ],
    };
    if minor >= 5 && role != Role::View {
        rules.push(rule(&["kubevirt.io"], &["virtualmachineinstancemigrations"], READ));
    }
    rules.extend(NEIGHBOURS.iter().map(|(group, resources)| rule(&[group], resources, verbs(role))));
    if role == Role::Edit {
        rules.push(kubevirts);
    }
    rules.push(rule(&["migrations.kubevirt.io"], &["migrationpolicies"], READ));
    rules
}

const fn verbs(role: Role) -> &'static [&'static str] {
    match role {
        Role::View => READ,
        Role::Edit => EDIT,
        Role::Migrate | Role::Admin => ADMIN,
    }
}
