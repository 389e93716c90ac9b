//! For every key of a policy: what it accepts, an example, a value that is refused, and what a tenant sees when it applies.
//! `reference` puts these on the page; the tests here keep them complete and true.

use planner::policy::check;

/// What the reference shows of a key next to its type and meaning.
pub(crate) struct Effect {
    /// Which values are accepted.
    pub(crate) accepts: &'static str,
    /// A value, as YAML.
    pub(crate) example: &'static str,
    /// A value, as YAML, of which `policy check` complains.
    wrong: &'static str,
    /// What a tenant sees when it applies.
    pub(crate) seen: &'static str,
}

const DURATION: &str = "a duration, 0 or more";
const COUNT: &str = "0 or more";
const SEEN_AT_LIMIT: &str =
    "`Accepted` is False with reason `NamespaceLimitReached`; the message has the limit";
const SEEN_CANCELLED: &str = "an Event `VolumeCancelled`; `DataRestored` is False with reason `VolumesCancelled`, or \
    `DataProtected` with reason `ClaimsNotSaved`";

const fn effect(
    accepts: &'static str,
    example: &'static str,
    wrong: &'static str,
    seen: &'static str,
) -> Effect {
    Effect { accepts, example, wrong, seen }
}

/// By key, in the order of the page.
pub(crate) fn of(key: &str) -> Option<Effect> {
    of_backups(key)
        .or_else(|| of_restores(key))
        .or_else(|| of_storage(key))
        .or_else(|| of_schedules(key))
        .or_else(|| of_the_rest(key))
}

fn of_backups(key: &str) -> Option<Effect> {
    let found = match key {
        "backup.atLimit" => effect(
            "one of the two words",
            "refuse",
            "drop",
            "with `refuse`, the webhook refuses the request; the message ends in \"create this one again\"",
        ),
        "backup.defaults" => effect(
            "fields of a backup's spec that make sense for everybody",
            "{ ttl: 720h }",
            "{ includedNamespaces: [shop] }",
            "nothing is refused; `kubectl nacre explain` shows what is filled in",
        ),
        "backup.delete" => effect(
            "one of the two words",
            "own",
            "me",
            "with `own`, `deleteBackup: true` by others has no effect; the condition `Deleting` names who may",
        ),
        "backup.enforce" => effect(
            "fields of a backup's spec that make sense for everybody",
            "{ snapshotMoveData: true }",
            "{ storageLocation: mine }",
            "the message \"the administrator requires ...; leave the field out or set it to that\"; reason `InvalidBackupSpec`",
        ),
        "backup.hookTimeout" | "restore.hookTimeout" => {
            effect(DURATION, "5m", "-5m", "nothing is refused; the Velero object has the shorter timeout")
        }
        "backup.hooks" => effect(
            "one of the two words",
            "forbid",
            "never",
            "the message \"the administrator does not allow hooks; leave the field out\"; reason `InvalidBackupSpec`",
        ),
        "backup.maxActivePerNamespace" => effect(COUNT, "2", "-1", SEEN_AT_LIMIT),
        "backup.maxBytesPerNamespace" => {
            effect("a size with Ki, Mi, Gi, Ti, Pi or k, M, G, T, P", "500Gi", "lots", SEEN_AT_LIMIT)
        }
        "backup.maxPerNamespace" => effect(COUNT, "200", "many", SEEN_AT_LIMIT),
        "backup.maxWorkPerDay" => effect(DURATION, "4h", "-1h", SEEN_AT_LIMIT),
        "backup.ttl.max" => effect(
            "a duration, not shorter than `backup.ttl.min`",
            "2160h",
            "-1h",
            "the message \"the administrator allows backups to be kept at most ...\"; reason `InvalidBackupSpec`",
        ),
        "backup.ttl.min" => effect(
            "a duration, not longer than `backup.ttl.max`",
            "24h",
            "-1h",
            "the message \"the administrator requires backups to be kept at least ...\"; reason `InvalidBackupSpec`",
        ),
        "backup.volumes" => effect(
            "one of the two words",
            "velero",
            "all",
            "with `velero`, `DataProtected` is False with reason `ClaimsNotSaved` where Velero's defaults save nothing",
        ),
        _ => return None,
    };
    Some(found)
}

