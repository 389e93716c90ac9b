//! Policies as texts: what is read, and what is refused with line and column.

use std::time::Duration as Wait;

use api::Duration;
use planner::Policy;
use planner::policy::{Adoption, Downloads, Import, StorageMode, TenantPods, check, render};

use super::{labels, policies, policy};

const EXAMPLE: &str = r#"
backup:
  defaults: { ttl: 720h }        # filled in where the user says nothing
  enforce: { snapshotMoveData: false }
  ttl: { min: 1h, max: 2160h }
  maxPerNamespace: 200
  maxActivePerNamespace: 10
  hooks: allow
  hookTimeout: 3m
restore:
  enforce: {}
  hooks: forbid
  hookTimeout: 4m
  fromTenantStorage: { allowedResources: [configmaps, deployments.apps], pods: baseline, finalizeTimeout: 0 }
  fromPlatformStorage: { excludedResources: [resourcequotas] }
storageLocations:
  mode: own
  import: off
  enforce: { accessMode: ReadWrite }
  requireApproval: true
  providers: [aws]
  endpoints: { allow: ["s3.shop.svc"], deny: ["*.example.com"] }
  maxPerNamespace: 5
downloads: { platformStorage: logs }
volumes: { podGone: 10s, podPending: 1m, noProgress: 0, longest: 12h }
sync: { period: 5m, adoption: name }
garbageCollection: { period: 0 }
namespaces: { included: ["team-*"], excluded: ["team-x"] }
overrides:
  - selector: { matchLabels: { nacre.dev/tier: gold } }
    backup: { maxPerNamespace: 1000 }
"#;

#[test]
fn every_field_arrives() {
    assert_eq!(check(EXAMPLE), []);
    let Policy {
        backup,
        restore,
        storage_locations,
        downloads,
        volumes,
        sync,
        garbage_collection,
        namespaces,
        ..
    } = policy(EXAMPLE);
    assert_eq!(backup.defaults.ttl, Some(Duration::from("720h")));
    assert_eq!(backup.enforce.snapshot_move_data, Some(false));
    assert_eq!((backup.ttl.min, backup.ttl.max), (Some(Duration::from("1h")), Some(Duration::from("2160h"))));
    assert_eq!((backup.max_per_namespace, backup.max_active_per_namespace), (Some(200), Some(10)));
    assert!(!backup.forbid_hooks && restore.forbid_hooks);
    assert_eq!((backup.hook_timeout, restore.hook_timeout), (Duration::from("3m"), Duration::from("4m")));
    let seconds = |limit: Option<Wait>| limit.map(|limit| limit.as_secs());
    assert_eq!((seconds(volumes.pod_gone()), seconds(volumes.pod_pending())), (Some(10), Some(60)));
    assert_eq!((seconds(volumes.no_progress()), seconds(volumes.longest())), (None, Some(12 * 3600)));
    assert_eq!(restore.from_tenant_storage.allowed_resources, ["configmaps", "deployments.apps"]);
    assert_eq!(restore.from_tenant_storage.pods, TenantPods::Baseline);
    assert_eq!(restore.from_tenant_storage.finalize_timeout(), None);
    assert_eq!(restore.excluded_from_platform_storage, ["resourcequotas"]);
    assert_eq!((storage_locations.mode, storage_locations.import), (StorageMode::Own, Import::Off));
    assert_eq!(storage_locations.enforce.access_mode.as_deref(), Some("ReadWrite"));
    assert!(storage_locations.require_approval && !storage_locations.allow_insecure_skip_tls_verify);
    assert_eq!(storage_locations.providers, ["aws"]);
    assert_eq!(storage_locations.endpoints.allow, ["s3.shop.svc".parse().unwrap()]);
    assert_eq!(storage_locations.endpoints.deny, ["*.example.com".parse().unwrap()]);
    assert_eq!(storage_locations.max_per_namespace, Some(5));
    assert_eq!(downloads.platform_storage, Downloads::Logs);
    assert_eq!((sync.every(), sync.adoption), (Some(Wait::from_mins(5)), Adoption::Name));
    assert_eq!(garbage_collection.every(), None);
    assert!(namespaces.allows("team-a") && !namespaces.allows("team-x") && !namespaces.allows("shop"));
}

