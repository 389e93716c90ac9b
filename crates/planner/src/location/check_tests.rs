use api::velero::BackupStorageLocationSpec;
use serde_json::{Value, json};

use super::super::fill;
use super::{check_credential, check_limit, check_spec};
use crate::location::named_key;
use crate::policy::{EnforcedLocation, StorageMode, StoragePolicy};

fn good() -> Value {
    json!({
        "provider": "aws",
        "config": { "region": "eu-west-1" },
        "credential": { "name": "bucket-keys", "key": "cloud" },
        "objectStorage": { "bucket": "shop-backups", "prefix": "velero" },
        "default": false,
        "accessMode": "ReadWrite",
        "backupSyncPeriod": "2m",
        "validationFrequency": "0s",
    })
}

fn with(path: &str, value: Value) -> BackupStorageLocationSpec {
    let mut spec = good();
    if let Some(place) = spec.pointer_mut(path) {
        *place = value;
    } else {
        let (parent, name) = path.rsplit_once('/').unwrap();
        spec.pointer_mut(parent).unwrap()[name] = value;
    }
    serde_json::from_value(spec).unwrap()
}

fn spec() -> BackupStorageLocationSpec {
    serde_json::from_value(good()).unwrap()
}

fn reported(spec: &BackupStorageLocationSpec, policy: &StoragePolicy) -> Option<String> {
    let refusal = check_spec(spec, "shop", policy)?.to_string();
    Some(refusal.replacen("spec.backupStorageLocationSpec", "", 1))
}

#[test]
fn an_ordinary_location_passes() {
    let policy = StoragePolicy::default();
    assert_eq!(reported(&spec(), &policy), None);
    let least = json!({
        "provider": "velero.io/gcp",
        "credential": { "name": "a", "key": "b" },
        "objectStorage": { "bucket": "shop-backups" },
    });
    assert_eq!(reported(&serde_json::from_value(least).unwrap(), &policy), None);
}

#[test]
fn each_field_is_looked_at_and_the_words_say_what_would_do() {
    let policy = StoragePolicy::default();
    for (path, value, wanted) in [
        (
            "/default",
            json!(true),
            ".default: only administrators choose where backups go that name no location; leave the field out",
        ),
        (
            "/credential",
            json!(null),
            ".credential: is missing; name a Secret of this namespace and the key in it",
        ),
        ("/credential/name", json!(""), ".credential.name: is missing; name a Secret of this namespace"),
        (
            "/credential/key",
            json!(""),
            ".credential.key: is missing; name the key of the Secret that holds the credential",
        ),
        ("/provider", json!("replicated.com/hostpath"), ".provider: must be one of aws, azure, gcp"),
        (
            "/objectStorage/bucket",
            json!("arn:aws:s3:x"),
            ".objectStorage.bucket: must be the plain name of a bucket: 3 characters or more, of letters, digits, dots, dashes and underscores",
        ),
        (
            "/config/credentialsFile",
            json!("/credentials/cloud"),
            ".config.credentialsFile: names a file in Velero's pod; use the field credential",
        ),
        (
            "/config/s3Url",
            json!("http://169.254.169.254"),
            ".config.s3Url: is link-local, where clouds hand out identities; use the address of a store",
        ),
        (
            "/objectStorage/prefix",
            json!("../other"),
            ".objectStorage.prefix: must not have a part that is only dots",
        ),
        (
            "/objectStorage/caCert",
            json!("AAAA"),
            ".objectStorage.caCert: holds text that is not PEM; put only certificates here",
        ),
        (
            "/objectStorage/caCertRef",
            json!({"name": "a", "key": "b"}),
            ".objectStorage.caCertRef: names a Secret of the administrators'; put the certificates into caCert",
        ),
        (
            "/accessMode",
            json!("Write"),
            ".accessMode: must be ReadWrite or ReadOnly; leave it out for ReadWrite",
        ),
        (
            "/backupSyncPeriod",
            json!("soon"),
            ".backupSyncPeriod: \"soon\" is not a duration; write for example 10m",
        ),
        (
            "/backupSyncPeriod",
            json!("1ms"),
            ".backupSyncPeriod: must be 0s, which means never, or from 10s to 8760h",
        ),
        (
            "/validationFrequency",
            json!("-1m"),
            ".validationFrequency: must be 0s, which means never, or from 10s to 8760h",
        ),
        (
            "/validationFrequency",
            json!("9000h"),
            ".validationFrequency: must be 0s, which means never, or from 10s to 8760h",
        ),
    ] {
        assert_eq!(reported(&with(path, value), &policy).as_deref(), Some(wanted), "{path}");
    }
}

/// They become parts of paths, so a slash too many would lead to another namespace's Secret.
#[test]
fn a_secret_is_named_as_the_api_server_names_it() {
    let policy = StoragePolicy::default();
    for name in ["keys", "my.keys-1", "0"] {
        assert_eq!(reported(&with("/credential/name", json!(name)), &policy), None, "{name}");
    }
    for name in
        ["../../other/secrets/x", "a/b", "A", "-a", "a-", "a..b", ".", "a%2fb", "a b", "a?x=y", "\u{e9}"]
    {
        let reported = reported(&with("/credential/name", json!(name)), &policy).unwrap_or_default();
        assert!(
            reported.starts_with(".credential.name: cannot be the name of a Secret"),
            "{name:?} {reported}"
        );
    }
    for key in ["cloud", ".dockerconfigjson", "A_b-1.c"] {
        assert_eq!(reported(&with("/credential/key", json!(key)), &policy), None, "{key}");
    }
    for key in ["..", "../x", "a/b", ".", "a b", "..2026"] {
        let reported = reported(&with("/credential/key", json!(key)), &policy).unwrap_or_default();
        assert!(reported.starts_with(".credential.key: cannot be a key of a Secret"), "{key:?} {reported}");
    }
}

