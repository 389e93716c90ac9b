//! `backup create`, with the flags of `velero backup create` as far as a namespace owner can use them.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, bail};
use api::{
    Duration, NonAdminBackup, NonAdminBackupSpec, NonAdminSchedule,
    velero::{BackupSpec, UploaderConfigForBackup},
};
use clap::Parser as _;
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Pod, TypedLocalObjectReference},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::{Api, api::ListParams, core::ObjectMeta};
use planner::Policy;

use crate::{
    connect::Session,
    list,
    location::known::warn_of_missing,
    output::{Outcome, remark},
    resources::{self, Unknown},
    selector,
    send::{Sending, generated, given, lifetime, written_duration},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre backup create                          everything in the namespace, under a name with the date
  kubectl nacre backup create daily --wait             and see how it goes
  kubectl nacre backup create --ttl 72h --storage-location mine
  kubectl nacre backup create --include-resources deployments,configmaps -l app=shop
  kubectl nacre backup create daily --dry-run -o yaml > daily.yaml
  kubectl nacre backup create --from-schedule nightly  as the schedule does, now

A backup covers the namespace it is made in, and nothing cluster-scoped but the volumes of its claims.
With --wait the exit code is Velero's outcome: 0 Completed, 3 PartiallyFailed or 0 items, 1 Failed or refused.")]
pub(super) struct Create {
    /// Name of the backup. Default: `backup-` and the time.
    name: Option<String>,

    #[command(flatten)]
    sending: Sending,

    /// Back up as this schedule does, now. The backup is not one of its runs: it stays until you delete it or it expires.
    #[arg(long, value_name = "SCHEDULE")]
    from_schedule: Option<String>,

    #[command(flatten)]
    template: Template,
}

/// What to back up, and how: for one backup, or for each run of a schedule.
#[derive(Debug, clap::Args)]
pub(crate) struct Template {
    /// How long to keep it, such as 72h or 720h. Default: the policy's or Velero's.
    #[arg(long, value_name = "DURATION", value_parser = lifetime, allow_hyphen_values = true)]
    ttl: Option<Duration>,

    /// The NonAdminBackupStorageLocation to store it in. Default: the cluster's own storage.
    #[arg(long, value_name = "LOCATION")]
    storage_location: Option<String>,

    /// Timeout of background operations of plugins.
    #[arg(long, value_name = "DURATION", value_parser = written_duration)]
    item_operation_timeout: Option<Duration>,

    /// An administrator's ConfigMap with Velero's resource policy for volumes.
    #[arg(long, value_name = "CONFIGMAP")]
    resource_policies_configmap: Option<String>,

    #[command(flatten)]
    what: What,

    #[command(flatten)]
    volumes: Volumes,

    // People who know Velero will try these.
    #[arg(long, hide = true, value_parser = covers_this_namespace)]
    include_namespaces: Option<String>,
    #[arg(long, hide = true, value_parser = covers_this_namespace)]
    exclude_namespaces: Option<String>,
    #[arg(long, hide = true, value_parser = nothing_cluster_scoped, num_args = 0..=1, default_missing_value = "true")]
    include_cluster_resources: Option<String>,
    #[arg(long, hide = true, value_parser = nothing_cluster_scoped)]
    include_cluster_scoped_resources: Option<String>,
    #[arg(long, hide = true, value_parser = administrators_decide)]
    volume_snapshot_locations: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "What to back up")]
struct What {
    /// Only these resources: deployments.apps,configmaps.
    #[arg(long, value_name = "RESOURCES", value_delimiter = ',')]
    include_resources: Vec<String>,

    /// All resources but these.
    #[arg(long, value_name = "RESOURCES", value_delimiter = ',')]
    exclude_resources: Vec<String>,

    /// Only these resources inside the namespace; does not go with the two above.
    #[arg(long, value_name = "RESOURCES", value_delimiter = ',')]
    include_namespace_scoped_resources: Vec<String>,

    /// All resources inside the namespace but these.
    #[arg(long, value_name = "RESOURCES", value_delimiter = ',')]
    exclude_namespace_scoped_resources: Vec<String>,

    /// No cluster-scoped resources of these kinds.
    #[arg(long, value_name = "RESOURCES", value_delimiter = ',')]
    exclude_cluster_scoped_resources: Vec<String>,

    /// Only objects with these labels: app=shop,tier!=test.
    #[arg(short = 'l', long, value_name = "LABELS", value_parser = selector::parse)]
    selector: Option<LabelSelector>,

    /// Only objects that one of these selects: 'app=a or app=b'; may be repeated.
    #[arg(long, value_name = "LABELS", value_parser = selector::parse_several, conflicts_with = "selector")]
    or_selector: Vec<selector::Several>,