#[test]
fn what_is_not_said_is_not_limited() {
    for text in
        ["", "# nothing yet\n", "---\n", "{}", "backup:\n", "overrides: []", "backup: { ttl: {}, enforce: }"]
    {
        assert_eq!(check(text), [], "{text:?}");
        assert_eq!(policy(text), Policy::default(), "{text:?}");
    }
    let policy = Policy::default();
    assert_eq!(policy.backup.max_per_namespace, None);
    assert_eq!(policy.sync.every(), Some(Wait::from_mins(2)));
    assert_eq!(policy.garbage_collection.every(), Some(Wait::from_hours(24)));
    let back = &policy.restore.from_tenant_storage.allowed_resources;
    assert!(back.contains(&"controllerrevisions.apps".to_owned()));
    for never in
        ["pods", "roles.rbac.authorization.k8s.io", "resourcequotas", "networkpolicies.networking.k8s.io"]
    {
        assert!(!back.contains(&never.to_owned()), "{never}");
    }
}

/// Policies from before there were levels said whether, and not how.
#[test]
fn whether_pods_come_back_can_still_be_said_with_true_and_false() {
    for (text, expected) in
        [("true", TenantPods::Baseline), ("false", TenantPods::None), ("auto", TenantPods::Auto)]
    {
        let policy = policy(&format!("restore: {{ fromTenantStorage: {{ pods: {text} }} }}"));
        assert_eq!(policy.restore.from_tenant_storage.pods, expected, "{text}");
    }
}

