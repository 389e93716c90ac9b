//! `kubectl nacre relocate`: moves what tenants have in one Velero to another, which is theirs alone.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use api::Kind;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use planner::{
    Object,
    install::{CONTROLLER, uninstall::delete_tenants_locations},
    relocation::{KINDS, Relocation, Side, Stays, decide, is_written_down, stop_importing},
};
use serde::Serialize;
use serde_json::json;

use crate::{
    confirm::Consent,
    connect::Session,
    output::{Outcome, lines, print, remark},
    table::Table,
    text::count,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre relocate --from velero --to velero-tenants --dry-run    what would move, and what stays
  kubectl nacre relocate --from velero --to velero-tenants

For the way to a Velero that is tenants' alone:
  1. velero install --namespace velero-tenants --disable-informer-cache ...
  2. kubectl scale deployment non-admin-controller -n velero --replicas=0    nacre stops
  3. kubectl nacre relocate --from velero --to velero-tenants
  4. kubectl delete backupstoragelocations.velero.io -n velero -l openshift.io/oadp-nabsl-origin-nacuuid
  5. kubectl nacre uninstall -n velero
  6. kubectl nacre install --velero-namespace velero-tenants --fence

Step 4 deletes the storage locations of tenants that were copied, and nothing in their buckets. Without it the old Velero would go on
reading these buckets, which tenants write to, without nacre's admission policies: step 5 removes them.

Copied are the backups of tenants, their volumes, the storage locations with their credentials and approvals, the policy, and the
Secret velero-repo-credentials, without which no data of volumes could be read. The data stays in its buckets. Nothing is deleted: the
old Velero keeps its objects, and whichever deletes a backup first deletes its data. Neither Velero imports from tenants' storage any
more (backupSyncPeriod: 0s) until nacre runs again. What is there already is left alone, so the command can be run again. Restores that
are over stay behind.")]
pub(crate) struct Relocate {
    /// The namespace of the Velero that tenants' backups were made with.
    #[arg(long, value_name = "NAMESPACE")]
    from: String,

    /// The namespace of the Velero that is tenants' alone.
    #[arg(long, value_name = "NAMESPACE")]
    to: String,

    /// Print what would be done; change nothing.
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    consent: Consent,
}

/// Volumes follow their backups, in a second round; what others create meanwhile leads to more.
const ROUNDS: usize = 10;

/// What is done to the Velero that is left.
const IMPORT_STOPS: &str = " Velero there stops importing from the storage of tenants.";

/// What was done, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    dry_run: bool,
    created: &'a [String],
    backups: &'a [String],
    stopped_importing: &'a [String],
    stays: &'a [Stays],
}

pub(crate) async fn run(session: &Session, args: &Relocate) -> Result<Outcome> {
    let mut plan = look(session, args).await?;
    if let Some(why) = plan.refusals.first() {
        bail!("nothing was moved: {why}");
    }
    let waiting = plan.steps.len();
    if args.dry_run {
        let created: Vec<String> = plan.steps.iter().map(named).collect();
        report(session, args, &created, &plan.still_importing, &plan)?;
        return Ok(Outcome::attention_if(!plan.stays.is_empty()));
    }
    let mut created = Vec::new();
    if waiting > 0 || !plan.still_importing.is_empty() {
        for namespace in [&args.from, &args.to] {
            nacre_is_stopped(session, namespace).await?;
        }
        let backups = plan.steps.iter().filter(|step| step.kind == Kind::Backup).count();
        let number = count(i64::try_from(backups).unwrap_or(i64::MAX), "backup");
        let stops = if plan.still_importing.is_empty() { "" } else { IMPORT_STOPS };
        if !args.consent.given(&format!(
            "Copy {number} and what belongs to them from {} to {}?{stops}",
            args.from, args.to
        ))? {
            remark("nothing was moved");
            return Ok(Outcome::Failed);
        }
    }
    for _ in 0..ROUNDS {
        for step in &plan.steps {
            if create(session, step).await? {
                created.push(named(step));
            }
        }
        let done = plan.steps.is_empty();
        plan = look(session, args).await?;
        if done || plan.steps.is_empty() {
            break;
        }
    }
    if !plan.steps.is_empty() {
        bail!(
            "{} are still to be moved: run the command again",
            count(i64::try_from(plan.steps.len())?, "object")
        );
    }
    let locations = Api::<DynamicObject>::namespaced_with(
        session.client.clone(),
        &args.from,
        &Kind::BackupStorageLocation.resource(),
    );
    for name in &plan.still_importing {
        locations.patch(name, &PatchParams::default(), &Patch::Merge(stop_importing())).await?;
    }
    report(session, args, &created, &plan.still_importing, &plan)?;
    Ok(Outcome::attention_if(!plan.stays.is_empty()))
}