    /// Objects to back up first, by kind: 'pods=a,b;configmaps=c'.
    #[arg(long, value_name = "KIND=NAMES;...")]
    ordered_resources: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Volumes")]
#[expect(clippy::struct_field_names, reason = "they are the flags")]
struct Volumes {
    /// Whether to take snapshots of volumes.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    snapshot_volumes: Option<bool>,

    /// Whether to move snapshot data into the storage. Required to restore snapshots from your own storage.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    snapshot_move_data: Option<bool>,

    /// Whether to save volumes file by file.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    default_volumes_to_fs_backup: Option<bool>,

    /// The data mover. Default: Velero's own.
    #[arg(long, value_name = "NAME")]
    data_mover: Option<String>,

    /// Number of files to upload in parallel.
    #[arg(long, value_name = "NUMBER")]
    parallel_files_upload: Option<i64>,

    /// Timeout of a CSI snapshot.
    #[arg(long, value_name = "DURATION", value_parser = written_duration)]
    csi_snapshot_timeout: Option<Duration>,

    /// Snapshot claims with the same value of this label together.
    #[arg(long, value_name = "LABEL")]
    volume_group_snapshot_label_key: Option<String>,
}

/// The flags alone, for somebody who fills in a form instead.
#[derive(Debug, clap::Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Flags {
    #[command(flatten)]
    template: Template,
}

/// A backup as these flags describe it, checked as far as that is possible without sending it.
pub(crate) async fn prepared(session: &Session, name: String, flags: &[String]) -> Result<NonAdminBackup> {
    let flags = Flags::try_parse_from(flags).map_err(|error| anyhow!("{}", in_one_line(&error)))?;
    let spec = flags.template.spec()?;
    if let Some(refusal) = planner::backup::check_spec(&spec, &session.namespace, &Policy::default()) {
        bail!("this backup would be refused: {refusal}");
    }
    check_resources(session, &spec).await?;
    Ok(request(name, spec))
}

/// What clap says about a flag, without how to use a command line.
pub(crate) fn in_one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

fn request(name: String, spec: BackupSpec) -> NonAdminBackup {
    NonAdminBackup {
        metadata: ObjectMeta { name: Some(name), ..ObjectMeta::default() },
        spec: NonAdminBackupSpec { backup_spec: spec, delete_backup: None },
        status: None,
    }
}

pub(super) async fn run(session: &Session, args: Create) -> Result<Outcome> {
    let named = args.name.is_some();
    let name = args.name.clone().unwrap_or_else(|| generated("backup", Timestamp::now()));
    let spec = match &args.from_schedule {
        None => args.template.spec()?,
        Some(schedule) => from_schedule(session, schedule, &args.template).await?,
    };
    // What no policy can allow need not be sent.
    if let Some(refusal) = planner::backup::check_spec(&spec, &session.namespace, &Policy::default()) {
        bail!("this backup would be refused: {refusal}");
    }
    // A dry run asks nobody.
    if args.sending.dry_run.is_none() {
        check_resources(session, &spec).await?;
        warn_of_missing(session, spec.storage_location.as_deref()).await?;
        warn_of_pods(session, &spec).await;
    }
    Box::pin(args.sending.send(session, request(name, spec), named)).await
}

/// The template of a schedule. Flags would contradict it.
async fn from_schedule(session: &Session, name: &str, flags: &Template) -> Result<BackupSpec> {
    if flags.spec()? != BackupSpec::default() {
        bail!(
            "--from-schedule takes everything from the schedule; leave the other flags about the backup out"
        );
    }
    let (schedule, _) = list::one::<NonAdminSchedule>(session, name).await?;
    Ok(schedule.spec.template.backup_spec)
}

/// Warns of pods whose volumes would not come back file by file. Whoever may not list pods is not warned.
async fn warn_of_pods(session: &Session, spec: &BackupSpec) {
    if spec.default_volumes_to_fs_backup == Some(false) {
        return;
    }
    let pods: Api<Pod> = Api::namespaced(session.client.clone(), &session.namespace);
    let found = pods.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
    if let Some(warning) = planner::backup::pods_without_user(&found) {
        remark(format_args!("warning: {warning}"));
    }
}

/// Velero backs up nothing for a name that the cluster does not serve, and calls that complete. A name too many among
/// those to leave out does less harm, and may be meant for another cluster.
async fn check_resources(session: &Session, spec: &BackupSpec) -> Result<()> {
    let fields = [
        ("spec.backupSpec.includedResources", &spec.included_resources, Unknown::Refuse),
        (
            "spec.backupSpec.includedNamespaceScopedResources",
            &spec.included_namespace_scoped_resources,
            Unknown::Refuse,
        ),
        ("spec.backupSpec.excludedResources", &spec.excluded_resources, Unknown::Warn),
        (
            "spec.backupSpec.excludedNamespaceScopedResources",
            &spec.excluded_namespace_scoped_resources,
            Unknown::Warn,
        ),
        (
            "spec.backupSpec.excludedClusterScopedResources",
            &spec.excluded_cluster_scoped_resources,
            Unknown::Warn,
        ),
    ];
    resources::check(session, &fields.map(|(field, names, unknown)| (field, names.as_deref(), unknown))).await
}