#[test]
fn the_first_thing_that_is_wrong_is_told() {
    let mut all = with("/default", json!(true));
    let policy = StoragePolicy {
        enforce: EnforcedLocation { access_mode: Some("ReadOnly".to_owned()), ..EnforcedLocation::default() },
        ..StoragePolicy::default()
    };
    all.provider = "x".to_owned();
    all.object_storage.prefix = Some("..".to_owned());
    all.validation_frequency = Some("x".into());
    let mut seen = Vec::new();
    let mut repair: Vec<fn(&mut BackupStorageLocationSpec)> = vec![
        |spec| spec.default = None,
        |spec| spec.access_mode = None,
        |spec| spec.provider = "aws".to_owned(),
        |spec| spec.object_storage.prefix = None,
        |spec| spec.validation_frequency = None,
    ];
    repair.reverse();
    while let Some(refusal) = check_spec(&all, "shop", &policy) {
        seen.push(refusal.field.rsplit('.').next().unwrap().to_owned());
        repair.pop().unwrap()(&mut all);
    }
    assert_eq!(seen, ["default", "accessMode", "provider", "prefix", "validationFrequency"]);
}

#[test]
fn a_policy_can_close_it_altogether() {
    let policy = StoragePolicy { mode: StorageMode::Platform, ..StoragePolicy::default() };
    let wanted =
        ": the administrators provide the storage here; leave storageLocation out of your backups instead";
    assert_eq!(reported(&spec(), &policy).as_deref(), Some(wanted));
    assert_eq!(
        reported(&spec(), &StoragePolicy { mode: StorageMode::Own, ..StoragePolicy::default() }),
        None
    );
    let google = StoragePolicy { providers: vec!["gcp".to_owned()], ..StoragePolicy::default() };
    assert_eq!(reported(&spec(), &google).as_deref(), Some(".provider: must be one of gcp"));
    let few = StoragePolicy { max_per_namespace: Some(2), ..StoragePolicy::default() };
    assert_eq!(check_limit(1, &few), None);
    assert!(check_limit(2, &few).unwrap().message.contains("has 2 storage locations and may have 2"));
    assert_eq!(check_limit(999, &StoragePolicy::default()), None);
}

/// An administrator may require what a tenant may not choose.
#[test]
fn what_is_enforced_is_the_administrators_to_answer_for() {
    let config = json!({ "s3Url": "http://minio.minio.svc:9000", "insecureSkipTLSVerify": "true" });
    let enforce: EnforcedLocation =
        serde_json::from_value(json!({ "config": config, "provider": "velero.io/aws" })).unwrap();
    let policy = StoragePolicy { enforce, providers: Vec::new(), ..StoragePolicy::default() };
    assert_eq!(reported(&with("/config", config.clone()), &policy), None);
    let mut unsaid = with("/config", json!(null));
    assert_eq!(reported(&unsaid, &policy), None);
    fill(&policy.enforce, &mut unsaid);
    assert_eq!(unsaid, with("/config", config));
    assert!(reported(&spec(), &policy).unwrap().starts_with(".config: the administrator requires {"));
}

#[test]
fn a_credential_is_read_with_the_location_in_mind() {
    let policy = StoragePolicy::default();
    let keys = b"[a]\naws_access_key_id = i\naws_secret_access_key = s\n[b]\naws_access_key_id = j\naws_secret_access_key = t\n";
    let ask = |spec: &BackupStorageLocationSpec, bytes: &[u8]| {
        check_credential(spec, bytes, "shop", &policy)
            .map(|credential| credential.render())
            .map_err(|r| r.to_string())
    };
    let chosen = with("/config/profile", json!("b"));
    assert_eq!(ask(&chosen, keys).unwrap(), "[b]\naws_access_key_id = j\naws_secret_access_key = t\n");
    let field = "spec.backupStorageLocationSpec.credential: cannot be used: ";
    assert_eq!(
        ask(&spec(), b"[default]\ncredential_process = /bin/x\n"),
        Err(format!("{field}line 2: credential_process runs a program in Velero's pod; take it out"))
    );
    let missing = with("/config/profile", json!("c"));
    assert!(
        ask(&missing, keys).unwrap_err().starts_with(&format!("{field}the file does not hold the profile"))
    );
    let azure = with("/provider", json!("azure"));
    let reported = ask(&azure, b"AZURE_STORAGE_ACCOUNT_ACCESS_KEY=k\n").unwrap_err();
    assert!(
        reported.starts_with("spec.backupStorageLocationSpec.config.storageAccountKeyEnvVar: must be"),
        "{reported}"
    );
    assert!(ask(&with("/provider", json!("x")), keys).unwrap_err().contains("must be one of"));
}

/// A name that could lead elsewhere is not even looked for.
#[test]
fn a_secret_is_looked_for_only_by_a_name_it_can_have() {
    let looked_for =
        |name: &str, key: &str| named_key(&with("/credential", json!({"name": name, "key": key}))).is_some();
    assert!(looked_for("keys", "cloud"));
    for (name, key) in
        [("../keys", "cloud"), ("", "cloud"), ("keys", ""), ("keys", "../cloud"), ("keys", "a/b")]
    {
        assert!(!looked_for(name, key), "{name:?} {key:?}");
    }
}
