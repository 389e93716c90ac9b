//! `explain`: what nacre would do with a request, before it is sent.

mod manifest;
mod restore;
mod rule;
mod server;
mod show;

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use anyhow::{Result, bail};
use api::{
    Claim, HiddenSecret, NodeAgent, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminRestore, Volume,
};
use clap::ValueEnum;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, api::ListParams};
use planner::{
    Action,
    backup::{self, VolumeFacts, VolumeMethod, volume_method},
    requester::{Foretold, Wish},
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    allowed::{self, Allowed, Source},
    changes::{self, Change, Known, changes},
    connect::Session,
    describe::page::Page,
    list,
    output::{Outcome, print, remark},
    preview::{PreviewResult, World, of_backup, of_location, of_restore},
    resources,
    table::Cell,
    whoami, wrap,
};
use manifest::Manifest;
pub(crate) use restore::{RestoreVerdict, verdict_of_restore};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre explain -f daily.yaml                  would it pass, and what would Velero get?
  kubectl nacre backup create --ttl 9000h --dry-run | kubectl nacre explain -f -
  kubectl nacre explain backup daily                   its status, and what if it were sent again
  kubectl nacre explain -f daily.yaml --policy policy.yaml

Nothing is changed. Without permission to read the administrators' policy, the defaults are used,
and a server-side dry run asks nacre's webhook about the policy. Without the webhook the answer is unknown.
Exit code 3 if it is or would be refused, if it waits or would have to wait, and if the answer is unknown.")]
pub(crate) struct Explain {
    /// Kind of an object in the cluster.
    #[arg(value_enum, required_unless_present = "filename", requires = "name")]
    kind: Option<Kind>,

    /// The name of that object.
    name: Option<String>,

    /// A file with one or more manifests; `-` for standard input.
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["kind", "name"])]
    filename: Option<PathBuf>,

    /// Use this policy instead of the cluster's.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    #[value(aliases = ["nab", "backups", "nonadminbackup"])]
    Backup,
    #[value(aliases = ["nar", "restores", "nonadminrestore"])]
    Restore,
    #[value(aliases = ["nabsl", "bsl", "locations", "nonadminbackupstoragelocation"])]
    Location,
}

/// All there is to say about one request.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Explanation {
    kind: &'static str,
    name: String,
    namespace: String,
    /// The status of the object in the cluster, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    reported: Option<Reported>,
    /// Why nacre does what it does about the object in the cluster now, or does nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<String>,
    /// passes, needsApproval, refused, waits or unknown.
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The part of the policy that makes it so; none if it is nacre's own rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'static str>,
    policy: Source,
    changes: Vec<Change>,
    /// What Velero would be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    velero_spec: Option<Value>,
    /// How the data of each claim would be saved, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    volumes: Vec<ClaimMethod>,
    /// What of the backup could not be restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_restorable: Option<String>,
    /// Kinds that would be left out, since the caller lacks permissions for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
    /// What an administrator would run to permit them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    commands: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_server: Option<server::ServerAnswer>,
    not_checked: Vec<String>,
}

/// How the data of one claim would be saved, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct ClaimMethod {
    claim: String,
    method: String,
    /// Whether nacre chose it.
    #[serde(skip)]
    by_nacre: bool,
}

/// The status of an object in the cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Reported {
    status: String,
    message: String,
    /// It is refused, waits, or its Velero object is gone.
    #[serde(skip)]
    needs_attention: bool,
}