impl Template {
    pub(crate) fn spec(&self) -> Result<BackupSpec> {
        let (what, volumes) = (&self.what, &self.volumes);
        let either: Vec<LabelSelector> = what.or_selector.iter().flat_map(|some| some.0.clone()).collect();
        Ok(BackupSpec {
            included_resources: given(what.include_resources.clone()),
            excluded_resources: given(what.exclude_resources.clone()),
            included_namespace_scoped_resources: given(what.include_namespace_scoped_resources.clone()),
            excluded_namespace_scoped_resources: given(what.exclude_namespace_scoped_resources.clone()),
            excluded_cluster_scoped_resources: given(what.exclude_cluster_scoped_resources.clone()),
            label_selector: what.selector.clone(),
            or_label_selectors: given(either),
            ordered_resources: what.ordered_resources.as_deref().map(ordered).transpose()?,
            snapshot_volumes: volumes.snapshot_volumes,
            snapshot_move_data: volumes.snapshot_move_data,
            default_volumes_to_fs_backup: volumes.default_volumes_to_fs_backup,
            datamover: volumes.data_mover.clone(),
            uploader_config: volumes
                .parallel_files_upload
                .map(|number| UploaderConfigForBackup { parallel_files_upload: Some(number) }),
            csi_snapshot_timeout: volumes.csi_snapshot_timeout.clone(),
            volume_group_snapshot_label_key: volumes.volume_group_snapshot_label_key.clone(),
            ttl: self.ttl.clone(),
            storage_location: self.storage_location.clone(),
            item_operation_timeout: self.item_operation_timeout.clone(),
            resource_policy: self.resource_policies_configmap.as_deref().map(config_map),
            ..BackupSpec::default()
        })
    }
}

/// A ConfigMap, as Velero refers to one.
pub(crate) fn config_map(name: &str) -> TypedLocalObjectReference {
    TypedLocalObjectReference { api_group: None, kind: "configmap".to_owned(), name: name.to_owned() }
}

/// Reads `pods=a,b;configmaps=c`, as Velero writes it.
fn ordered(text: &str) -> Result<BTreeMap<String, String>> {
    let entries = text.split(';').map(|entry| match entry.split_once('=') {
        Some((kind, names)) => Ok((kind.trim().to_owned(), names.trim().to_owned())),
        None => bail!("--ordered-resources: {entry:?} is not KIND=NAMES"),
    });
    entries.collect()
}

fn covers_this_namespace(_: &str) -> Result<String, String> {
    Err("a backup covers the namespace it is made in; choose that with -n".to_owned())
}

fn nothing_cluster_scoped(_: &str) -> Result<String, String> {
    Err("cluster-scoped resources are not available to namespace owners; leave it out".to_owned())
}

fn administrators_decide(_: &str) -> Result<String, String> {
    Err("where snapshots are kept is for the administrators to say; leave it out".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        create: Create,
    }

    fn spec(arguments: &[&str]) -> String {
        let program = Program::parse_from([&["create"], arguments].concat());
        serde_json::to_string(&program.create.template.spec().unwrap()).unwrap()
    }

    #[test]
    fn nothing_said_is_nothing_sent() {
        assert_eq!(spec(&[]), "{}");
    }

    #[test]
    fn flags_become_the_fields_velero_has() {
        let said = spec(&[
            "daily",
            "--include-resources",
            "deployments,configmaps",
            "-l",
            "app=shop",
            "--ttl",
            "72h",
            "--snapshot-volumes=false",
            "--snapshot-move-data",
            "--storage-location",
            "mine",
            "--ordered-resources",
            "pods=a,b;configmaps=c",
            "--resource-policies-configmap",
            "volumes",
        ]);
        insta::assert_snapshot!(said, @r#"{"includedResources":["deployments","configmaps"],"labelSelector":{"matchLabels":{"app":"shop"}},"snapshotVolumes":false,"ttl":"72h","storageLocation":"mine","orderedResources":{"configmaps":"c","pods":"a,b"},"resourcePolicy":{"kind":"configmap","name":"volumes"},"snapshotMoveData":true}"#);
        insta::assert_snapshot!(spec(&["--or-selector", "app=a or app=b", "--or-selector", "tier"]), @r#"{"orLabelSelectors":[{"matchLabels":{"app":"a"}},{"matchLabels":{"app":"b"}},{"matchExpressions":[{"key":"tier","operator":"Exists"}]}]}"#);
    }
}