/// Each policy text, and all reported problems.
const REFUSED: &[(&str, &[&str])] = &[
    ("backup: [", &["1:9: unclosed bracket '['"]),
    ("a: b: c\n", &["1:5: mapping values are not allowed in this context"]),
    ("sync: {}\nsync: {}\n", &["2:1: duplicate mapping key: sync not allowed here"]),
    ("sync: {}\n---\nsync: {}\n", &["3:1: only single YAML document expected but multiple found"]),
    (
        "- backup\n",
        &[
            "1:1: a list was found where a block with backup, restore, storageLocations, schedules, queue, downloads, volumes, sync, garbageCollection, namespaces, views, requester, overrides belongs",
        ],
    ),
    (
        "restor: {}\n",
        &[
            "1:1: restor: there is no such field; known here: backup, restore, storageLocations, schedules, queue, downloads, volumes, sync, garbageCollection, namespaces, views, requester, overrides",
        ],
    ),
    (
        "backup:\n  tll: {}\n  maxPerNamespace: ten\n  hooks: maybe\n",
        &[
            "2:3: backup.tll: there is no such field; known here: defaults, enforce, ttl, maxPerNamespace, maxActivePerNamespace, maxBytesPerNamespace, maxWorkPerDay, atLimit, hooks, hookTimeout, volumes, delete",
            "3:20: backup.maxPerNamespace: \"ten\" was found where a whole number, 0 or more, belongs",
            "4:10: backup.hooks: \"maybe\" was found where one of allow, forbid belongs",
        ],
    ),
    (
        "backup:\n  maxActivePerNamespace: -1\n",
        &["2:26: backup.maxActivePerNamespace: -1 was found where a whole number, 0 or more, belongs"],
    ),
    (
        "storageLocations:\n  endpoints:\n    allow: [\"https://s3\"]\n",
        &[
            "3:12: storageLocations.endpoints.allow: \"https://s3\" is neither a host, a pattern of hosts such as \
             *.example.com, nor a network such as 10.0.0.0/8",
        ],
    ),
    ("backup:\n  ttl: 5h\n", &["2:8: backup.ttl: \"5h\" was found where a block with min, max belongs"]),
    (
        "backup:\n  ttl: { max: soon }\n",
        &["2:15: backup.ttl.max: \"soon\" is not a duration; write for example 72h or 1h30m"],
    ),
    (
        "backup:\n  ttl: { min: -1h }\n",
        &["2:15: backup.ttl.min: \"-1h\" is not a duration; write for example 72h or 1h30m"],
    ),
    (
        "backup:\n  ttl:\n    min: 48h\n    max: 24h\n",
        &["3:10: backup.ttl.min: is longer than backup.ttl.max: no backup could satisfy both"],
    ),
    (
        "backup:\n  ttl: { min: 48h }\n  enforce: { ttl: 24h }\n",
        &[
            "3:19: backup.enforce.ttl: is shorter than backup.ttl.min, which is 48h: no backup could satisfy both",
        ],
    ),
    (
        "backup:\n  enforce:\n    ttl: 5\n",
        &["3:10: backup.enforce.ttl: 5 was found where text (put it in quotes) belongs"],
    ),
    (
        "backup:\n  defaults: { csiSnapshotTimeout: 10 minutes }\n",
        &[
            "2:35: backup.defaults.csiSnapshotTimeout: \"10 minutes\" is not a duration; write for example 72h or 1h30m",
        ],
    ),
    (
        "backup:\n  enforce:\n    hooks: { resources: [{ name: x, pre: [{ exec: { cmd: [ls] } }] }] }\n",
        &["3:51: backup.enforce.hooks.resources[0].pre[0].exec: command is missing"],
    ),
    (
        "backup:\n  enforce:\n    hooks: { resources: [{ name: x, includedNamespaces: [shop] }] }\n",
        &[
            "3:57: backup.enforce.hooks.resources[0].includedNamespaces: holds for every namespace and cannot name one; leave it out",
        ],
    ),
    (
        "backup:\n  hooks: forbid\n  enforce:\n    hooks: { resources: [{ name: x }] }\n",
        &["4:12: backup.enforce.hooks: the administrator does not allow hooks; leave the field out"],
    ),
    (
        "backup:\n  enforce: { storageLocation: x, volumeSnapshotLocations: [], includeClusterResources: true }\n  defaults: { includedNamespaces: [a] }\n",
        &[
            "2:31: backup.enforce.storageLocation: cannot be set for all tenants; leave it out",
            "2:59: backup.enforce.volumeSnapshotLocations: cannot be set for all tenants; leave it out",
            "2:88: backup.enforce.includeClusterResources: cannot be set for all tenants; leave it out",
            "3:35: backup.defaults.includedNamespaces: cannot be set for all tenants; leave it out",
        ],
    ),
    (
        "restore:\n  enforce: { namespaceMapping: { a: b } }\n",
        &["2:32: restore.enforce.namespaceMapping: cannot be set for all tenants; leave it out"],
    ),
    (
        "restore:\n  enforce: { existingResourcePolicies: update }\n",
        &[
            "2:14: restore.enforce.existingResourcePolicies: there is no such field; known here: backupName, scheduleName, includedNamespaces, excludedNamespaces, includedResources, excludedResources, namespaceMapping, labelSelector, orLabelSelectors, restorePVs, restoreStatus, preserveNodePorts, includeClusterResources, hooks, existingResourcePolicy, itemOperationTimeout, resourceModifier, resourcePolicy, uploaderConfig",
        ],
    ),
    (
        "restore:\n  fromTenantStorage:\n    pods: yes\n    allowedResources:\n      - pods\n      - roles.rbac.authorization.k8s.io\n      - '*'\n      - nonadminbackups.oadp.openshift.io\n",
        &[
            "3:11: restore.fromTenantStorage.pods: \"yes\" was found where auto, baseline or none belongs",
            "5:9: restore.fromTenantStorage.allowedResources[0]: \"pods\": whether pods come back is set by fromTenantStorage.pods; remove it here",
            "6:9: restore.fromTenantStorage.allowedResources[1]: \"roles.rbac.authorization.k8s.io\": never comes back from storage that a tenant can write to; remove it",
            "7:9: restore.fromTenantStorage.allowedResources[2]: \"*\": a star would let everything back; name each resource, for example deployments.apps",
            "8:9: restore.fromTenantStorage.allowedResources[3]: \"nonadminbackups.oadp.openshift.io\": never comes back from storage that a tenant can write to; remove it",
        ],
    ),
    (
        "storageLocations: { mode: theirs }\n",
        &["1:27: storageLocations.mode: \"theirs\" was found where one of any, own, platform belongs"],
    ),
    (
        "storageLocations: { enforce: { default: true } }\n",
        &[
            "1:32: storageLocations.enforce.default: there is no such field; known here: provider, config, credential, objectStorage, accessMode, backupSyncPeriod, validationFrequency",
        ],
    ),
    (
        "storageLocations: { enforce: { accessMode: RW } }\n",
        &["1:44: storageLocations.enforce.accessMode: \"RW\" is not ReadOnly or ReadWrite"],
    ),
    (
        "storageLocations:\n  providers: [aws]\n  enforce: { provider: gcp }\n",
        &[
            "3:24: storageLocations.enforce.provider: \"gcp\" is not among storageLocations.providers: nobody could satisfy both",
        ],
    ),
    (
        "downloads: { platformStorage: everything }\n",
        &["1:31: downloads.platformStorage: \"everything\" was found where one of none, logs, all belongs"],
    ),
    (
        "sync: { period: hourly, adoption: always }\n",
        &[
            "1:17: sync.period: \"hourly\" is not a duration; write for example 72h or 1h30m",
            "1:35: sync.adoption: \"always\" was found where one of approval, name belongs",
        ],
    ),
    (
        "namespaces: { included: shop }\n",
        &["1:25: namespaces.included: \"shop\" was found where a list belongs"],
    ),
    (
        "overrides: {}\n",
        &["1:12: overrides: a list belongs here, each entry with a selector and what differs"],
    ),
    (
        "overrides:\n  - backup: {}\n  - selector: { matchExpressions: [{ key: nacre.dev/a, operator: Is }] }\n  - selector: { labels: {} }\n    foo: 1\n    namespaces: {}\n    sync: { period: 1h, adoption: name }\n    backup: { maxPerNamespace: many }\n",
        &[
            "2:5: overrides[0]: selector is missing; say which namespaces, for example by matchLabels",
            "3:15: overrides[1].selector: cannot be understood; an operator is In or NotIn, with values, or Exists or DoesNotExist",
            "4:17: overrides[2].selector.labels: there is no such field; known here: matchExpressions, matchLabels",
            "5:5: overrides[2].foo: there is no such field; known here: backup, restore, storageLocations, schedules, queue, downloads, volumes, sync, garbageCollection, namespaces, views, requester, selector",
            "6:17: overrides[2].namespaces: holds for the whole cluster and cannot differ by namespace; say it at the top",
            "7:21: overrides[2].sync.period: holds for the whole cluster and cannot differ by namespace; say it at the top",
            "8:32: overrides[2].backup.maxPerNamespace: \"many\" was found where a whole number, 0 or more, belongs",
        ],
    ),
    (
        "backup: { ttl: { min: 48h } }\noverrides:\n  - selector: {}\n    backup: { ttl: { max: 24h } }\n",
        &["1:23: backup.ttl.min: is longer than backup.ttl.max: no backup could satisfy both"],
    ),
];