pub(crate) async fn run(session: &Session, args: &Explain) -> Result<Outcome> {
    let manifests = match (&args.filename, args.kind, &args.name) {
        (Some(file), ..) => manifest::read(file, &session.namespace)?,
        (None, Some(kind), Some(name)) => vec![find(session, kind, name).await?],
        _ => bail!("name a kind and an object, or a file with -f"),
    };
    let namespace = allowed::namespace(session).await;
    let allowed = allowed::read(session, &namespace, args.policy.as_deref()).await?;
    for problem in &allowed.problems {
        remark(format_args!("policy: {problem}"));
    }
    let mut answers = Vec::new();
    for manifest in &manifests {
        let world = look_around(session, manifest, &namespace, &allowed).await?;
        let answer = explain(&world, manifest, allowed.source);
        let answer = with_permissions(session, &world, manifest, answer).await?;
        let api_server = match allowed.source {
            Source::Unreadable => server::ask(session, manifest).await?,
            Source::File | Source::Cluster => None,
        };
        // The status in a file is nobody's.
        let (reported, now) = if args.filename.is_none() {
            (manifest.reported(), doing(&world, manifest, allowed.source))
        } else {
            (None, None)
        };
        answers.push(Explanation { reported, now, ..answer.checked_by(api_server) });
    }
    let shown = || wrap::to_terminal(answers.iter().map(show::page).collect::<Vec<_>>().join("\n"));
    let names = || answers.iter().map(|answer| format!("{}/{}", answer.kind, answer.name)).collect();
    match answers.as_slice() {
        [one] => print(session.format, one, shown, names)?,
        all => print(session.format, &all, shown, names)?,
    }
    Ok(Outcome::attention_if(answers.iter().any(Explanation::needs_attention)))
}

/// What would become of a request that is not made yet, for a page.
pub(crate) struct Explained {
    /// In one sentence.
    pub(crate) sentence: Cell,
    /// Why it would not simply pass, and whose rule that is.
    pub(crate) reasons: Vec<String>,
    /// What would be missing, although it passes.
    pub(crate) warnings: Vec<String>,
    /// The rest.
    pub(crate) page: Page,
}

impl From<&Explanation> for Explained {
    fn from(answer: &Explanation) -> Self {
        Self {
            sentence: show::sentence(answer),
            reasons: show::reasons(answer),
            warnings: show::warnings(answer),
            page: show::parts(answer),
        }
    }
}

/// What would become of a backup that is not made yet.
pub(crate) async fn of_new_backup(session: &Session, backup: NonAdminBackup) -> Result<Explained> {
    of_new(session, &Manifest::Backup(Box::new(backup))).await
}

/// The same of a location.
pub(crate) async fn of_new_location(
    session: &Session,
    location: NonAdminBackupStorageLocation,
) -> Result<Explained> {
    of_new(session, &Manifest::Location(Box::new(location))).await
}

async fn of_new(session: &Session, manifest: &Manifest) -> Result<Explained> {
    let (world, allowed) = world_of(session, manifest).await?;
    let answer = explain(&world, manifest, allowed.source);
    let answer = with_permissions(session, &world, manifest, answer).await?;
    let api_server = match allowed.source {
        Source::Unreadable => server::ask(session, manifest).await?,
        Source::File | Source::Cluster => None,
    };
    Ok(Explained::from(&answer.checked_by(api_server)))
}

/// Adds what the caller would not get of it for lack of permissions.
async fn with_permissions(
    session: &Session,
    world: &World,
    manifest: &Manifest,
    answer: Explanation,
) -> Result<Explanation> {
    let (Some(policy), true) =
        (world.policy.as_deref(), matches!(answer.verdict, "passes" | "needsApproval"))
    else {
        return Ok(answer);
    };
    let given = answer.velero_spec.clone().unwrap_or_default();
    let (backup, restore);
    let wish = match manifest {
        Manifest::Backup(asked) => {
            backup = serde_json::from_value(given)?;
            Wish::Backup(&asked.spec.backup_spec, &backup)
        }
        Manifest::Restore(asked) => {
            restore = serde_json::from_value(given)?;
            let own = |backup: &NonAdminBackup| backup.spec.backup_spec.storage_location.is_some();
            Wish::Restore(&asked.spec.restore_spec, &restore, !world.backups.iter().any(own), None)
        }
        Manifest::Location(asked) => {
            match planner::location::named_key(&asked.spec.backup_storage_location_spec) {
                Some((secret, _)) => Wish::Location(secret),
                None => return Ok(answer),
            }
        }
        Manifest::Malformed { .. } => return Ok(answer),
    };
    let Some(served) = resources::served(session).await else { return Ok(answer) };
    let Foretold { left_out, refusal, commands } = whoami::foretell(session, &served, wish, policy).await?;
    let answer = Explanation { left_out, commands, ..answer };
    Ok(match refusal {
        None => answer,
        Some(why) => {
            Explanation { verdict: "waits", reason: Some(why), rule: Some("requester.mode"), ..answer }
        }
    })
}

