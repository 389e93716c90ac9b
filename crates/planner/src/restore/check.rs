//! What a tenant may restore, and from what.

use api::labels;
use api::velero::RestoreSpec;
use k8s_openapi::api::core::v1::{ConfigMap, TypedLocalObjectReference};

use super::{Observed, Verdict};
use crate::ownership::{Storage, label, storage};
use crate::queue::{Queued, Stage};
use crate::{Policy, Refusal, enforce};

const PATH: &str = "spec.restoreSpec";

/// Refuses what the request and the policy alone decide. Controller, webhook and command line all ask this.
pub fn check_spec(spec: &RestoreSpec, namespace: &str, policy: &Policy) -> Option<Refusal> {
    absent("scheduleName", spec.schedule_name.is_some())
        .or_else(|| backup_name(spec))
        .or_else(|| absent("includedNamespaces", spec.included_namespaces.is_some()))
        .or_else(|| absent("excludedNamespaces", spec.excluded_namespaces.is_some()))
        .or_else(|| absent("namespaceMapping", spec.namespace_mapping.is_some()))
        .or_else(|| cluster_resources(spec))
        .or_else(|| absent("restoreStatus", spec.restore_status.is_some()))
        .or_else(|| mixed_selectors(spec))
        .or_else(|| item_operation_timeout(spec))
        .or_else(|| hooks(spec, namespace, policy))
        .or_else(|| enforce::conflict(&policy.restore.enforce, spec, PATH))
}

/// Refuses what anything decides: the spec first, then what it refers to.
pub(super) fn refusal(seen: &Observed, policy: &Policy) -> Verdict {
    if let Some(error) = &seen.unreadable {
        return Some(Refusal::new("spec", format!("cannot be read: {error}")));
    }
    let spec = &seen.restore.spec.restore_spec;
    let namespace = seen.meta().namespace.as_deref().unwrap_or_default();
    namespace_allowed(seen, policy, namespace)
        .or_else(|| check_spec(spec, namespace, policy))
        .or_else(|| source(seen))
        .or_else(|| {
            config_map("resourceModifier", spec.resource_modifier.as_ref(), seen.config_maps[0].as_deref())
        })
        .or_else(|| {
            config_map("resourcePolicy", spec.resource_policy.as_ref(), seen.config_maps[1].as_deref())
        })
        .or_else(|| name_taken(seen))
}

fn field(name: &str) -> String {
    format!("{PATH}.{name}")
}

fn absent(name: &str, given: bool) -> Verdict {
    given.then(|| Refusal::new(field(name), "not available to namespace owners; leave the field out"))
}

fn namespace_allowed(seen: &Observed, policy: &Policy, namespace: &str) -> Verdict {
    let closed = namespace == seen.admin_namespace || !policy.namespaces.allows(namespace);
    closed.then(|| {
        let message =
            "restores cannot be asked for in this namespace; the administrators' policy leaves it out";
        Refusal::new("metadata.namespace", message)
    })
}

fn backup_name(spec: &RestoreSpec) -> Verdict {
    spec.backup_name
        .is_none()
        .then(|| Refusal::new(field("backupName"), "is missing; name a NonAdminBackup of this namespace"))
}

fn cluster_resources(spec: &RestoreSpec) -> Verdict {
    (spec.include_cluster_resources == Some(true)).then(|| {
        let message = "cluster-scoped resources cannot be restored; leave the field out or set it to false";
        Refusal::new(field("includeClusterResources"), message)
    })
}

fn mixed_selectors(spec: &RestoreSpec) -> Verdict {
    let both = spec.label_selector.is_some()
        && spec.or_label_selectors.as_ref().is_some_and(|list| !list.is_empty());
    both.then(|| {
        Refusal::new(
            field("orLabelSelectors"),
            "cannot be used together with labelSelector; use one or the other",
        )
    })
}

