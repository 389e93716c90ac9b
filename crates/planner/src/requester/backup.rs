//! What is left out of a backup, and who may download its contents.

use std::collections::{BTreeMap, BTreeSet};

use api::velero::{BackupHooks, BackupSpec};

use super::access::{Access, Ask, Attributes};
use super::kinds::{Selection, to_read};
use super::message;
use super::verdict::{Verdict, conclude};
use crate::{Policy, fence};

/// Whether a spec has commands that run in pods.
fn has_commands(hooks: Option<&BackupHooks>) -> bool {
    let resources = hooks.and_then(|hooks| hooks.resources.as_deref()).unwrap_or_default();
    resources.iter().any(|hook| {
        hook.pre.as_ref().is_some_and(|hooks| !hooks.is_empty())
            || hook.post.as_ref().is_some_and(|hooks| !hooks.is_empty())
    })
}

/// Whether a backup with this spec takes permissions of whoever asks for it.
pub(crate) fn needs_permissions(asked: &BackupSpec) -> bool {
    asked.storage_location.is_some() || has_commands(asked.hooks.as_ref())
}

/// What it takes to run commands in pods.
pub(super) fn exec() -> Attributes {
    Attributes { subresource: "exec", ..Attributes::on("create", "", "pods") }
}

/// What a backup may hold. Into the administrators' storage nothing is left out, since nobody gets to see it; into
/// storage of their own nobody copies what they may not read. Commands run for those who may run them.
///
/// `asked` is the tenant's own spec, `effective` the same with what the administrators add.
pub(crate) fn of_backup(
    access: &Access,
    asked: &BackupSpec,
    effective: &BackupSpec,
    policy: &Policy,
) -> Verdict {
    let mut needed = BTreeMap::new();
    if asked.storage_location.is_some() {
        let Some(served) = &access.served else { return Verdict::Ask(vec![Ask::Served]) };
        let Selection { included, excluded } = selection(effective);
        // What never goes into a backup needs no permission.
        let excluded = [excluded, &fence::namespaced_out_of_backups()].concat();
        let kinds = Selection { included, excluded: &excluded }.kinds(served);
        needed = kinds.iter().map(|(name, kind)| (name.clone(), to_read(kind))).collect();
    }
    let hooks = has_commands(asked.hooks.as_ref()).then(|| ("spec.backupSpec.hooks", exec()));
    conclude(access, &policy.requester, &needed, hooks)
}

/// The kinds of the first family of filters, or of the newer one.
fn selection(spec: &BackupSpec) -> Selection<'_> {
    let list = |one: &'_ Option<Vec<String>>| -> bool { one.as_ref().is_some_and(|names| !names.is_empty()) };
    let newer =
        list(&spec.included_namespace_scoped_resources) || list(&spec.excluded_namespace_scoped_resources);
    let (included, excluded) = if newer {
        (&spec.included_namespace_scoped_resources, &spec.excluded_namespace_scoped_resources)
    } else {
        (&spec.included_resources, &spec.excluded_resources)
    };
    Selection {
        included: included.as_deref().unwrap_or_default(),
        excluded: excluded.as_deref().unwrap_or_default(),
    }
}

/// What it takes to download the contents of a backup with this spec: reading every kind that can be in it.
pub(crate) fn contents(access: &Access, spec: &BackupSpec, policy: &Policy) -> Verdict {
    let Some(served) = &access.served else { return Verdict::Ask(vec![Ask::Served]) };
    let kinds = selection(spec).kinds(served);
    let needed: BTreeMap<String, BTreeSet<Attributes>> =
        kinds.iter().map(|(name, kind)| (name.clone(), to_read(kind))).collect();
    match conclude(access, &policy.requester, &needed, None) {
        Verdict::Permitted(left_out) if !left_out.withheld().is_empty() => {
            Verdict::Refused(message::refusal(access, "spec.target.kind", &left_out.denied))
        }
        verdict => verdict,
    }
}