/// What the caller can see that matters for a request, and what is allowed.
async fn world_of(session: &Session, manifest: &Manifest) -> Result<(World, Allowed)> {
    let namespace = allowed::namespace(session).await;
    let allowed = allowed::read(session, &namespace, None).await?;
    let world = look_around(session, manifest, &namespace, &allowed).await?;
    Ok((world, allowed))
}

/// What a restore brings along beyond what was asked for, by the policy as it is now: Velero's side of it is not
/// mirrored.
pub(crate) async fn effect_of_restore(session: &Session, restore: &NonAdminRestore) -> Result<Vec<Change>> {
    let manifest = Manifest::Restore(Box::new(restore.clone()));
    let (world, allowed) = world_of(session, &manifest).await?;
    Ok(explain(&world, &manifest, allowed.source).changes)
}

impl Explanation {
    /// Adds what the API server says. Where neither it nor we could check the policy, nobody knows that it passes.
    fn checked_by(mut self, api_server: Option<server::ServerAnswer>) -> Self {
        let asked = api_server.as_ref().is_some_and(|answer| answer.webhook || answer.denied.is_some());
        let unchecked = self.policy == Source::Unreadable && !asked;
        if unchecked && matches!(self.verdict, "passes" | "needsApproval") {
            self.verdict = "unknown";
        }
        for (field, value) in api_server.iter().flat_map(|answer| &answer.set) {
            // The policy sets it, whatever the request or nacre alone would make of it.
            self.changes.retain(|change| change.field != *field);
            let by = "the administrators' policy".to_owned();
            self.changes.push(Change { field: field.clone(), value: Value::from(value.as_str()), by });
        }
        self.changes.sort_by(|one, other| one.field.cmp(&other.field));
        self.api_server = api_server;
        self
    }

    fn needs_attention(&self) -> bool {
        let denied = self.api_server.as_ref().is_some_and(|server_answer| server_answer.denied.is_some());
        let reported = self.reported.as_ref().is_some_and(|reported| reported.needs_attention);
        denied || reported || matches!(self.verdict, "refused" | "waits" | "unknown")
    }
}

async fn find(session: &Session, kind: Kind, name: &str) -> Result<Manifest> {
    Ok(match kind {
        Kind::Backup => Manifest::of(list::one::<NonAdminBackup>(session, name).await?, Manifest::Backup),
        Kind::Restore => Manifest::of(list::one::<NonAdminRestore>(session, name).await?, Manifest::Restore),
        Kind::Location => {
            Manifest::of(list::one::<NonAdminBackupStorageLocation>(session, name).await?, Manifest::Location)
        }
    })
}

/// Reads what a decision about this needs, and no more.
async fn look_around(
    session: &Session,
    manifest: &Manifest,
    namespace: &Namespace,
    allowed: &Allowed,
) -> Result<World> {
    let mut world = World {
        namespace: namespace.clone(),
        policy: allowed.policy.clone(),
        velero_namespace: session.velero_namespace.clone(),
        now: Timestamp::now(),
        ..World::default()
    };
    let mut location = None;
    match manifest {
        Manifest::Malformed { .. } => {}
        Manifest::Backup(backup) => {
            location.clone_from(&backup.spec.backup_spec.storage_location);
            let limited = allowed.policy.as_ref().is_some_and(|policy| {
                policy.backup.max_per_namespace.is_some() || policy.backup.max_active_per_namespace.is_some()
            });
            if limited {
                let found = list::all(session, Some(&session.namespace), None, false).await?;
                world.backups = found.items.into_iter().map(|(backup, _)| backup).collect();
            }
            look_at_volumes(session, &mut world).await;
        }
        Manifest::Restore(restore) => {
            if let Some(name) = &restore.spec.restore_spec.backup_name
                && let Some(backup) = maybe::<NonAdminBackup>(session, name).await?
            {
                location.clone_from(&backup.spec.backup_spec.storage_location);
                world.backups = vec![backup];
            }
        }
        Manifest::Location(asked) => {
            let found = list::all(session, Some(&session.namespace), None, false).await?;
            world.locations = found.items.into_iter().map(|(location, _)| location).collect();
            let spec = &asked.spec.backup_storage_location_spec;
            if let Some((secret, _)) = planner::location::named_key(spec) {
                let api: Api<HiddenSecret> = Api::namespaced(session.client.clone(), &session.namespace);
                world.secret = api.get_opt(secret).await?;
            }
        }
    }
    if let Some(name) = location {
        world.locations.extend(maybe(session, &name).await?);
        // Tenants may not see it: then it is taken for granted, and nacre's webhook knows better.
        let fenced = engine::is_fenced(&session.client, &session.velero_namespace).await.unwrap_or(true);
        if let Some(policy) = &mut world.policy {
            Arc::make_mut(policy).restore.from_tenant_storage.pods_are_fenced = fenced;
        }
    }
    Ok(world)
}

