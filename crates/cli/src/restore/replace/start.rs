//! Before a replacement: what it would remove and bring back, and what is in the way.

use anyhow::{Result, bail};
use api::{NonAdminBackup, NonAdminRestore};
use jiff::Timestamp;
use planner::{
    replace::{
        Record, Scope, all_saved, permissions,
        scope::{self, BackupPod, choose},
    },
    restore_preview::{CLAIMS, PODS, claims_of},
};

use super::{
    ReplaceArgs,
    cluster::{self, Objects},
};
use crate::{
    connect::Session,
    download::Fetching,
    explain::verdict_of_restore,
    list,
    restore::preview::{self, Gathered, RestorePreview},
    send::generated,
    text::count,
};

/// What came of it.
pub(crate) enum Prepared {
    /// This would be done.
    Ready(Box<Replacement>),
    /// The claims are gone already.
    NothingToRemove,
    /// It cannot be done, and why.
    Impossible(Vec<String>),
    /// Somebody pressed Ctrl-C.
    Interrupted,
}

/// A replacement that nobody has agreed to yet.
pub(crate) struct Replacement {
    pub(crate) record: Record,
    pub(crate) preview: RestorePreview,
    /// What to ask before it begins.
    pub(crate) question: String,
}

pub(super) async fn prepare(
    session: &Session,
    args: &ReplaceArgs,
    restore: &NonAdminRestore,
    fetching: &Fetching,
) -> Result<Prepared> {
    let spec = &restore.spec.restore_spec;
    let name = spec.backup_name.clone().unwrap_or_default();
    let verdict = verdict_of_restore(session, restore).await?;
    if matches!(verdict.verdict, "refused" | "waits") {
        bail!("this restore would not pass: {}", verdict.reason.unwrap_or_default());
    }
    let (backup, _) = list::one::<NonAdminBackup>(session, &name).await?;
    let objects = cluster::objects(session).await?;
    let Some(gathered) = preview::gather(session, &name, &verdict, spec, fetching).await? else {
        return Ok(Prepared::Interrupted);
    };
    let scope = match scope_of(&backup, &objects, &gathered, args, restore) {
        Ok(scope) => scope,
        Err(problems) => {
            let unknown = gathered.files.unknown.iter().cloned();
            return Ok(Prepared::Impossible(problems.into_iter().chain(unknown).collect()));
        }
    };
    if scope.claims.is_empty() && scope.workloads.is_empty() {
        return Ok(Prepared::NothingToRemove);
    }
    let missing = cluster::missing_permissions(session, &permissions(&scope)).await?;
    if !missing.is_empty() {
        bail!(
            "you may not do this in namespace {}: {}; nothing was changed",
            session.namespace,
            missing.join(", ")
        );
    }
    let preview =
        preview::answer(session, &name, verdict, gathered.preview(&removed(&scope, &objects)), &gathered)
            .replacing(&scope);
    let number = |of: usize, noun: &str| count(i64::try_from(of).unwrap_or(i64::MAX), noun);
    let (claims, workloads) =
        (number(scope.claims.len(), "claim"), number(scope.workloads.len(), "workload"));
    let safety = if args.no_safety_backup { "WITHOUT a safety backup" } else { "after a safety backup" };
    let question = format!("Remove {claims} and {workloads} {safety}, and restore them from {name}?");
    let now = Timestamp::now();
    let record = Record {
        backup_uid: backup.metadata.uid.unwrap_or_default(),
        safety_backup: (!args.no_safety_backup).then(|| generated(&format!("before-{name}"), now)),
        restore: restore.metadata.name.clone().unwrap_or_default(),
        restore_spec: spec.clone(),
        backup: name,
        claims: scope.claims,
        lost: scope.lost,
        workloads: scope.workloads,
        checked: false,
    };
    Ok(Prepared::Ready(Box::new(Replacement { record, preview, question })))
}

fn scope_of(
    backup: &NonAdminBackup,
    objects: &Objects,
    gathered: &Gathered,
    args: &ReplaceArgs,
    restore: &NonAdminRestore,
) -> Result<Scope, Vec<String>> {
    let spec = &restore.spec.restore_spec;
    let selectors: Vec<_> =
        spec.label_selector.iter().chain(spec.or_label_selectors.iter().flatten()).cloned().collect();
    let pods: Option<Vec<BackupPod>> = gathered.files.contents.as_ref().map(|contents| {
        let pods = contents.iter().filter(|((resource, _), _)| resource == PODS);
        let read = pods.map(|((_, name), pod)| BackupPod {
            name: name.clone(),
            labels: serde_json::from_value(pod["metadata"]["labels"].clone()).unwrap_or_default(),
            claims: claims_of(&pod["spec"]),
        });
        read.collect()
    });
    let velero = backup.status.as_ref().and_then(|status| status.velero_backup.as_ref()?.status.as_ref());
    choose(&scope::Observed {
        backup: backup.metadata.name.as_deref().unwrap_or_default(),
        claims: &objects.claims,
        workloads: &objects.workloads,
        saved: gathered.files.saved.clone(),
        all_saved: all_saved(backup),
        backup_started: velero.and_then(|velero| velero.start_timestamp.as_ref()).map(|time| time.0),
        only_claims: &args.only_claim,
        selectors: &selectors,
        left_out: gathered.left_out(),
        ignore_managers: args.ignore_managers,
        backup_pods: pods.as_deref(),
    })
}

/// Everything that is gone before the restore, as group-resource and name: what the workloads control goes with them.
fn removed(scope: &Scope, objects: &Objects) -> Vec<(String, String)> {
    let claims = scope.claims.iter().map(|claim| (CLAIMS.to_owned(), claim.name.clone()));
    let workloads = objects.workloads.iter().filter(|one| {
        let root = scope::root(&objects.workloads, one);
        scope.workloads.iter().any(|removed| removed.uid == root.uid)
    });
    claims.chain(workloads.map(|one| (one.kind.resource(), one.name.clone()))).collect()
}
