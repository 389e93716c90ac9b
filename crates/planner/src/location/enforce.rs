//! An administrator's word on single fields of a location.

use api::velero::{BackupStorageLocationSpec, ObjectStorageLocation};
use serde::Serialize;

use super::field;
use super::provider::Provider;
use crate::Refusal;
use crate::policy::{EnforcedLocation, EnforcedObjectStorage};

/// Refuses a location that says otherwise than it must.
pub(super) fn conflict(enforced: &EnforcedLocation, given: &BackupStorageLocationSpec) -> Option<Refusal> {
    // Named one by one, so that a field added to it does not compile until somebody decides about it.
    let EnforcedLocation {
        provider,
        config,
        credential,
        object_storage,
        access_mode,
        backup_sync_period: sync,
        validation_frequency: frequency,
    } = enforced;
    provider_differs(provider.as_deref(), &given.provider)
        .or_else(|| differs("config", config.as_ref(), given.config.as_ref()))
        .or_else(|| differs("credential", credential.as_ref(), given.credential.as_ref()))
        .or_else(|| storage_differs(object_storage.as_ref()?, &given.object_storage))
        .or_else(|| {
            differs("accessMode", non_empty(access_mode.as_deref()), non_empty(given.access_mode.as_deref()))
        })
        .or_else(|| differs("backupSyncPeriod", sync.as_ref(), given.backup_sync_period.as_ref()))
        .or_else(|| differs("validationFrequency", frequency.as_ref(), given.validation_frequency.as_ref()))
}

/// Sets in a location whatever must be so and is not said there.
pub fn fill(enforced: &EnforcedLocation, given: &mut BackupStorageLocationSpec) {
    let EnforcedLocation {
        provider,
        config,
        credential,
        object_storage: _, // whatever was accepted says the same
        access_mode,
        backup_sync_period,
        validation_frequency,
    } = enforced;
    if let Some(provider) = non_empty(provider.as_deref()).filter(|_| given.provider.is_empty()) {
        provider.clone_into(&mut given.provider);
    }
    let mode = non_empty(given.access_mode.as_deref())
        .or_else(|| non_empty(access_mode.as_deref()))
        .map(str::to_owned);
    given.access_mode = mode;
    given.config = given.config.take().or_else(|| config.clone());
    given.credential = given.credential.take().or_else(|| credential.clone());
    given.backup_sync_period = given.backup_sync_period.take().or_else(|| backup_sync_period.clone());
    given.validation_frequency = given.validation_frequency.take().or_else(|| validation_frequency.clone());
}

/// An empty word says nothing.
fn non_empty(word: Option<&str>) -> Option<&str> {
    word.filter(|word| !word.is_empty())
}

fn differs<T: PartialEq + Serialize>(name: &str, wanted: Option<T>, found: Option<T>) -> Option<Refusal> {
    let (wanted, found) = (wanted?, found?);
    (wanted != found).then(|| {
        let shown = serde_json::to_string(&wanted).unwrap_or_default();
        let message = format!("the administrator requires {shown}; leave the field out or set it to that");
        Refusal::new(field(name), message)
    })
}

/// Two names of one provider are the same.
fn provider_differs(wanted: Option<&str>, found: &str) -> Option<Refusal> {
    let (wanted, found) = (non_empty(wanted)?, non_empty(Some(found))?);
    let same = wanted == found || Provider::of(wanted).is_some_and(|one| Provider::of(found) == Some(one));
    (!same).then(|| {
        Refusal::new(field("provider"), format!("the administrator requires {wanted:?}; set it to that"))
    })
}

/// All three parts must be equal, what is left out included. The certificate is too long to be shown.
fn storage_differs(wanted: &EnforcedObjectStorage, found: &ObjectStorageLocation) -> Option<Refusal> {
    let EnforcedObjectStorage { bucket, prefix, ca_cert } = wanted;
    let differs = |one: &Option<String>, other: Option<&str>| non_empty(one.as_deref()) != non_empty(other);
    let part = if differs(bucket, Some(&found.bucket)) {
        ("bucket", bucket)
    } else if differs(prefix, found.prefix.as_deref()) {
        ("prefix", prefix)
    } else if differs(ca_cert, found.ca_cert.as_deref()) {
        ("caCert", ca_cert)
    } else {
        return None;
    };
    let message = match part {
        (_, None) => "the administrator requires that nothing is said here; leave the field out".to_owned(),
        ("caCert", Some(_)) => "the administrator requires another certificate; ask them for it".to_owned(),
        (_, Some(value)) => format!("the administrator requires {value:?}; set it to that"),
    };
    Some(Refusal::new(field(&format!("objectStorage.{}", part.0)), message))
}

