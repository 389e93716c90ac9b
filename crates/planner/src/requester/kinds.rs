//! Which kinds a backup or a restore is about, and which permissions they need.

use std::collections::{BTreeMap, BTreeSet};

use super::access::Attributes;
use crate::served::{Served, selects};

/// Kinds that only controllers write: stock roles may not, and what is in them follows from other objects.
const BY_CONTROLLERS: [&str; 3] =
    ["controllerrevisions.apps", "endpoints", "endpointslices.discovery.k8s.io"];

/// What drivers report about storage, which is nobody's secret and which no stock role may read.
const CAPACITIES: &str = "csistoragecapacities.storage.k8s.io";

/// A kind that no stock role knows. It holds what a pod's spec holds, and does nothing by itself.
const POD_TEMPLATES: &str = "podtemplates";

/// Velero merges what was saved into those that are there, also where it updates nothing else.
const MERGED: &str = "serviceaccounts";

/// Kinds that Velero never restores.
const NEVER_RESTORED: [&str; 2] = ["events", "events.events.k8s.io"];

/// The groups that have Roles and RoleBindings: Kubernetes' own, and OpenShift's older names for the same objects.
const RBAC: [&str; 2] = ["rbac.authorization.k8s.io", "authorization.openshift.io"];

/// Which kinds a spec selects.
pub(super) struct Selection<'a> {
    /// Names of the list of what is in; empty for all.
    pub(super) included: &'a [String],
    /// Names of what is out.
    pub(super) excluded: &'a [String],
}

impl Selection<'_> {
    fn selects(&self, resource: &str, served: &[Served]) -> bool {
        let named = |list: &[String]| list.iter().any(|name| selects(name, resource, served));
        (self.included.is_empty() || named(self.included)) && !named(self.excluded)
    }

    /// The kinds that Velero would back up, each once.
    pub(super) fn kinds(&self, served: &[Served]) -> BTreeMap<String, Served> {
        let all = served.iter().filter(|one| one.is_for_velero());
        let all = all.map(|one| (one.name(), one.clone()));
        all.filter(|(name, _)| self.selects(name, served)).collect()
    }
}

/// What it takes to read all objects of a kind; none if nothing is checked.
pub(super) fn to_read(kind: &Served) -> BTreeSet<Attributes> {
    if kind.name() == CAPACITIES {
        return BTreeSet::new();
    }
    ["get", "list"].map(|verb| on(verb, kind)).into()
}

/// This verb on all objects of a kind.
fn on(verb: &'static str, kind: &Served) -> Attributes {
    if kind.name() == POD_TEMPLATES {
        return Attributes::on(verb, "", "pods");
    }
    Attributes::on(verb, &kind.group, &kind.plural)
}

/// What it takes to restore objects of a kind; none if nothing is checked.
pub(super) fn to_restore(kind: &Served, updates: bool, roles_are_free: bool) -> BTreeSet<Attributes> {
    let name = kind.name();
    let unchecked = [&BY_CONTROLLERS[..], &NEVER_RESTORED, &[CAPACITIES]].concat();
    if unchecked.contains(&name.as_str()) {
        return BTreeSet::new();
    }
    let rbac = RBAC.contains(&kind.group.as_str());
    if rbac && roles_are_free && matches!(kind.plural.as_str(), "roles" | "rolebindings") {
        return BTreeSet::new();
    }
    let verbs = ["create"].into_iter().chain((updates || name == MERGED).then_some("update"));
    let mut needed: BTreeSet<_> = verbs.map(|verb| on(verb, kind)).collect();
    // Whoever could bring back any Role would have its permissions: Kubernetes has verbs for that.
    match kind.plural.as_str() {
        "roles" if rbac => _ = needed.insert(Attributes::on("escalate", RBAC[0], "roles")),
        "rolebindings" if rbac => {
            needed.extend(["roles", "clusterroles"].map(|roles| Attributes::on("bind", RBAC[0], roles)));
        }
        _ => {}
    }
    needed
}

/// The kinds for which something is denied, as group-resources.
pub(super) fn without<'a>(
    needed: &'a BTreeMap<String, BTreeSet<Attributes>>,
    denied: &[Attributes],
) -> Vec<&'a str> {
    let is_denied = |wanted: &BTreeSet<Attributes>| denied.iter().any(|one| wanted.contains(one));
    needed.iter().filter(|(_, wanted)| is_denied(wanted)).map(|(name, _)| name.as_str()).collect()
}