fn of_restores(key: &str) -> Option<Effect> {
    let found = match key {
        "restore.enforce" => effect(
            "fields of a restore's spec that make sense for everybody",
            "{ preserveNodePorts: false }",
            "{ namespaceMapping: { a: b } }",
            "the message \"the administrator requires ...; leave the field out or set it to that\"; reason `InvalidRestoreSpec`",
        ),
        "restore.fromPlatformStorage.excludedResources" => effect(
            "names of resources, as `plural.group`",
            "[resourcequotas, limitranges]",
            "[\"*\"]",
            "these objects do not come back; `kubectl nacre restore preview` lists them",
        ),
        "restore.fromTenantStorage.allowedResources" => effect(
            "names of resources, as `plural.group`; not RBAC, quotas, limit ranges, network policies, webhooks",
            "[configmaps, deployments.apps]",
            "[roles.rbac.authorization.k8s.io]",
            "a request that names another resource is refused with reason `InvalidRestoreSpec`; without names, the others are left out",
        ),
        "restore.fromTenantStorage.finalizeTimeout" => effect(
            "a duration, 0 or more",
            "1h",
            "-1h",
            "the restore ends as failed; `status.veleroRestore.status.failureReason` says why",
        ),
        "restore.fromTenantStorage.maxItems" => effect(
            COUNT,
            "20000",
            "-1",
            "the restore is refused with reason `InvalidRestoreSpec`; the message has both numbers",
        ),
        "restore.fromTenantStorage.pods" => effect(
            "one of the three words",
            "baseline",
            "privileged",
            "where pods do not come back, a backup whose volumes were saved file by file cannot be restored; the request says so",
        ),
        "restore.hooks" => effect(
            "one of the two words",
            "forbid",
            "allow",
            "the message \"the administrator does not allow hooks; leave the field out\"; reason `InvalidRestoreSpec`",
        ),
        "restore.maxActivePerNamespace" => effect(
            COUNT,
            "2",
            "-1",
            "`WaitingForTurn` is True with reason `NamespaceLimitReached`; the restore starts by itself",
        ),
        _ => return None,
    };
    Some(found)
}

fn of_storage(key: &str) -> Option<Effect> {
    let found = match key {
        "storageLocations.allowInsecureSkipTLSVerify" => effect(
            "`true` or `false`",
            "false",
            "maybe",
            "a location with `insecureSkipTLSVerify` has `Accepted` False with reason `BslSpecValidation`",
        ),
        "storageLocations.endpoints.allow" => effect(
            "host names, with or without stars, addresses and networks",
            "[\"*.example.com\", 10.1.0.0/16]",
            "[\"https://store.example.com\"]",
            "a location at another host has `Accepted` False with reason `BslSpecValidation`",
        ),
        "storageLocations.endpoints.deny" => effect(
            "host names, with or without stars, addresses and networks",
            "[api.example.com]",
            "[\"https://store.example.com\"]",
            "a location at such a host has `Accepted` False with reason `BslSpecValidation`",
        ),
        "storageLocations.enforce" => effect(
            "fields of a location's spec",
            "{ accessMode: ReadWrite }",
            "{ accessMode: Sometimes }",
            "the message \"the administrator requires ...; leave the field out or set it to that\"; reason `BslSpecValidation`",
        ),
        "storageLocations.import" => effect(
            "one of the three words",
            "off",
            "never",
            "backups that are in the bucket already do not appear; an Event on the location says so",
        ),
        "storageLocations.maxPerNamespace" => effect(
            COUNT,
            "2",
            "-1",
            "`Accepted` is False with reason `BslSpecValidation`; the message has the limit",
        ),
        "storageLocations.mode" => effect(
            "one of the three words",
            "platform",
            "none",
            "a backup to the other kind of storage has reason `InvalidBackupSpec`; with `platform` a location has `BslSpecValidation`",
        ),
        "storageLocations.nativeSnapshots" => effect(
            "one of the two words",
            "refuse",
            "ask",
            "with `refuse` and a VolumeSnapshotLocation, locations have `Accepted` False with reason `BslSpecValidation`",
        ),
        "storageLocations.providers" => effect(
            "`aws`, `azure`, `gcp`",
            "[aws]",
            "[swift]",
            "a location of another provider has `Accepted` False with reason `BslSpecValidation`",
        ),
        "storageLocations.requireApproval" => effect(
            "`true` or `false`",
            "true",
            "sometimes",
            "`ClusterAdminApproved` is False with reason `BslSpecApprovalPending` until an administrator decides",
        ),
        _ => return None,
    };
    Some(found)
}

