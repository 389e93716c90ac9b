use super::super::credentials::{self, Credential};
use super::super::endpoint::EndpointPolicy;
use super::{Asker, Provider, Settings, StoragePolicy, check, disagrees, for_velero, one, table};
use crate::location::table::KeyHandling;

fn settings(pairs: &[(&str, &str)]) -> Settings {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn asker(policy: &StoragePolicy) -> Asker<'_> {
    Asker { namespace: "shop", bucket: "backups", policy }
}

/// What is said about one key, without the path before it.
fn reported(provider: Provider, key: &str, value: &str) -> Option<String> {
    let refusal = one(provider, key, value, asker(&StoragePolicy::default()))?;
    assert_eq!(refusal.field, format!("spec.backupStorageLocationSpec.config.{key}"));
    Some(refusal.message)
}

#[test]
fn ordinary_configurations_pass() {
    let policy = StoragePolicy::default();
    for (provider, pairs) in [
        (Provider::Aws, &[("region", "eu-west-1")][..]),
        (Provider::Aws, &[]),
        (
            Provider::Aws,
            &[
                ("region", "minio"),
                ("s3ForcePathStyle", "true"),
                ("s3Url", "http://minio.shop.svc:9000"),
                ("publicUrl", "https://minio.shop.example.com"),
                ("insecureSkipTLSVerify", "false"),
                ("checksumAlgorithm", ""),
                ("enableSharedConfig", "true"),
                ("profile", "team-a"),
                ("kmsKeyId", "alias/velero"),
                ("serverSideEncryption", "AES256"),
                ("signatureVersion", "4"),
                ("tagging", "team=shop&stage=test"),
            ],
        ),
        (Provider::Gcp, &[("kmsKeyName", "projects/P/locations/L/keyRings/R/cryptoKeys/K")]),
        (Provider::Gcp, &[("storeEndpoint", "https://storage-x.p.googleapis.com/storage/v1/")]),
        (
            Provider::Azure,
            &[
                ("storageAccount", "shopbackups"),
                ("storageAccountKeyEnvVar", "AZURE_STORAGE_ACCOUNT_ACCESS_KEY"),
                ("storageAccountURI", "https://shopbackups.blob.core.windows.net"),
                ("resourceGroup", "rg_(1)"),
                ("subscriptionId", "0a-1b"),
                ("useAAD", "true"),
                ("activeDirectoryAuthorityURI", "https://login.microsoftonline.us"),
                ("blockSizeInBytes", "1048576"),
            ],
        ),
    ] {
        assert_eq!(check(provider, &settings(pairs), asker(&policy)), None, "{pairs:?}");
    }
}

#[test]
fn refusals_say_what_would_do() {
    use Provider::{Aws, Azure, Gcp};
    for (provider, key, value, wanted) in [
        (Aws, "credentialsFile", "/x", "names a file in Velero's pod; use the field credential"),
        (Aws, "customerKeyEncryptionSecret", "a/b", "names a Secret of the administrators'; take it out"),
        (Aws, "resticRepoPrefix", "s3:x", "sends the data of volumes elsewhere; take it out"),
        (Aws, "region", "evil.example/", "may have at most 40 characters: letters, digits and -"),
        (Aws, "s3Url", "s3.example.com", "must begin with https:// or http://"),
        (Aws, "s3Url", "https://s3.example.com/x", "must not have a path; use objectStorage.prefix"),
        (Aws, "publicUrl", "http://127.0.0.1", "is Velero's own pod; use the address of a store"),
        (Aws, "s3ForcePathStyle", "yes", "must be \"true\" or \"false\""),
        (Aws, "checksumAlgorithm", "MD5", "must be one of CRC32, CRC32C, CRC64NVME, SHA1, SHA256"),
        (Aws, "tagging", "a", "must be up to ten tags such as team=shop&stage=test"),
        (
            Aws,
            "insecureSkipTLSVerify",
            "true",
            "the administrators require that certificates are checked; name the authority in objectStorage.caCert",
        ),
        (Gcp, "serviceAccount", "a@b", "names an identity other than that of the credential; take it out"),
        (Gcp, "universeDomain", "evil.example", "must be one of googleapis.com"),
        (
            Gcp,
            "storeEndpoint",
            "http://169.254.169.254",
            "is link-local, where clouds hand out identities; use the address of a store",
        ),
        (Azure, "storageAccount", "a.evil.example/", "may have at most 24 characters: letters, digits"),
        (Azure, "storageAccount", "ab", "must have 3 to 24 characters"),
        (Azure, "storageAccountKeyEnvVar", "PATH", "must be one of AZURE_STORAGE_ACCOUNT_ACCESS_KEY"),
        (Azure, "blockSizeInBytes", "1073741824", "must be a number from 1 to 104857600"),
    ] {
        assert_eq!(reported(provider, key, value).as_deref(), Some(wanted), "{key}");
    }
    for authority in
        ["https://evil.example/", "http://login.microsoftonline.com/", "https://login.microsoftonline.com/x"]
    {
        assert!(reported(Azure, "activeDirectoryAuthorityURI", authority).is_some(), "{authority}");
    }
}

#[test]
fn a_key_that_is_not_in_the_table_is_refused_by_name() {
    let policy = StoragePolicy::default();
    let refusal = check(Provider::Aws, &settings(&[("S3URL", "http://x")]), asker(&policy)).unwrap();
    let wanted =
        "spec.backupStorageLocationSpec.config: \"S3URL\" is not a key for aws that nacre knows; take it out";
    assert_eq!(refusal.to_string(), wanted);
    let long = "k".repeat(5000);
    assert!(check(Provider::Gcp, &settings(&[(&long, "x")]), asker(&policy)).unwrap().message.len() < 200);
}

