//! `restore preview`: what a restore would do, object by object.

mod gather;
mod page;

use anyhow::{Result, bail};
use api::{NonAdminRestore, NonAdminRestoreSpec};
use kube::core::ObjectMeta;
use planner::{
    Policy,
    replace::{Scope, record::WorkloadRef},
    restore_preview::Preview,
};
use serde::Serialize;

use super::{
    choose,
    filters::{Filters, check_resources},
};
use crate::{
    allowed::Source,
    confirm::Consent,
    connect::Session,
    describe::page::Page,
    download::Fetching,
    explain::{RestoreVerdict, verdict_of_restore},
    output::{Outcome, print, remark},
    table::Cell,
};
pub(super) use gather::{Gathered, gather};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre restore preview --from-backup daily
  kubectl nacre restore preview                        of the last good backup of the namespace
  kubectl nacre restore preview --from-backup daily --existing-resource-policy update -o json
  kubectl nacre restore preview --from-backup daily --include-resources configmaps

Nothing is changed. The objects come from Velero's list of the backup, which is downloaded; what exists is read with your
own permissions. Where the contents of the backup may be downloaded too, differences are shown field by field.
Exit code 3 if something would not be as it was in the backup, or if that cannot be said.")]
pub(super) struct PreviewArgs {
    /// The backup to restore. Default: the last completed one.
    #[arg(long, value_name = "BACKUP")]
    from_backup: Option<String>,

    #[command(flatten)]
    filters: Filters,

    #[command(flatten)]
    fetching: Fetching,
}

/// All there is to say about a restore that is not made.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RestorePreview {
    backup: String,
    namespace: String,
    /// passes, refused, waits or unknown.
    pub(crate) verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    policy: Source,
    #[serde(flatten)]
    pub(crate) preview: Preview,
    /// What could not be read, and what is not known because of that.
    unknown: Vec<String>,
    /// Whether the objects in the backup are known.
    pub(crate) objects_known: bool,
    /// How many objects are in the backup besides those that are listed.
    #[serde(skip)]
    pub(crate) objects_not_listed: u64,
    /// What an administrator would run, so that nothing is left out because the caller lacks permissions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    commands: Vec<String>,
    /// What is removed first.
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<Removed>,
}

/// What a replacement removes, and what it leaves alone.
#[derive(Debug, Serialize)]
struct Removed {
    claims: Vec<String>,
    workloads: Vec<String>,
    /// Claims that stay, each with the reason.
    kept: Vec<(String, String)>,
}

/// The objects of one kind in a backup.
pub(crate) struct KindPreview<'a> {
    pub(crate) resource: &'a str,
    /// How many objects there are of each effect.
    pub(crate) summary: String,
    /// Whether any of them would come back.
    pub(crate) is_chosen: bool,
    /// Whether the request decides about that, and not Velero, nacre or the policy.
    pub(crate) can_be_chosen: bool,
    /// Name, effect and reason.
    pub(crate) objects: Vec<(&'a str, Cell, String)>,
}

impl RestorePreview {
    /// The same, with what is removed first.
    pub(super) fn replacing(mut self, scope: &Scope) -> Self {
        self.removed = Some(Removed {
            claims: scope.claims.iter().map(|claim| claim.name.clone()).collect(),
            workloads: scope.workloads.iter().map(WorkloadRef::called).collect(),
            kept: scope.kept.clone(),
        });
        self
    }

    pub(crate) fn page(&self) -> Page {
        page::page(self)
    }

    /// What comes after the objects.
    pub(crate) fn after_objects(&self) -> Page {
        page::end(self)
    }

    /// What would become of the request, in words, and how many objects of each effect there are.
    pub(crate) fn in_short(&self) -> (&'static str, String) {
        page::in_short(self)
    }

    /// Why it would not simply pass.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// The objects, kind by kind.
    pub(crate) fn kinds(&self) -> Vec<KindPreview<'_>> {
        page::kinds(self)
    }

    pub(super) fn names(&self) -> Vec<String> {
        page::names(self)
    }

    pub(super) fn outcome(&self) -> Outcome {
        let passes = self.verdict == "passes";
        Outcome::attention_if(!passes || !self.objects_known || self.preview.something_stays_away())
    }
}

pub(super) async fn run(session: &Session, args: PreviewArgs) -> Result<Outcome> {
    let backup = match &args.from_backup {
        Some(backup) => Some(backup.clone()),
        // Nobody is asked, since nothing is changed.
        None => choose::last_good(session, &Consent::default(), true).await?,
    };
    let Some(backup) = backup else {
        remark("there is nothing to show");
        return Ok(Outcome::Failed);
    };
    let spec = args.filters.spec(backup.clone());
    if let Some(refusal) = planner::restore::check_spec(&spec, &session.namespace, &Policy::default()) {
        bail!("this restore would be refused: {refusal}");
    }
    check_resources(session, &spec).await?;
    let restore = NonAdminRestore {
        metadata: ObjectMeta { name: Some(format!("{backup}-preview")), ..ObjectMeta::default() },
        spec: NonAdminRestoreSpec { restore_spec: spec },
        status: None,
    };
    show(session, &restore, &args.fetching).await
}

/// Shows what a restore would do.
pub(super) async fn show(
    session: &Session,
    restore: &NonAdminRestore,
    fetching: &Fetching,
) -> Result<Outcome> {
    let Some(answer) = look(session, restore, fetching).await? else { return Ok(Outcome::Interrupted) };
    print(session.format, &answer, || answer.page().to_string(), || answer.names())?;
    Ok(answer.outcome())
}

/// What a restore would do; none if somebody pressed Ctrl-C.
pub(crate) async fn look(
    session: &Session,
    restore: &NonAdminRestore,
    fetching: &Fetching,
) -> Result<Option<RestorePreview>> {
    let verdict = verdict_of_restore(session, restore).await?;
    let backup = restore.spec.restore_spec.backup_name.clone().unwrap_or_default();
    let Some(gathered) = gather(session, &backup, &verdict, &restore.spec.restore_spec, fetching).await?
    else {
        return Ok(None);
    };
    Ok(Some(answer(session, &backup, verdict, gathered.preview(&[]), &gathered)))
}

pub(super) fn answer(
    session: &Session,
    backup: &str,
    verdict: RestoreVerdict,
    preview: Preview,
    gathered: &Gathered,
) -> RestorePreview {
    let refusal = gathered.foretold.refusal.clone().filter(|_| verdict.verdict == "passes");
    RestorePreview {
        backup: backup.to_owned(),
        namespace: session.namespace.clone(),
        verdict: if refusal.is_some() { "waits" } else { verdict.verdict },
        reason: refusal.or(verdict.reason),
        commands: gathered.foretold.commands.clone(),
        policy: verdict.source,
        preview,
        unknown: gathered.files.unknown.clone(),
        objects_known: gathered.files.items.is_some(),
        objects_not_listed: gathered.files.not_listed,
        removed: None,
    }
}