fn of_schedules(key: &str) -> Option<Effect> {
    let found = match key {
        "schedules.defaults" => effect(
            "entries with `name`, `selector`, `schedule`, and if wanted `timeZone`, `retention`, `backupSpec`",
            "[{ name: nightly, selector: {}, schedule: \"H 2 * * *\" }]",
            "[{ name: nightly, selector: {}, schedule: \"at night\" }]",
            "a NonAdminSchedule of this name appears in the namespace",
        ),
        "schedules.maxPerNamespace" => {
            effect(COUNT, "5", "-1", "`Accepted` is False; the message has the limit")
        }
        "schedules.minInterval" => effect(
            DURATION,
            "1h",
            "-1h",
            "`Accepted` is False with reason `InvalidScheduleSpec`; the message has both times",
        ),
        "schedules.spread" => {
            effect(DURATION, "10m", "-1m", "runs start up to this time later than the schedule says")
        }
        "schedules.windows" => effect(
            "parts of a day, as `22:00-06:00` or `22:00-06:00 Europe/Berlin`",
            "[\"22:00-06:00 Europe/Berlin\"]",
            "[\"at night\"]",
            "`Accepted` is False with reason `InvalidScheduleSpec`; the message has the windows",
        ),
        _ => {
            let (bound, name) = key.strip_prefix("schedules.retention.")?.split_once('.')?;
            let seen = match bound {
                "min" => {
                    "the webhook refuses less: \"the administrator requires at least ...\"; schedules that exist keep more"
                }
                _ => {
                    "the webhook refuses more (\"the administrator allows at most ...\") and fields that neither `max` nor `min` has; schedules that exist keep less"
                }
            };
            match name {
                "keepWithin" => effect("a number and s, m, h, d or w", "30d", "a month", seen),
                _ => effect(COUNT, "7", "-1", seen),
            }
        }
    };
    Some(found)
}