#[test]
fn every_refused_key_is_refused_and_every_kept_one_is_looked_at() {
    for provider in Provider::ALL {
        for rule in table(provider) {
            match rule.verdict {
                KeyHandling::Refused => assert!(reported(provider, rule.key, "").is_some(), "{}", rule.key),
                KeyHandling::Ignored => assert_eq!(reported(provider, rule.key, "\0"), None, "{}", rule.key),
                KeyHandling::Kept => {
                    for foul in ["../../x\n", "\u{e9}", "${HOME}"] {
                        assert!(reported(provider, rule.key, foul).is_some(), "{} {foul:?}", rule.key);
                    }
                }
            }
        }
    }
}

#[test]
fn policy_can_do_without_certificates() {
    let policy = StoragePolicy { allow_insecure_skip_tls_verify: true, ..StoragePolicy::default() };
    let ask =
        |value: &str| check(Provider::Aws, &settings(&[("insecureSkipTLSVerify", value)]), asker(&policy));
    assert_eq!(ask("true"), None);
    assert!(ask("maybe").is_some());
}

#[test]
fn the_usual_place_is_held_to_the_lists_too() {
    let deny = |text: &str| StoragePolicy {
        endpoints: EndpointPolicy { deny: vec![text.parse().unwrap()], ..EndpointPolicy::default() },
        ..StoragePolicy::default()
    };
    let amazon = deny("*.amazonaws.com");
    let refusal = check(Provider::Aws, &settings(&[("region", "eu-west-1")]), asker(&amazon)).unwrap();
    let wanted = "leads to https://s3.eu-west-1.amazonaws.com, which is not allowed by the administrators; use another";
    assert_eq!(refusal.message, wanted);
    assert!(check(Provider::Gcp, &settings(&[]), asker(&deny("storage.googleapis.com"))).is_some());
    let account = settings(&[("storageAccount", "shop")]);
    assert!(check(Provider::Azure, &account, asker(&deny("*.blob.core.windows.net"))).is_some());
    assert_eq!(check(Provider::Azure, &account, asker(&amazon)), None);
}

fn credential(provider: Provider, text: &str, profile: Option<&str>) -> Credential {
    credentials::parse(provider, text.as_bytes(), profile).unwrap()
}

#[test]
fn azure_must_not_fall_back_to_velero_itself() {
    let policy = StoragePolicy::default();
    let key = credential(Provider::Azure, "AZURE_STORAGE_ACCOUNT_ACCESS_KEY=a\n", None);
    let principal = "AZURE_TENANT_ID=t\nAZURE_CLIENT_ID=c\nAZURE_CLIENT_SECRET=s\n";
    let plain = settings(&[("storageAccount", "shop")]);
    let named = settings(&[
        ("storageAccount", "shop"),
        ("storageAccountKeyEnvVar", "AZURE_STORAGE_ACCOUNT_ACCESS_KEY"),
    ]);
    assert_eq!(disagrees(&named, &key, asker(&policy)), None);
    assert_eq!(disagrees(&plain, &credential(Provider::Azure, principal, None), asker(&policy)), None);
    assert_eq!(
        disagrees(&plain, &key, asker(&policy)).unwrap().message,
        "must be AZURE_STORAGE_ACCOUNT_ACCESS_KEY, since there is no service principal in the credential"
    );
    assert_eq!(
        disagrees(&named, &credential(Provider::Azure, principal, None), asker(&policy)).unwrap().message,
        "there is no AZURE_STORAGE_ACCOUNT_ACCESS_KEY; take it out or put one in the credential"
    );
    let china = credential(Provider::Azure, &format!("{principal}AZURE_CLOUD_NAME=AzureChinaCloud\n"), None);
    let endpoints =
        EndpointPolicy { allow: vec!["*.windows.net".parse().unwrap()], ..EndpointPolicy::default() };
    let policy = StoragePolicy { endpoints, ..StoragePolicy::default() };
    assert_eq!(check(Provider::Azure, &plain, asker(&policy)), None);
    let reported = disagrees(&plain, &china, asker(&policy)).unwrap().message;
    assert!(reported.starts_with("leads to https://shop.blob.core.chinacloudapi.cn, which"), "{reported}");
}

#[test]
fn velero_gets_one_spelling_and_an_explicit_profile() {
    let keys = "[default]\naws_access_key_id = a\naws_secret_access_key = s\n";
    let given = settings(&[
        ("s3Url", "HTTPS://S3.example.com:443/"),
        ("enableSharedConfig", "true"),
        ("region", "r"),
    ]);
    let wanted = settings(&[
        ("checksumAlgorithm", ""),
        ("profile", "default"),
        ("region", "r"),
        ("s3Url", "https://s3.example.com"),
    ]);
    assert_eq!(for_velero(&given, &credential(Provider::Aws, keys, None)), wanted);
    let chosen = settings(&[("checksumAlgorithm", "SHA256"), ("profile", "b")]);
    let two = format!("{keys}{}", keys.replace("default", "b"));
    assert_eq!(for_velero(&chosen, &credential(Provider::Aws, &two, Some("b"))), chosen);
    let azure = settings(&[("storageAccount", "shop")]);
    let key = credential(Provider::Azure, "AZURE_STORAGE_ACCOUNT_ACCESS_KEY=a\n", None);
    assert_eq!(for_velero(&azure, &key), azure);
}