fn item_operation_timeout(spec: &RestoreSpec) -> Verdict {
    let value = spec.item_operation_timeout.as_ref()?;
    let fine = value.nanos().is_some_and(|nanos| nanos >= 0);
    (!fine).then(|| {
        let message = format!("{:?} is not a duration; write for example 4h or 1h30m", value.to_string());
        Refusal::new(field("itemOperationTimeout"), message)
    })
}

fn hooks(spec: &RestoreSpec, namespace: &str, policy: &Policy) -> Verdict {
    let hooks = spec.hooks.as_ref()?.resources.as_deref().unwrap_or_default();
    if policy.restore.forbid_hooks && !hooks.is_empty() {
        return Some(Refusal::new(
            field("hooks"),
            "the administrator does not allow hooks; leave the field out",
        ));
    }
    hooks.iter().enumerate().find_map(|(at, hook)| {
        let path = field(&format!("hooks.resources[{at}]"));
        let named = [
            ("includedNamespaces", &hook.included_namespaces),
            ("excludedNamespaces", &hook.excluded_namespaces),
        ];
        let elsewhere =
            named.into_iter().find(|(_, names)| names.iter().flatten().any(|name| name != namespace));
        if let Some((list, _)) = elsewhere {
            let message =
                format!("may only name {namespace:?}, the namespace of this object; leave the field out");
            return Some(Refusal::new(format!("{path}.{list}"), message));
        }
        let init = hook.post_hooks.iter().flatten().any(|hook| hook.init.is_some());
        init.then(|| {
            let message = "init containers cannot be added by a restore; use an exec hook instead";
            Refusal::new(format!("{path}.postHooks.init"), message)
        })
    })
}

/// The named backup must be this namespace's, and Velero must be done with it.
fn source(seen: &Observed) -> Verdict {
    let name = seen.restore.spec.restore_spec.backup_name.as_deref().unwrap_or_default();
    let refuse = |message: String| Some(Refusal::new(field("backupName"), message));
    let Some(backup) = seen.backup.as_deref() else {
        return refuse(format!(
            "there is no NonAdminBackup {name:?} in this namespace; name one that exists"
        ));
    };
    if backup.metadata.deletion_timestamp.is_some() || backup.spec.delete_backup == Some(true) {
        return refuse(format!("NonAdminBackup {name:?} is being deleted; name another"));
    }
    let Some(source) = seen.source.as_deref() else {
        return refuse(format!("Velero has no backup for NonAdminBackup {name:?}; its conditions say why"));
    };
    if storage(source, seen.kept_at.as_deref()) == Storage::Unknown {
        return refuse(format!(
            "the storage location of NonAdminBackup {name:?} is not there; it cannot be restored until it is back"
        ));
    }
    match (source.phase(), source.stage()) {
        ("Completed" | "PartiallyFailed", _) => None,
        (phase, Stage::Over) => {
            refuse(format!("NonAdminBackup {name:?} ended as {phase} and cannot be restored; name another"))
        }
        _ => refuse(format!("NonAdminBackup {name:?} is not finished; the restore starts when it is")),
    }
}

/// The same words whether the ConfigMap is missing or just not for tenants: names in there are nobody's business.
fn config_map(name: &str, named: Option<&TypedLocalObjectReference>, found: Option<&ConfigMap>) -> Verdict {
    let named = named?;
    let usable = found.and_then(|map| label(&map.metadata, labels::TENANT_USABLE)) == Some("true");
    let fine = named.kind.eq_ignore_ascii_case("configmap") && usable;
    (!fine).then(|| {
        let message =
            "must be a ConfigMap that the administrators have marked for tenants; ask them for its name";
        Refusal::new(field(name), message)
    })
}

fn name_taken(seen: &Observed) -> Verdict {
    seen.name_taken.then(|| {
        let message = "Velero already has an object under the name this restore would get; create it under another name";
        Refusal::new("metadata.name", message)
    })
}
