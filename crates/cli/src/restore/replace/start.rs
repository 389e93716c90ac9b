//! Before a replacement: what it would remove and bring back, what is in the way, and whether somebody agrees.

use anyhow::{Context as _, Result, bail};
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
    confirm::Consent,
    connect::Session,
    download::Fetching,
    explain::verdict_of_restore,
    list,
    output::{Format, Outcome, print, remark},
    restore::preview::{self, Gathered},
    send::{Sending, generated},
    style,
    text::printable,
};

/// What came of it.
pub(super) enum Prepared {
    /// Somebody agreed to this.
    Ready(Box<Record>),
    /// The claims are gone already.
    NothingToRemove,
    /// It ends here.
    Ended(Outcome),
}

pub(super) async fn prepare(
    session: &Session,
    args: &ReplaceArgs,
    sending: &Sending,
    consent: &Consent,
    restore: &NonAdminRestore,
) -> Result<Prepared> {
    let spec = &restore.spec.restore_spec;
    let name = spec.backup_name.clone().unwrap_or_default();
    let verdict = verdict_of_restore(session, restore).await?;
    if matches!(verdict.verdict, "refused" | "waits") {
        bail!("this restore would not pass: {}", verdict.reason.unwrap_or_default());
    }
    let (backup, _) = list::one::<NonAdminBackup>(session, &name).await?;
    let objects = cluster::objects(session).await?;
    let fetching = Fetching::default();
    let Some(gathered) = preview::gather(session, &name, &verdict, spec, &fetching).await? else {
        return Ok(Prepared::Ended(Outcome::Interrupted));
    };
    let scope = match scope_of(&backup, &objects, &gathered, args, restore) {
        Ok(scope) => scope,
        Err(problems) => {
            remark(style::bad("this cannot be replaced, and nothing was changed:"));
            for problem in problems {
                remark(format_args!("  {}", printable(&problem)));
            }
            for unknown in &gathered.files.unknown {
                remark(format_args!("  {}", printable(unknown)));
            }
            return Ok(Prepared::Ended(Outcome::Failed));
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
    let answer =
        preview::answer(session, &name, verdict, gathered.preview(&removed(&scope, &objects)), &gathered)
            .replacing(&scope);
    let people = matches!(session.format, Format::Table | Format::Wide);
    if people || sending.dry_run.is_some() {
        print(session.format, &answer, || answer.page().to_string(), || answer.names())?;
    }
    if sending.dry_run.is_some() {
        return Ok(Prepared::Ended(answer.outcome()));
    }
    let claims = scope.claims.len();
    let safety = if args.no_safety_backup { "WITHOUT a safety backup" } else { "after a safety backup" };
    let question = format!(
        "Remove {claims} claims and {} workloads {safety}, and restore them from {name}?",
        scope.workloads.len()
    );
    if !consent.given(&question).context("nothing was changed")? {
        remark("nothing was changed");
        return Ok(Prepared::Ended(Outcome::Failed));
    }
    let now = Timestamp::now();
    Ok(Prepared::Ready(Box::new(Record {
        backup_uid: backup.metadata.uid.unwrap_or_default(),
        safety_backup: (!args.no_safety_backup).then(|| generated(&format!("before-{name}"), now)),
        restore: restore.metadata.name.clone().unwrap_or_default(),
        restore_spec: spec.clone(),
        backup: name,
        claims: scope.claims,
        lost: scope.lost,
        workloads: scope.workloads,
        checked: false,
    })))
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