/// Reads the claims, and whether Velero's node agent runs. Tenants may not see the latter: then it is taken for granted.
async fn look_at_volumes(session: &Session, world: &mut World) {
    let claims: Api<Claim> = Api::namespaced(session.client.clone(), &session.namespace);
    let agents: Api<NodeAgent> = Api::namespaced(session.client.clone(), &session.velero_namespace);
    let volumes: Api<Volume> = Api::all(session.client.clone());
    let all = ListParams::default();
    let classes = engine::read_snapshot_classes(&session.client);
    let (claims, agents, volumes, classes) =
        tokio::join!(claims.list(&all), agents.list(&all), volumes.list(&all), classes);
    let claims = claims.ok().map(|list| list.items.into_iter().map(Arc::new).collect::<Vec<_>>());
    let agents = agents.ok().map(|list| list.items);
    let not_checked = match &claims {
        None => Some("how volumes are saved: the claims of the namespace cannot be read"),
        Some(claims) if agents.is_none() && !claims.is_empty() => {
            Some("whether Velero's node agent runs, which saves volumes file by file")
        }
        Some(_) => None,
    };
    world.not_checked.extend(not_checked.map(str::to_owned));
    let node_agent_runs = agents.as_ref().is_none_or(|agents| agents.iter().any(NodeAgent::runs));
    let takes_csi_snapshots =
        agents.is_some_and(|agents| agents.is_empty() || agents.iter().any(NodeAgent::takes_csi_snapshots));
    world.volumes = VolumeFacts {
        claims,
        node_agent_runs,
        takes_csi_snapshots,
        // Whoever may not list them learns from the backup's own spec.
        snapshot_classes: Arc::new(classes.unwrap_or_default()),
        host_paths: volumes.map(|volumes| host_paths(&volumes.items)).unwrap_or_default(),
        ..VolumeFacts::default()
    };
}

/// The claims whose data is in a folder of a node.
fn host_paths(volumes: &[Volume]) -> BTreeSet<String> {
    volumes.iter().filter_map(Volume::host_path_of).map(str::to_owned).collect()
}