fn of_the_rest(key: &str) -> Option<Effect> {
    let found = match key {
        "downloads.platformStorage" => effect(
            "one of the three words",
            "logs",
            "some",
            "a download that is not allowed has the condition `NonAdminBackupStorageLocationNotUsed`",
        ),
        "garbageCollection.period" => effect("a duration; at least 1s, or 0", "12h", "-1h", "nothing"),
        "namespaces.excluded" | "namespaces.included" => effect(
            "names of namespaces, in which a star stands for any run of characters",
            "[\"team-*\"]",
            "[\"Team A\"]",
            "\"metadata.namespace: backups cannot be asked for in this namespace; the administrators' policy leaves it out\"",
        ),
        "queue.inFlight" => effect(
            "0 or more; 1 leaves Velero idle between two",
            "4",
            "1",
            "`WaitingForTurn` is True with reason `OthersFirst`; the message has the place and the estimated start",
        ),
        "queue.priority" | "queue.weight" => {
            let (accepts, wrong) = if key == "queue.weight" { ("1 to 10000", "0") } else { (COUNT, "-1") };
            effect(
                accepts,
                "200",
                wrong,
                "`WaitingForTurn` is True with reason `OthersFirst` for longer, or for shorter",
            )
        }
        "requester.extra" => effect(
            "keys of extra fields: small letters, digits, dashes, dots and slashes; at most 20",
            "[\"example.com/team\"]",
            "[\"Team A\"]",
            "nothing; with the field it is part of the annotation `nacre.dev/requester`",
        ),
        "requester.maxAge" => effect(
            DURATION,
            "720h",
            "-1h",
            "`RequesterConfirmed` of a schedule is False with reason `ConfirmationDue`, later `ConfirmationOverdue`",
        ),
        "requester.mode" => effect(
            "one of the three words",
            "warn",
            "off",
            "`RequesterPermitted` is False with reason `ResourcesLeftOut`, with `warn` `NotEnforced`",
        ),
        "requester.notPermitted" => effect(
            "one of the two words",
            "refuse",
            "delete",
            "with `refuse`, `Accepted` is False with reason `RequesterNotPermitted`",
        ),
        "requester.rolesFromPlatformStorage" => effect(
            "`true` or `false`",
            "true",
            "some",
            "with `false`, Roles and RoleBindings are left out unless the requester may hand out permissions; reason `ResourcesLeftOut`",
        ),
        "requester.unrecorded" => effect(
            "one of the three words",
            "enforce",
            "off",
            "with `warn`, `RequesterPermitted` is False with reason `NotRecorded`; with `enforce`, `Accepted` with `RequesterNotPermitted`",
        ),
        "sync.adoption" => effect(
            "one of the two words",
            "name",
            "uid",
            "with `approval`, backups of an earlier namespace do not appear; an Event and `kubectl nacre status` say so",
        ),
        "sync.period" => effect("a duration; at least 1s, or 0", "10m", "-1m", "nothing"),
        "views.velero" => effect(
            "one of the three words",
            "all",
            "some",
            "Velero's objects for the namespace appear in it, and vanish when it is switched off",
        ),
        "volumes.longest" | "volumes.noProgress" | "volumes.podGone" | "volumes.podPending" => {
            effect(DURATION, "1h", "-1h", SEEN_CANCELLED)
        }
        _ => return None,
    };
    Some(found)
}

/// A policy with this value at this key.
pub(crate) fn at(key: &str, value: &str) -> String {
    let names: Vec<_> = key.split('.').collect();
    let open: Vec<_> = names.iter().map(|name| format!("{{ {name}: ")).collect();
    format!("{}{value}{}", open.concat(), " }".repeat(names.len()))
}

/// Examples are accepted without a complaint, and what is beyond the bounds is reported.
#[test]
fn examples_are_accepted_and_what_is_out_of_bounds_is_reported() {
    for key in super::reference::keys() {
        let found = of(&key).unwrap_or_else(|| panic!("{key} has no example"));
        assert_eq!(check(&at(&key, found.example)), [], "{key}");
        let problems = check(&at(&key, found.wrong));
        assert!(!problems.is_empty(), "{key}: {} is accepted", found.wrong);
        assert!(problems.iter().any(|problem| problem.path.starts_with(&key)), "{key}: {problems:?}");
    }
}

/// What a tenant is said to see exists: conditions and reasons are those of the API.
#[test]
fn conditions_and_reasons_on_the_page_exist() {
    let known = include_str!("../../../api/src/condition.rs");
    let events = ["VolumeCancelled"];
    let mut checked = 0;
    for key in super::reference::keys() {
        let seen = of(&key).map(|found| found.seen).unwrap_or_default();
        let words = seen.split('`').skip(1).step_by(2);
        for word in words.filter(|word| word.starts_with(char::is_uppercase) && !word.contains(' ')) {
            assert!(known.contains(&format!("\"{word}\"")) || events.contains(&word), "{key}: {word}");
            checked += 1;
        }
    }
    assert!(checked > 30, "{checked}");
}
