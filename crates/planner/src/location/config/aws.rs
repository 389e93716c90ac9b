//! What velero-plugin-for-aws and Velero's own repositories read.

use super::super::credentials::aws::is_profile;
use super::super::table::{Rule, allowed_key, ignored_key, refused};
use super::values::{is_switch, one_of, word};

/// Every key of a location at AWS or a store that speaks its language.
pub(super) const KEYS: &[Rule] = &[
    allowed_key("region", "is where the bucket is"),
    allowed_key("s3Url", "is where a store other than Amazon's is; see the rules for endpoints"),
    allowed_key("publicUrl", "is how downloads reach the store; see the rules for endpoints"),
    allowed_key("s3ForcePathStyle", "says whether the bucket is a path or a host"),
    allowed_key("profile", "chooses one of the profiles in the credential"),
    allowed_key("kmsKeyId", "names the key that Amazon encrypts with"),
    allowed_key("serverSideEncryption", "names the way Amazon encrypts"),
    allowed_key("signatureVersion", "says how downloads are signed"),
    allowed_key("checksumAlgorithm", "says how uploads are checked"),
    allowed_key("tagging", "is put on every object"),
    allowed_key("insecureSkipTLSVerify", "is allowed only if the policy says so"),
    ignored_key("enableSharedConfig", "has no effect any more"),
    refused("credentialsFile", "names a file in Velero's pod; use the field credential"),
    refused("customerKeyEncryptionFile", "names a file in Velero's pod"),
    refused("customerKeyEncryptionSecret", "names a Secret of the administrators'"),
    refused("bucket", "is set by Velero; use the field objectStorage.bucket"),
    refused("prefix", "is set by Velero; use the field objectStorage.prefix"),
    refused("caCert", "is set by Velero; use the field objectStorage.caCert"),
    refused("resticRepoPrefix", "sends the data of volumes elsewhere"),
    refused("fspath", "names a folder in Velero's pod"),
];

pub(super) fn objection(key: &str, value: &str) -> Option<String> {
    match key {
        // It becomes a part of the host.
        "region" => word(value, 40, "-"),
        "s3ForcePathStyle" => is_switch(value),
        "profile" if !is_profile(value) => {
            Some("may have at most 64 characters: letters, digits, dots, dashes and underscores".to_owned())
        }
        "kmsKeyId" => word(value, 2048, ":/_-"),
        "serverSideEncryption" => one_of(value, &["AES256", "aws:kms", "aws:kms:dsse"]),
        "signatureVersion" => one_of(value, &["1", "4"]),
        "checksumAlgorithm" => one_of(value, &["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"]),
        "tagging" => tagging(value),
        _ => None,
    }
}

/// `key=value&key=value`, as the plugin wants it: Amazon takes ten.
fn tagging(value: &str) -> Option<String> {
    let tags: Vec<&str> = value.split('&').collect();
    let fine = |tag: &&str| tag.matches('=').count() == 1 && !tag.starts_with('=');
    let shaped = tags.len() <= 10 && tags.iter().all(fine);
    let plain = word(value, 2048, "&=+-._:/@%");
    (!shaped).then(|| "must be up to ten tags such as team=shop&stage=test".to_owned()).or(plain)
}
