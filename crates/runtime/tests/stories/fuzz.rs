//! Whatever a tenant writes into a request, its labels, its annotations, its finalizers and its status: nacre does not
//! crash, becomes idle, changes nothing of other tenants, and the request can be deleted.

use api::{
    Kind, NonAdminBackupStatus, NonAdminBackupStorageLocationStatus, NonAdminDownloadRequestStatus,
    NonAdminRestoreStatus, labels,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::world::World;
use crate::world::manifests::{nab, object};

/// Words that mean something somewhere.
const WORDS: [&str; 22] = [
    "",
    "a",
    "shop",
    "victim",
    "victim-daily",
    "velero",
    "default",
    "*",
    "../x",
    "720h",
    "-1h",
    "9999999999h",
    "Created",
    "Deleting",
    "True",
    "aws",
    "BackupContents",
    "2026-01-01T00:00:00Z",
    "nonadminbackup.oadp.openshift.io/finalizer",
    "example.com/mine",
    "ä\u{202e}\0",
    "{{x}}",
];

/// Fields of every kind there is, and some of none.
const FIELDS: [&str; 26] = [
    "backupSpec",
    "restoreSpec",
    "backupStorageLocationSpec",
    "target",
    "kind",
    "name",
    "ttl",
    "storageLocation",
    "backupName",
    "includedNamespaces",
    "excludedResources",
    "hooks",
    "resources",
    "labelSelector",
    "matchLabels",
    "deleteBackup",
    "objectStorage",
    "bucket",
    "prefix",
    "provider",
    "config",
    "credential",
    "orderedResources",
    "resourcePolicy",
    "snapshotVolumes",
    "unheardOf",
];

const SHOWN: [&str; 10] = [
    "phase",
    "conditions",
    "veleroBackup",
    "nacuuid",
    "name",
    "status",
    "queueInfo",
    "estimatedQueuePosition",
    "reason",
    "type",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![6 => prop::sample::select(WORDS.to_vec()).prop_map(str::to_owned), 1 => "\\PC{0,12}"]
}

/// Any JSON of these fields.
fn anything(fields: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => word().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => Just(json!(1e300)),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let field = prop::sample::select(fields.to_vec());
        prop_oneof![
            3 => prop::collection::vec((field, inner.clone()), 0..4).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
            }),
            1 => prop::collection::vec(inner, 0..3).prop_map(Value::Array),
        ]
    })
}

/// A spec that is nearly right: the frame is there, and something is in it.
fn spec(kind: Kind) -> BoxedStrategy<Value> {
    let frame = match kind {
        Kind::NonAdminBackup => "backupSpec",
        Kind::NonAdminRestore => "restoreSpec",
        Kind::NonAdminBackupStorageLocation => "backupStorageLocationSpec",
        _ => "target",
    };
    let framed = anything(&FIELDS).prop_map(move |inside| json!({ frame: inside }));
    prop_oneof![3 => framed, 1 => anything(&FIELDS), 1 => Just(json!({ frame: {} }))].boxed()
}

#[derive(Clone, Debug)]
struct Given {
    kind: Kind,
    spec: Value,
    status: Value,
    marks: Vec<(&'static str, String)>,
    finalizers: Vec<String>,
}

fn given() -> impl Strategy<Value = Given> {
    let kinds = vec![
        Kind::NonAdminBackup,
        Kind::NonAdminRestore,
        Kind::NonAdminBackupStorageLocation,
        Kind::NonAdminDownloadRequest,
    ];
    let mark = prop::sample::select(vec![
        labels::SYNCED_FROM,
        labels::NAB_NACUUID,
        labels::NAB_NAMESPACE,
        labels::NAB_NAME,
        labels::ORIGIN_UID,
        labels::NABSL_NACUUID,
    ]);
    prop::sample::select(kinds).prop_flat_map(move |kind| {
        let marks = prop::collection::vec((mark.clone(), word()), 0..3);
        let finalizers = prop::collection::vec(word().prop_filter("named", |word| !word.is_empty()), 0..2);
        (spec(kind), anything(&SHOWN), marks, finalizers).prop_map(
            move |(spec, status, marks, finalizers)| Given { kind, spec, status, marks, finalizers },
        )
    })
}

/// Whether the API server would take such a status: it knows the types of all fields.
fn fits(given: &Given) -> bool {
    let status = &given.status;
    status.is_object()
        && match given.kind {
            Kind::NonAdminBackup => NonAdminBackupStatus::deserialize(status).is_ok(),
            Kind::NonAdminRestore => NonAdminRestoreStatus::deserialize(status).is_ok(),
            Kind::NonAdminDownloadRequest => NonAdminDownloadRequestStatus::deserialize(status).is_ok(),
            _ => NonAdminBackupStorageLocationStatus::deserialize(status).is_ok(),
        }
}

fn holds(given: &Given) -> Result<(), TestCaseError> {
    let mut world = World::with(&["shop", "victim"]);
    world.stop_recording();
    world.mind_storage();
    world.apply(nab("victim/daily"));
    world.settle();
    let before = [world.get("nab victim/daily"), world.get("backup victim-daily-<1>")];
    let marks: Map<_, _> = given.marks.iter().map(|(mark, word)| ((*mark).to_owned(), json!(word))).collect();
    let rest = json!({
        "metadata": {"labels": marks, "annotations": marks, "finalizers": given.finalizers}, "spec": given.spec,
    });
    world.apply(object(given.kind, "shop/odd", rest));
    let name = format!("{} shop/odd", given.kind.name());
    world.settle();
    if fits(given) && world.has(&name) {
        world.forge_status(&name, given.status.clone());
        world.settle();
    }
    if world.has(&name) {
        world.delete(&name);
        world.settle();
    }
    world.pass(std::time::Duration::from_mins(2));
    if world.has(&name) {
        let left = world.get(&name)["metadata"]["finalizers"].clone();
        let own = match given.kind {
            Kind::NonAdminBackup => labels::NAB_FINALIZER,
            Kind::NonAdminRestore => labels::NAR_FINALIZER,
            _ => labels::NABSL_FINALIZER,
        };
        let nacres = left.as_array().is_some_and(|left| left.contains(&json!(own)));
        prop_assert!(!nacres, "it cannot be deleted: {}", world.get(&name));
    }
    let after = [world.get("nab victim/daily"), world.get("backup victim-daily-<1>")];
    prop_assert_eq!(before, after);
    Ok(())
}

#[test]
fn whatever_is_written_is_survived() {
    let mut config = Config { failure_persistence: None, max_shrink_iters: 300, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 400;
    }
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(2026);
    }
    if let Err(error) = TestRunner::new(config).run(&given(), |given| holds(&given)) {
        panic!("{error}");
    }
}
