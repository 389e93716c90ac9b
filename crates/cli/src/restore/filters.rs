//! The flags that say what a restore brings back, with the names of `velero restore create`.

use anyhow::Result;
use api::{
    Duration,
    velero::{RestoreSpec, UploaderConfigForRestore},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::{
    backup::config_map,
    connect::Session,
    resources::{self, Unknown},
    selector,
    send::{given, written_duration},
};

/// What to bring back, and how.
#[derive(Debug, clap::Args)]
pub(super) struct Filters {
    /// Only these resources: deployments.apps,configmaps.
    #[arg(long, value_name = "RESOURCES", value_delimiter = ',')]
    include_resources: Vec<String>,

    /// All resources but these.
    #[arg(long, value_name = "RESOURCES", value_delimiter = ',')]
    exclude_resources: Vec<String>,

    /// Only objects with these labels: app=shop,tier!=test.
    #[arg(short = 'l', long, value_name = "LABELS", value_parser = selector::parse)]
    selector: Option<LabelSelector>,

    /// Only objects that one of these selects: 'app=a or app=b'; may be repeated.
    #[arg(long, value_name = "LABELS", value_parser = selector::parse_several, conflicts_with = "selector")]
    or_selector: Vec<selector::Several>,

    /// Existing objects: `none` keeps them, `update` changes them.
    #[arg(long, value_name = "POLICY", value_parser = ["none", "update"])]
    existing_resource_policy: Option<String>,

    /// Whether volumes are restored.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    restore_volumes: Option<bool>,

    /// Whether services keep their node ports.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    preserve_nodeports: Option<bool>,

    /// Whether to write sparse files.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    write_sparse_files: Option<bool>,

    /// Number of files to download in parallel.
    #[arg(long, value_name = "NUMBER")]
    parallel_files_download: Option<i64>,

    /// Timeout of background operations of plugins.
    #[arg(long, value_name = "DURATION", value_parser = written_duration)]
    item_operation_timeout: Option<Duration>,

    /// An administrator's ConfigMap with resource modifiers for restored objects.
    #[arg(long, value_name = "CONFIGMAP")]
    resource_modifier_configmap: Option<String>,

    /// An administrator's ConfigMap with Velero's resource policy for volumes.
    #[arg(long, value_name = "CONFIGMAP")]
    resource_policies_configmap: Option<String>,

    // People who know Velero will try these.
    #[arg(long, hide = true, value_parser = this_namespace)]
    include_namespaces: Option<String>,
    #[arg(long, hide = true, value_parser = this_namespace)]
    exclude_namespaces: Option<String>,
    #[arg(long, hide = true, value_parser = this_namespace)]
    namespace_mappings: Option<String>,
    #[arg(long, hide = true, value_parser = no_schedules)]
    from_schedule: Option<String>,
}

impl Filters {
    /// The spec of the request.
    pub(super) fn spec(&self, backup: String) -> RestoreSpec {
        let either: Vec<LabelSelector> = self.or_selector.iter().flat_map(|some| some.0.clone()).collect();
        let files = UploaderConfigForRestore {
            write_sparse_files: self.write_sparse_files,
            parallel_files_download: self.parallel_files_download,
        };
        RestoreSpec {
            backup_name: Some(backup),
            included_resources: given(self.include_resources.clone()),
            excluded_resources: given(self.exclude_resources.clone()),
            label_selector: self.selector.clone(),
            or_label_selectors: given(either),
            restore_pvs: self.restore_volumes,
            preserve_node_ports: self.preserve_nodeports,
            existing_resource_policy: self.existing_resource_policy.clone(),
            item_operation_timeout: self.item_operation_timeout.clone(),
            resource_modifier: self.resource_modifier_configmap.as_deref().map(config_map),
            resource_policy: self.resource_policies_configmap.as_deref().map(config_map),
            uploader_config: (files != UploaderConfigForRestore::default()).then_some(files),
            ..RestoreSpec::default()
        }
    }
}

/// Warns about names of resources that the cluster does not serve. What is in a backup may need a CRD that is missing
/// now.
pub(super) async fn check_resources(session: &Session, spec: &RestoreSpec) -> Result<()> {
    let fields = [
        ("spec.restoreSpec.includedResources", spec.included_resources.as_deref(), Unknown::Warn),
        ("spec.restoreSpec.excludedResources", spec.excluded_resources.as_deref(), Unknown::Warn),
    ];
    resources::check(session, &fields).await
}

fn this_namespace(_: &str) -> Result<String, String> {
    Err("a restore goes into the namespace it is made in; choose that with -n".to_owned())
}

fn no_schedules(_: &str) -> Result<String, String> {
    Err("there are no schedules of a namespace's own; name a backup with --from-backup".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        filters: Filters,
    }

    #[test]
    fn flags_become_the_fields_velero_has() {
        let program = Program::parse_from([
            "create",
            "--include-resources",
            "configmaps",
            "--existing-resource-policy",
            "update",
            "--restore-volumes=false",
            "--preserve-nodeports",
            "--write-sparse-files",
        ]);
        let spec = program.filters.spec("daily".to_owned());
        insta::assert_snapshot!(serde_json::to_string(&spec).unwrap(), @r#"{"backupName":"daily","includedResources":["configmaps"],"restorePVs":false,"preserveNodePorts":true,"existingResourcePolicy":"update","uploaderConfig":{"writeSparseFiles":true}}"#);
    }
}
