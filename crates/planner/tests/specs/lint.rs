//! What is wrong with a Velero object that nacre would make. Written from Velero's side: what it would do with the
//! object, and what it would refuse.

use serde_json::{Value, json};

use crate::accepted::{Made, Source};
use crate::arbitrary::{FOREIGN, OWN};

/// Kinds that neither go into a backup nor come out of one.
const FENCED: [&str; 9] = [
    "nonadminbackups.oadp.openshift.io",
    "nonadminrestores.oadp.openshift.io",
    "nonadminschedules.oadp.openshift.io",
    "nonadminbackupstoragelocations.oadp.openshift.io",
    "nonadminbackupstoragelocationrequests.oadp.openshift.io",
    "nonadmindownloadrequests.oadp.openshift.io",
    "dataprotectionapplications.oadp.openshift.io",
    "cloudstorages.oadp.openshift.io",
    "virtualmachineinstancemigrations.kubevirt.io",
];

/// Velero's own, which do not come out of one.
const VELERO: [&str; 6] = [
    "backups.velero.io",
    "restores.velero.io",
    "schedules.velero.io",
    "deletebackuprequests.velero.io",
    "datadownloads.velero.io",
    "kindsofthefuture.velero.io",
];

/// What may come out of storage that a tenant can write to.
const HARMLESS: [&str; 18] = [
    "configmaps",
    "secrets",
    "services",
    "serviceaccounts",
    "persistentvolumeclaims",
    "replicationcontrollers",
    "deployments.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "replicasets.apps",
    "controllerrevisions.apps",
    "jobs.batch",
    "cronjobs.batch",
    "ingresses.networking.k8s.io",
    "horizontalpodautoscalers.autoscaling",
    "poddisruptionbudgets.policy",
    "virtualmachines.kubevirt.io",
    "datavolumes.cdi.kubevirt.io",
];

type Lint = Result<(), String>;

fn must(so: bool, what: &str) -> Lint {
    if so { Ok(()) } else { Err(what.to_owned()) }
}

/// What is wrong with a Velero Restore.
pub(crate) fn restore(made: &Made, source: Source) -> Lint {
    let spec = &made.object["spec"];
    stays_home(&made.object)?;
    for absent in ["scheduleName", "namespaceMapping", "restoreStatus"] {
        must(spec[absent].is_null(), absent)?;
    }
    let hooks = spec["hooks"]["resources"].as_array();
    let commands = hooks.into_iter().flatten().filter_map(|hook| hook["postHooks"].as_array()).flatten();
    must(commands.into_iter().all(|hook| hook["init"].is_null()), "an init hook")?;
    let (included, excluded) = (names(&spec["includedResources"]), names(&spec["excludedResources"]));
    filters(&included, &excluded)?;
    for fenced in FENCED.iter().chain(&VELERO).chain(&["namespaces"]) {
        must(!comes(fenced, &included, &excluded), fenced)?;
    }
    if !source.tenants {
        for guard_rail in ["resourcequotas", "limitranges"] {
            must(!comes(guard_rail, &included, &excluded), guard_rail)?;
        }
        return Ok(());
    }
    must(spec["includeClusterResources"] == false, "cluster-scoped resources from tenant storage")?;
    must(!included.is_empty(), "everything from tenant storage")?;
    must(included.iter().all(|name| HARMLESS.contains(&name.as_str())), "more than the list")?;
    must(source.data_moved || spec["restorePVs"] == false, "snapshots from tenant storage")?;
    let modifier = spec["resourceModifier"]["name"].as_str().unwrap_or_default();
    must(made.config_maps == [modifier], "a modifier that is not nacre's, or not there yet")
}

/// What is wrong with a Velero Backup.
pub(crate) fn backup(made: &Made) -> Lint {
    let spec = &made.object["spec"];
    stays_home(&made.object)?;
    for absent in ["includedClusterScopedResources", "volumeSnapshotLocations", "storageLocation"] {
        must(spec[absent].is_null(), absent)?;
    }
    let list = |name: &str| names(&spec[name]);
    let older = (list("includedResources"), list("excludedResources"));
    let scoped = (list("includedNamespaceScopedResources"), list("excludedNamespaceScopedResources"));
    let cluster = list("excludedClusterScopedResources");
    let in_use = [&scoped.0, &scoped.1, &cluster].iter().any(|list| !list.is_empty());
    let mixed =
        in_use && (!older.0.is_empty() || !older.1.is_empty() || !spec["includeClusterResources"].is_null());
    must(!mixed, "two families of filters")?;
    filters(&older.0, &older.1)?;
    for (included, excluded) in [(&scoped.0, &scoped.1), (&Vec::new(), &cluster)] {
        let star = excluded.iter().any(|name| name == "*");
        must(!star || (excluded.len() == 1 && included.is_empty()), "a star among others")?;
        let named = excluded.iter().filter(|name| *name != "*").cloned().collect::<Vec<_>>();
        filters(included, &named)?;
    }
    let (included, excluded) = if in_use { scoped } else { older };
    for fenced in FENCED {
        must(!comes(fenced, &included, &excluded), fenced)?;
    }
    Ok(())
}

/// Of all namespaces only the own one is named, wherever namespaces can be named.
fn stays_home(object: &Value) -> Lint {
    let spec = &object["spec"];
    must(!object.to_string().contains(FOREIGN), "another namespace is named")?;
    must(spec["includedNamespaces"] == json!([OWN]), "the namespaces")?;
    must(spec["excludedNamespaces"].is_null(), "namespaces to leave out")?;
    must(spec["includeClusterResources"] != true, "cluster-scoped resources")?;
    must(spec["labelSelector"].is_null() || spec["orLabelSelectors"].is_null(), "two kinds of selectors")?;
    for hook in spec["hooks"]["resources"].as_array().into_iter().flatten() {
        must(hook["includedNamespaces"] == json!([OWN]), "the namespaces of a hook")?;
        must(hook["excludedNamespaces"].is_null(), "namespaces a hook leaves out")?;
    }
    Ok(())
}

fn names(list: &Value) -> Vec<String> {
    let names = list.as_array().into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What Velero refuses about its older lists.
fn filters(included: &[String], excluded: &[String]) -> Lint {
    let star = |list: &[String]| list.iter().any(|name| name == "*");
    must(!(star(included) && included.iter().any(|name| name != "*")), "a star among others")?;
    must(!star(excluded), "everything is left out")?;
    must(!included.iter().any(|name| excluded.contains(name)), "in both lists")
}

/// Whether Velero would take a resource, given its full name. What is left out wins.
fn comes(resource: &str, included: &[String], excluded: &[String]) -> bool {
    let out = excluded.iter().any(|name| fits(name, resource));
    !out && (included.is_empty() || included.iter().any(|name| fits(name, resource)))
}

/// Whether a name in a list means this resource: in full, by the plural alone, or by the group alone.
fn fits(name: &str, resource: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.trim_end_matches('.');
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    name == "*" || name == resource || name == plural || name == format!("*.{group}")
}