async fn look(session: &Session, args: &Relocate) -> Result<Relocation> {
    let (from, to) = (side(session, &args.from).await?, side(session, &args.to).await?);
    Ok(decide(&from, &to))
}

/// What there is in a namespace.
async fn side(session: &Session, namespace: &str) -> Result<Side> {
    let mut side = Side { namespace: namespace.to_owned(), ..Side::default() };
    for kind in KINDS {
        let api = Api::<DynamicObject>::namespaced_with(session.client.clone(), namespace, &kind.resource());
        let mut page = ListParams::default().limit(500);
        loop {
            let list = api.list(&page).await?;
            for object in list.items {
                let name = object.metadata.name.clone().unwrap_or_default();
                side.objects.insert((kind, name), serde_json::to_value(object)?);
            }
            let Some(next) = list.metadata.continue_.filter(|next| !next.is_empty()) else { break };
            page = page.continue_token(&next);
        }
    }
    Ok(side)
}

/// Two controllers, or one that sees half of what moves, would undo it.
async fn nacre_is_stopped(session: &Session, namespace: &str) -> Result<()> {
    let deployments = Api::<Deployment>::namespaced(session.client.clone(), namespace);
    let found = deployments.get_opt(CONTROLLER).await?;
    let replicas = found.and_then(|found| found.spec?.replicas).unwrap_or(0);
    if replicas > 0 {
        bail!(
            "deployment/{CONTROLLER} in {namespace} runs and would see backups that are only half there: kubectl scale deployment \
             {CONTROLLER} -n {namespace} --replicas=0"
        );
    }
    Ok(())
}

/// Whether the object is new: one that somebody else has created meanwhile is looked at in the next round. Approval
/// requests have a status that is written separately, and an approval counts for what is written down there.
async fn create(session: &Session, step: &Object) -> Result<bool> {
    let api = Api::<DynamicObject>::namespaced_with(
        session.client.clone(),
        step.namespace(),
        &step.kind.resource(),
    );
    let has_status = step.kind == Kind::NonAdminBackupStorageLocationRequest && is_written_down(&step.body);
    let found = match api.create(&PostParams::default(), &serde_json::from_value(step.body.clone())?).await {
        Ok(found) if has_status => found,
        Ok(_) => return Ok(true),
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            match api.get_opt(step.name()).await? {
                Some(found) if has_status && !is_written_down(&found.data) => found,
                _ => return Ok(false),
            }
        }
        Err(error) => return Err(error.into()),
    };
    let status = json!({"metadata": {"uid": found.metadata.uid}, "status": step.body["status"]});
    api.patch_status(step.name(), &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(true)
}

fn named(step: &Object) -> String {
    format!("{}/{}", step.kind.name().to_lowercase(), step.name())
}

fn report(
    session: &Session,
    args: &Relocate,
    created: &[String],
    stopped_importing: &[String],
    plan: &Relocation,
) -> Result<()> {
    let answer = Answer {
        dry_run: args.dry_run,
        created,
        backups: &plan.moved,
        stopped_importing,
        stays: &plan.stays,
    };
    let would = if args.dry_run { "would be created" } else { "created" };
    let table = || {
        let mut text = lines(created.iter().map(|name| format!("{name} {would} in {}", args.to)));
        if !plan.stays.is_empty() {
            let mut table = Table::new(&["STAYS", "WHY"]);
            for one in &plan.stays {
                table.row([one.what.as_str(), one.why.as_str()]);
            }
            text.push_str(&table.to_string());
        }
        let kinds: BTreeSet<&str> = created.iter().filter_map(|name| name.split('/').next()).collect();
        if kinds.is_empty() {
            text.push_str("everything that can be moved is there\n");
        }
        let stops = if args.dry_run { "would stop importing" } else { "does not import any more" };
        text.push_str(&lines(
            stopped_importing.iter().map(|name| format!("Velero in {} {stops} from {name}", args.from)),
        ));
        if !plan.left.is_empty() {
            let before = format!(
                "before `kubectl nacre uninstall -n {from}`, which removes the admission policies, delete the tenants' locations that are \
                 left: {command}",
                from = args.from,
                command = delete_tenants_locations(&args.from)
            );
            text.push_str(&lines([before]));
        }
        text
    };
    print(session.format, &answer, table, || created.to_vec())
}
