//! What velero-plugin-for-gcp reads.

use super::super::table::{Rule, allowed_key, refused};
use super::values::{one_of, word};

/// Every key of a location at Google Cloud.
pub(super) const KEYS: &[Rule] = &[
    allowed_key("kmsKeyName", "names the key that Google encrypts with"),
    allowed_key(
        "storeEndpoint",
        "is where the store is if not at the usual place; see the rules for endpoints",
    ),
    allowed_key("universeDomain", "must be googleapis.com"),
    refused("serviceAccount", "names an identity other than that of the credential"),
    refused("credentialsFile", "names a file in Velero's pod; use the field credential"),
    refused("bucket", "is set by Velero; use the field objectStorage.bucket"),
    refused("prefix", "is set by Velero; use the field objectStorage.prefix"),
    refused("caCert", "is set by Velero; use the field objectStorage.caCert"),
    refused("resticRepoPrefix", "sends the data of volumes elsewhere"),
    refused("s3Url", "makes another provider of it; use provider aws"),
    refused("fspath", "names a folder in Velero's pod"),
];

pub(super) fn objection(key: &str, value: &str) -> Option<String> {
    match key {
        "kmsKeyName" => word(value, 512, "/_.:-"),
        "universeDomain" => one_of(value, &["googleapis.com"]),
        _ => None,
    }
}