async fn maybe<K: list::Readable>(session: &Session, name: &str) -> Result<Option<K>> {
    match list::one::<K>(session, name).await {
        Ok((object, _)) => Ok(Some(object)),
        Err(error) => match error.downcast_ref() {
            Some(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            _ => Err(error),
        },
    }
}

/// The planner's word, the rule behind it, and what would become of the spec.
fn explain(world: &World, manifest: &Manifest, policy: Source) -> Explanation {
    let verdict = judge(world, manifest);
    // What nacre does independent of the policy, to separate it from what the policy does.
    let open = World { policy: Some(Arc::default()), ..world.clone() };
    let fenced = match judge(&open, manifest) {
        PreviewResult::Passes(spec) => spec,
        _ => Value::Null,
    };
    let rules = world.policy.as_deref().map(|policy| match manifest {
        Manifest::Backup(_) => changes::backup_rules(policy),
        Manifest::Restore(_) => changes::restore_rules(policy),
        Manifest::Location(_) => changes::location_rules(policy),
        Manifest::Malformed { .. } => Vec::new(),
    });
    let rule = match &verdict {
        PreviewResult::Refused(_) | PreviewResult::Waits(_) => {
            rule::behind(&verdict, world.policy.as_deref(), |policy| {
                judge(&World { policy: Some(Arc::new(policy)), ..world.clone() }, manifest)
            })
        }
        _ => None,
    };
    let (named, reason, spec) = match verdict {
        PreviewResult::Passes(spec) => ("passes", None, Some(spec)),
        PreviewResult::NeedsApproval => ("needsApproval", None, None),
        PreviewResult::Refused(why) => ("refused", Some(why), None),
        PreviewResult::Waits(why) => ("waits", Some(why), None),
    };
    let asked = manifest.asked();
    let volumes = volumes(world, manifest);
    let saves_volumes = volumes.iter().any(|volume| volume.by_nacre);
    let known = Known { fenced, rules, velero: false, saves_volumes };
    Explanation {
        kind: manifest.noun(),
        name: manifest.name(),
        namespace: world.namespace.metadata.name.clone().unwrap_or_default(),
        reported: None,
        now: None,
        verdict: named,
        reason,
        rule,
        policy,
        changes: spec.as_ref().map(|spec| changes(&asked, spec, &known)).unwrap_or_default(),
        not_restorable: not_restorable(world, manifest, spec.as_ref()),
        velero_spec: spec,
        volumes,
        left_out: Vec::new(),
        commands: Vec::new(),
        api_server: None,
        not_checked: manifest.not_checked(policy).into_iter().chain(world.not_checked.clone()).collect(),
    }
}

/// Why nacre does what it does about an object in the cluster now, or does nothing. None where that depends on what
/// the caller cannot read: the policy, or an approval.
fn doing(world: &World, manifest: &Manifest, policy: Source) -> Option<String> {
    let plan = match manifest {
        Manifest::Backup(backup) => world.decide_backup(backup),
        Manifest::Restore(restore) => world.decide_restore(restore),
        Manifest::Location(_) | Manifest::Malformed { .. } => None,
    }?;
    let by_policy = plan.actions.iter().any(|action| matches!(action, Action::Create(_)));
    (policy != Source::Unreadable || !by_policy).then(|| plan.because.into_owned())
}

/// What of a backup could not be restored, if Velero were given this. One that waits is given what it asks for.
fn not_restorable(world: &World, manifest: &Manifest, given: Option<&Value>) -> Option<String> {
    let Manifest::Backup(backup) = manifest else { return None };
    let asked = &backup.spec.backup_spec;
    let mut given: api::velero::BackupSpec = match given {
        Some(given) => serde_json::from_value(given.clone()).ok()?,
        None => asked.clone(),
    };
    given.storage_location.clone_from(&asked.storage_location);
    backup::not_restorable(&given, world.policy.as_deref()?)
}

/// What would be done for each claim.
fn volumes(world: &World, manifest: &Manifest) -> Vec<ClaimMethod> {
    let (Manifest::Backup(backup), Some(policy)) = (manifest, world.policy.as_deref()) else {
        return Vec::new();
    };
    let of = |claim: &Arc<Claim>| {
        let method = volume_method(&backup.spec.backup_spec, policy, &world.volumes, claim);
        ClaimMethod {
            claim: claim.metadata.name.clone().unwrap_or_default(),
            by_nacre: matches!(
                method,
                VolumeMethod::FileByFile | VolumeMethod::Snapshot | VolumeMethod::MovedSnapshot
            ),
            method: match claim.spec.volume_name {
                Some(_) => method.to_string(),
                None => "nothing to save: it has no volume yet".to_owned(),
            },
        }
    };
    world.volumes.claims.iter().flatten().map(of).collect()
}

fn judge(world: &World, manifest: &Manifest) -> PreviewResult {
    match manifest {
        Manifest::Backup(backup) => of_backup(world, backup),
        Manifest::Restore(restore) => of_restore(world, restore),
        Manifest::Location(location) => of_location(world, location),
        Manifest::Malformed { why, .. } => PreviewResult::Refused(format!("spec: cannot be read: {why}")),
    }
}

#[cfg(test)]
mod tests;
