//! What is left out of a restore.

use std::collections::{BTreeMap, BTreeSet};

use api::velero::RestoreSpec;

use super::access::{Access, Ask, Attributes};
use super::backup::exec;
use super::kinds::{Selection, to_restore};
use super::verdict::{Verdict, conclude};
use crate::Policy;

/// What a restore may bring back: kinds that the requester may create, and update where existing objects are updated.
///
/// `spec` is what Velero would be given, `asked` the tenant's own spec, `trusted` whether the data is in the
/// administrators' storage.
pub(crate) fn of_restore(
    access: &Access,
    asked: &RestoreSpec,
    spec: &RestoreSpec,
    policy: &Policy,
    trusted: bool,
) -> Verdict {
    let Some(served) = &access.served else { return Verdict::Ask(vec![Ask::Served]) };
    let selection = Selection {
        included: spec.included_resources.as_deref().unwrap_or_default(),
        excluded: spec.excluded_resources.as_deref().unwrap_or_default(),
    };
    let updates = spec.existing_resource_policy.as_deref() == Some("update");
    let roles_are_free = trusted && policy.requester.roles_from_platform_storage;
    let kinds = selection.kinds(served);
    let needed: BTreeMap<String, BTreeSet<Attributes>> =
        kinds.iter().map(|(name, kind)| (name.clone(), to_restore(kind, updates, roles_are_free))).collect();
    let hooks = has_commands(asked).then(|| ("spec.restoreSpec.hooks", exec()));
    conclude(access, &policy.requester, &needed, hooks)
}

fn has_commands(spec: &RestoreSpec) -> bool {
    let resources = spec.hooks.as_ref().and_then(|hooks| hooks.resources.as_deref()).unwrap_or_default();
    resources.iter().any(|hook| hook.post_hooks.iter().flatten().any(|hook| hook.exec.is_some()))
}
