//! Schemas that Rust's types cannot say by themselves.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray as Items,
    JSONSchemaPropsOrBool as Additional,
};
use schemars::{Schema, SchemaGenerator, json_schema};

macro_rules! one_of {
    ($(#[$doc:meta])* $name:ident: $($word:literal)*) => {
        $(#[$doc])*
        pub(crate) fn $name(_: &mut SchemaGenerator) -> Schema {
            json_schema!({ "type": "string", "enum": [$($word),*] })
        }
    };
}

one_of! {
    /// Every phase a Backup of Velero 1.18 can have.
    backup_phase: "New" "Queued" "ReadyToStart" "FailedValidation" "InProgress" "WaitingForPluginOperations"
        "WaitingForPluginOperationsPartiallyFailed" "Finalizing" "FinalizingPartiallyFailed" "Completed"
        "PartiallyFailed" "Failed" "Deleting"
}
one_of! {
    /// Every phase a Restore of Velero 1.18 can have.
    restore_phase: "New" "FailedValidation" "InProgress" "WaitingForPluginOperations"
        "WaitingForPluginOperationsPartiallyFailed" "Completed" "PartiallyFailed" "Failed" "Finalizing"
        "FinalizingPartiallyFailed"
}
one_of! { location_phase: "Available" "Unavailable" }
one_of! { access_mode: "ReadOnly" "ReadWrite" }
one_of! { on_error: "Continue" "Fail" }
one_of! { delete_phase: "New" "InProgress" "Processed" }
one_of! { schedule_phase: "New" "Enabled" "FailedValidation" }
one_of! { download_phase: "New" "Processed" }
one_of! {
    /// What Velero can sign a URL for.
    download_kind: "BackupLog" "BackupContents" "BackupVolumeSnapshots" "BackupItemOperations" "BackupResourceList"
        "BackupResults" "RestoreLog" "RestoreResults" "RestoreResourceList" "RestoreItemOperations"
        "CSIBackupVolumeSnapshots" "CSIBackupVolumeSnapshotContents" "BackupVolumeInfos" "RestoreVolumeInfo"
}

/// Base64.
pub(crate) fn bytes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "byte" })
}

/// A list whose items are not looked into.
pub(crate) fn anything_in_a_list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// An object whose fields are not looked into.
pub(crate) fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// Takes out what the API server would only carry around: number formats it does not know, and bounds that
/// follow from the Rust type.
pub(crate) fn tidy(crd: &mut CustomResourceDefinition) {
    for version in &mut crd.spec.versions {
        if let Some(root) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            walk(root);
        }
    }
}

fn walk(schema: &mut JSONSchemaProps) {
    if schema.format.as_deref().is_some_and(|format| format.starts_with("uint") || format == "int64") {
        schema.format = None;
        schema.minimum = None;
    }
    let properties = schema.properties.iter_mut().flat_map(|properties| properties.values_mut());
    properties.for_each(walk);
    match &mut schema.items {
        Some(Items::Schema(item)) => walk(item),
        Some(Items::Schemas(items)) => items.iter_mut().for_each(walk),
        None => {}
    }
    if let Some(Additional::Schema(value)) = &mut schema.additional_properties {
        walk(value);
    }
}