#[cfg(test)]
mod tests {
    use api::velero::BackupStorageLocationSpec;
    use serde_json::{Value, json};

    use super::{EnforcedLocation, conflict, fill};

    fn enforced(value: Value) -> EnforcedLocation {
        serde_json::from_value(value).unwrap()
    }

    fn spec(name: &str, value: &Value) -> BackupStorageLocationSpec {
        let mut spec = json!({"provider": "aws", "objectStorage": {"bucket": "b"}});
        spec[name] = value.clone();
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn each_field_can_be_enforced() {
        let fields = json!({
            "provider": ["gcp", "aws"],
            "config": [{"region": "a"}, {}],
            "credential": [{"name": "a", "key": "k"}, {"name": "b", "key": "k"}],
            "accessMode": ["ReadOnly", "ReadWrite"],
            "backupSyncPeriod": ["1h", "0s"],
            "validationFrequency": ["2h", "1h"],
        });
        assert_eq!(fields.as_object().unwrap().len(), 6, "objectStorage is below");
        for (name, pair) in fields.as_object().unwrap() {
            for (wanted, other) in [(&pair[0], &pair[1]), (&pair[1], &pair[0])] {
                let rule = enforced(json!({ name: wanted }));
                assert_eq!(conflict(&rule, &spec(name, wanted)), None, "{name}");
                let refusal = conflict(&rule, &spec(name, other)).expect(name);
                assert_eq!(refusal.field, format!("spec.backupStorageLocationSpec.{name}"));
                let mut given = spec("provider", &json!(""));
                assert_eq!(conflict(&rule, &given), None, "{name} unset");
                fill(&rule, &mut given);
                assert_eq!(serde_json::to_value(&given).unwrap()[name], *wanted, "{name} filled in");
                let mut kept = spec(name, other);
                fill(&rule, &mut kept);
                assert_eq!(kept, spec(name, other), "{name} kept");
            }
        }
    }

    #[test]
    fn equal_means_the_same_however_written() {
        let rule = enforced(json!({"provider": "velero.io/aws", "backupSyncPeriod": "1h"}));
        assert_eq!(conflict(&rule, &spec("backupSyncPeriod", &json!("60m"))), None);
        let empty = enforced(json!({"provider": "", "accessMode": ""}));
        assert_eq!(conflict(&empty, &spec("accessMode", &json!("ReadOnly"))), None);
    }

    #[test]
    fn object_storage_is_enforced_as_a_whole() {
        let bucket = enforced(json!({"objectStorage": {"bucket": "b"}}));
        assert_eq!(conflict(&bucket, &spec("objectStorage", &json!({"bucket": "b", "prefix": ""}))), None);
        let cases = [
            (json!({"bucket": "c"}), "bucket: the administrator requires \"b\"; set it to that"),
            (
                json!({"bucket": "b", "prefix": "p"}),
                "prefix: the administrator requires that nothing is said here; leave the field out",
            ),
            (
                json!({"bucket": "b", "caCert": "Yg=="}),
                "caCert: the administrator requires that nothing is said here; leave the field out",
            ),
        ];
        for (given, wanted) in cases {
            let reported = conflict(&bucket, &spec("objectStorage", &given)).unwrap().to_string();
            assert_eq!(reported, format!("spec.backupStorageLocationSpec.objectStorage.{wanted}"));
        }
        let whole = enforced(json!({"objectStorage": {"bucket": "b", "prefix": "p", "caCert": "YQ=="}}));
        let given = json!({"bucket": "b", "prefix": "p"});
        let reported = conflict(&whole, &spec("objectStorage", &given)).unwrap().message;
        assert_eq!(reported, "the administrator requires another certificate; ask them for it");
    }
}