#[test]
fn every_problem_is_told_with_its_place() {
    for (text, expected) in REFUSED {
        let problems = check(text);
        let reported: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(reported, *expected, "{text}");
        assert!(problems.iter().all(|problem| problem.is_error() && problem.position.is_some()), "{text}");
    }
}

/// What can be used, but hardly does what was meant.
const DOUBTFUL: &[(&str, &str)] = &[
    (
        "backup: { ttl: { max: 24h }, defaults: { ttl: 48h } }",
        "1:47: warning: backup.defaults.ttl: is longer than backup.ttl.max, which is 24h: backups that ask for no ttl are refused",
    ),
    (
        "backup: { enforce: { ttl: 24h }, defaults: { ttl: 48h } }",
        "1:51: warning: backup.defaults.ttl: is never used, since backup.enforce requires \"24h\"",
    ),
    (
        "restore: { fromTenantStorage: { allowedResources: [deployments] } }",
        "1:52: warning: restore.fromTenantStorage.allowedResources[0]: \"deployments\": the core group has no such resource; write its group too, as in deployments.apps",
    ),
    (
        "restore: { fromTenantStorage: { pods: none } }",
        "1:39: warning: restore.fromTenantStorage.pods: volumes that tenants save file by file in their own storage cannot be restored",
    ),
    (
        "restore: { fromPlatformStorage: { excludedResources: [Quota] } }",
        "1:55: warning: restore.fromPlatformStorage.excludedResources[0]: \"Quota\": no resource is called that; write resource.group, for example deployments.apps",
    ),
    (
        "storageLocations: { providers: [minio, aws] }",
        "1:33: warning: storageLocations.providers[0]: nobody can use \"minio\": credentials can be checked for aws, azure, gcp only",
    ),
    (
        "storageLocations: { providers: [] }",
        "1:32: warning: storageLocations.providers: nobody can bring storage; storageLocations.mode: platform says so more plainly",
    ),
    (
        "storageLocations: { enforce: { backupSyncPeriod: 5m } }",
        "1:50: warning: storageLocations.enforce.backupSyncPeriod: should be shorter than sync.period, which is 2m",
    ),
    (
        "sync: { period: 1h }\ngarbageCollection: { period: 1h }",
        "2:30: warning: garbageCollection.period: should be longer than sync.period, which is 1h",
    ),
    (
        "sync: { period: 1m }",
        "1:17: warning: sync.period: should be longer than the time after which Velero looks into storage, 1m",
    ),
    (
        "garbageCollection: { period: 1ms }\nsync: { period: 0 }",
        "1:30: warning: garbageCollection.period: is taken as 1s, which is often enough; 0 switches it off",
    ),
    (
        "namespaces: { included: [] }",
        "1:25: warning: namespaces.included: nobody may ask for anything; [\"*\"] means everybody",
    ),
    (
        "namespaces: { excluded: [Team_A] }",
        "1:26: warning: namespaces.excluded[0]: no namespace fits \"Team_A\": small letters, digits, dashes and stars can",
    ),
    (
        "overrides: [{ selector: {} }, { selector: { matchLabels: { nacre.dev/a: b } } }]",
        "1:13: warning: overrides[0]: fits every namespace, so that what follows is never used",
    ),
    // H13: a label that is not kept for administrators.
    (
        "overrides: [{ selector: { matchExpressions: [{ key: tier, operator: Exists }] } }]",
        "1:25: warning: overrides[0].selector: selects by \"tier\", so that whoever may label a namespace chooses its override; \
         labels that begin with nacre.dev/ are for administrators alone, and kubernetes.io/metadata.name is the namespace's name",
    ),
];

