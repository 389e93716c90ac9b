//! What velero-plugin-for-microsoft-azure and Velero's own repositories read.

use super::super::credentials::azure::ACCESS_KEY;
use super::super::table::{Rule, allowed_key, refused};
use super::values::{is_switch, one_of, word};

/// Every key of a location at Azure.
pub(super) const KEYS: &[Rule] = &[
    allowed_key("storageAccount", "is the storage account of the bucket; required"),
    allowed_key(
        "storageAccountKeyEnvVar",
        "must be AZURE_STORAGE_ACCOUNT_ACCESS_KEY, and stand in the credential",
    ),
    allowed_key(
        "storageAccountURI",
        "is where the store is if not at the usual place; see the rules for endpoints",
    ),
    allowed_key("resourceGroup", "is the resource group of the storage account"),
    allowed_key("subscriptionId", "is the subscription of the storage account"),
    allowed_key("useAAD", "says whether the service principal is used for the blobs themselves"),
    allowed_key("activeDirectoryAuthorityURI", "must be one of Microsoft's own"),
    allowed_key("blockSizeInBytes", "is how much is uploaded at a time"),
    refused("storageAccountSASTokenEnvVar", "chooses another kind of credential"),
    refused("storageAccountBlobEndpoint", "goes with another kind of credential; use storageAccountURI"),
    refused("credentialsFile", "names a file in Velero's pod; use the field credential"),
    refused("bucket", "is set by Velero; use the field objectStorage.bucket"),
    refused("prefix", "is set by Velero; use the field objectStorage.prefix"),
    refused("caCert", "is set by Velero; use the field objectStorage.caCert"),
    refused("caCertEncoded", "is set by Velero alone"),
    refused("resticRepoPrefix", "sends the data of volumes elsewhere"),
    refused("s3Url", "makes another provider of it; use provider aws"),
    refused("fspath", "names a folder in Velero's pod"),
];

/// Where Microsoft hands out tokens, in each of its clouds.
const AUTHORITIES: &[&str] = &[
    "https://login.microsoftonline.com/",
    "https://login.microsoftonline.us/",
    "https://login.chinacloudapi.cn/",
    "https://login.partner.microsoftonline.cn/",
];
/// What a block may be, and what the plugin keeps in memory for each upload.
const LARGEST_BLOCK: u32 = 100 * 1024 * 1024;

pub(super) fn objection(key: &str, value: &str) -> Option<String> {
    match key {
        // It becomes a part of the host.
        "storageAccount" if !(3..=24).contains(&value.len()) => {
            Some("must have 3 to 24 characters".to_owned())
        }
        "storageAccount" => word(value, 24, ""),
        "storageAccountKeyEnvVar" => one_of(value, &[ACCESS_KEY]),
        "resourceGroup" => word(value, 90, "_.()-"),
        "subscriptionId" => word(value, 64, "-"),
        "useAAD" => is_switch(value),
        "activeDirectoryAuthorityURI" => {
            one_of(&format!("{}/", value.strip_suffix('/').unwrap_or(value)), AUTHORITIES)
        }
        "blockSizeInBytes" => {
            let fine = value.parse::<u32>().is_ok_and(|size| (1..=LARGEST_BLOCK).contains(&size));
            (!fine).then(|| "must be a number from 1 to 104857600".to_owned())
        }
        _ => None,
    }
}