#[test]
fn what_is_doubtful_is_told_and_used() {
    for (text, expected) in DOUBTFUL {
        let reported: Vec<_> = check(text).iter().map(ToString::to_string).collect();
        assert_eq!(reported, [*expected], "{text}");
        policies(text);
    }
}

#[test]
fn what_only_looks_odd_is_fine() {
    for text in [
        "sync: { period: 0 }",
        "garbageCollection: { period: 0s }",
        "sync: { period: \"0\" }\nstorageLocations: { enforce: { backupSyncPeriod: 5m } }",
        "storageLocations: { enforce: { backupSyncPeriod: 0s } }",
        "storageLocations: { providers: [aws], enforce: { provider: velero.io/aws } }",
    ] {
        assert_eq!(check(text), [], "{text}");
    }
}

#[test]
fn zeros_of_go_clients_require_nothing() {
    let text = "backup: { enforce: { ttl: 0s, hooks: {}, metadata: {}, csiSnapshotTimeout: 0s, storageLocation: '' } }\n\
                storageLocations: { enforce: { provider: '', accessMode: '' } }";
    assert_eq!(check(text), []);
    assert_eq!(policy(text), Policy::default());
}

#[test]
fn switches_that_a_tool_has_rewritten_are_understood() {
    assert_eq!(policy("storageLocations: { import: on }").storage_locations.import, Import::On);
    assert_eq!(policy("storageLocations: { import: false }").storage_locations.import, Import::Off);
}

#[test]
fn the_first_override_that_fits_wins() {
    let policies = policies(
        "backup: { maxPerNamespace: 200, ttl: { min: 1h, max: 100h }, enforce: { ttl: 24h, snapshotVolumes: true } }\n\
         overrides:\n\
         - selector: { matchLabels: { nacre.dev/tier: gold } }\n\
         \x20 backup: { maxPerNamespace: 1000, ttl: { max: 200h }, enforce: { ttl: 48h } }\n\
         - selector: { matchExpressions: [{ key: nacre.dev/tier, operator: Exists }] }\n\
         \x20 backup: { maxPerNamespace: null, enforce: { snapshotVolumes: null } }\n\
         - selector: { matchLabels: { kubernetes.io/metadata.name: lab } }\n\
         \x20 backup: { hooks: forbid }\n",
    );
    let at = |name: &str, pairs: &[(&str, &str)]| policies.for_namespace(name, &labels(pairs)).backup.clone();

    let plain = at("shop", &[("team", "a")]);
    assert_eq!((plain.max_per_namespace, plain.forbid_hooks), (Some(200), false));

    let gold = at("shop", &[("nacre.dev/tier", "gold")]);
    assert_eq!(gold.max_per_namespace, Some(1000));
    assert_eq!((gold.ttl.min, gold.ttl.max), (Some(Duration::from("1h")), Some(Duration::from("200h"))));
    assert_eq!((gold.enforce.ttl, gold.enforce.snapshot_volumes), (Some(Duration::from("48h")), Some(true)));

    let silver = at("shop", &[("nacre.dev/tier", "silver")]);
    assert_eq!(silver.max_per_namespace, None);
    assert_eq!((silver.enforce.ttl, silver.enforce.snapshot_volumes), (Some(Duration::from("24h")), None));

    let lab = at("lab", &[]);
    assert_eq!((lab.max_per_namespace, lab.forbid_hooks), (Some(200), true));
}

#[test]
fn an_override_replaces_a_field_of_a_spec_as_a_whole() {
    let policies = policies(
        "backup: { enforce: { labelSelector: { matchLabels: { a: b } } } }\n\
         overrides: [{ selector: {}, backup: { enforce: { labelSelector: { matchLabels: { c: d } } } } }]",
    );
    let selector = policies.for_namespace("shop", &labels(&[])).backup.enforce.label_selector.clone();
    assert_eq!(selector.unwrap().match_labels, Some(labels(&[("c", "d")])));
}

#[test]
fn a_rendered_default_reads_as_the_default() {
    let text = render(&Policy::default());
    assert_eq!(check(&text), []);
    assert_eq!(policy(&text), Policy::default());
}
