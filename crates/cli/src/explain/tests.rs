//! Pages of `explain`, from a policy and a request.

use planner::Policy;
use serde_json::json;

use super::*;
use crate::{
    preview::tests::{backup, shop},
    progress::tests::{at_velero, refused},
};

fn reported(policy: Policy, spec: &Value, source: Source) -> String {
    let manifest = Manifest::Backup(Box::new(backup(spec)));
    page(&explain(&shop(policy), &manifest, source).checked_by(None))
}

fn page(answer: &Explanation) -> String {
    let text = anstream::adapter::strip_str(&show::page(answer)).to_string();
    // What is always left out is reported elsewhere.
    let mut words: Vec<&str> = text.split(' ').collect();
    for at in 1..words.len().saturating_sub(1) {
        if words[at - 1] == "and" && words[at + 1] == "more" {
            words[at] = "NN";
        }
    }
    words.join(" ")
}

fn strict() -> Policy {
    let mut policy = Policy::default();
    policy.backup.ttl.max = Some("48h".into());
    policy.backup.enforce.snapshot_volumes = Some(false);
    policy.backup.defaults.ttl = Some("24h".into());
    policy
}

#[test]
fn a_refusal_names_field_rule_and_what_would_do() {
    insta::assert_snapshot!(reported(strict(), &json!({"ttl": "72h"}), Source::Cluster), @r"
    backup daily in namespace shop: would be refused
      spec.backupSpec.ttl: the administrator allows backups to be kept at most 48h; ask for that or less
      rule: backup.ttl of the administrators' policy

    policy: the cluster's, as it is now
    ");
    insta::assert_snapshot!(reported(strict(), &json!({"excludedNamespaces": ["a"]}), Source::File), @r"
    backup daily in namespace shop: would be refused
      spec.backupSpec.excludedNamespaces: not available to namespace owners; leave the field out
      rule: built into nacre, independent of the administrators' policy

    policy: from the file
    ");
}

#[test]
fn what_passes_is_shown_as_velero_gets_it() {
    insta::assert_snapshot!(reported(strict(), &json!({"includedResources": ["configmaps"]}), Source::Cluster), @r"
    backup daily in namespace shop: would pass
      FIELD                BECOMES                                       BY
      excludedResources    cloudstorages.oadp.openshift.io and NN more   nacre, always
      includedNamespaces   shop                                          nacre, always
      snapshotVolumes      false                                         policy, backup.enforce.snapshotVolumes
      ttl                  24h                                           policy, backup.defaults.ttl

    policy: the cluster's, as it is now
    ");
}

/// It is said before the backup is made, not on the day of the loss.
#[test]
fn what_could_not_be_restored_is_said() {
    let spec = json!({"storageLocation": "bucket", "defaultVolumesToFsBackup": true});
    let mut policy = Policy::default();
    let text = reported(policy.clone(), &spec, Source::Cluster);
    let warning = "warning: volume data that is saved from inside pods could NOT be restored";
    assert!(text.contains(warning), "{text}");
    policy.restore.from_tenant_storage.pods = planner::policy::TenantPods::Baseline;
    let text = reported(policy, &spec, Source::Cluster);
    assert!(!text.contains("could NOT be restored"), "{text}");
}

/// The policy was changed since, so that the same request would pass: the request itself is still refused.
#[test]
fn the_status_of_the_object_comes_first_and_decides_the_exit_code() {
    let answer = |status: &Value| {
        let mut object = backup(&json!({"ttl": "24h"}));
        object.status = serde_json::from_value(status.clone()).unwrap();
        let manifest = Manifest::Backup(Box::new(object));
        let answer = explain(&shop(Policy::default()), &manifest, Source::Cluster).checked_by(None);
        Explanation { reported: manifest.reported(), ..answer }
    };
    let status = refused("InvalidBackupSpec", "spec.backupSpec.ttl: at most 12h");
    insta::assert_snapshot!(page(&answer(&status)), @r"
    backup daily in namespace shop: Refused - spec.backupSpec.ttl: at most 12h
    if it were sent again now: would pass
      FIELD                BECOMES                                       BY
      excludedResources    cloudstorages.oadp.openshift.io and NN more   nacre, always
      includedNamespaces   shop                                          nacre, always

    policy: the cluster's, as it is now
    ");
    assert!(answer(&status).needs_attention());
    assert!(answer(&refused("HandOverFailed", "nacre retries")).needs_attention());
    assert!(answer(&refused("VeleroBackupNotFound", "it is gone")).needs_attention());
    assert!(!answer(&at_velero(&json!({"phase": "InProgress"}))).needs_attention());
    assert!(!answer(&json!({})).needs_attention());
}

#[test]
fn without_policy_and_webhook_the_answer_is_unknown() {
    let manifest = Manifest::Backup(Box::new(backup(&json!({}))));
    let answer = |source, denied: Option<&str>, webhook| {
        let denied = denied.map(str::to_owned);
        let answer = explain(&shop(Policy::default()), &manifest, source);
        let answer = answer.checked_by(Some(server::ServerAnswer { denied, webhook, set: Vec::new() }));
        (answer.verdict, answer.needs_attention())
    };
    assert_eq!(answer(Source::Unreadable, None, false), ("unknown", true));
    assert_eq!(answer(Source::Unreadable, None, true), ("passes", false));
    assert_eq!(answer(Source::Unreadable, Some("no"), false), ("passes", true));
    assert_eq!(answer(Source::Cluster, None, false), ("passes", false));
}

#[test]
fn what_the_administrators_set_is_known_by_a_dry_run() {
    let manifest = Manifest::Backup(Box::new(backup(&json!({"ttl": "72h"}))));
    let set = vec![("ttl".to_owned(), "48h".to_owned())];
    let said = server::ServerAnswer { denied: None, webhook: true, set };
    let answer = explain(&shop(Policy::default()), &manifest, Source::Unreadable).checked_by(Some(said));
    let text = page(&answer);
    assert!(text.contains("  ttl                  48h"), "{text}");
    assert!(text.contains("the administrators' policy\n"), "{text}");
    let parts = show::parts(&answer).to_string();
    assert!(parts.contains("ttl") && parts.contains("48h"), "{parts}");
}

#[test]
fn what_cannot_be_known_is_said() {
    insta::assert_snapshot!(reported(Policy::default(), &json!({"resourcePolicy": {"kind": "configmap", "name": "x"}}), Source::Unreadable), @r"
    backup daily in namespace shop: unknown: the policy could not be checked; it would pass if nothing is set there
      FIELD                BECOMES                                       BY
      excludedResources    cloudstorages.oadp.openshift.io and NN more   nacre, always
      includedNamespaces   shop                                          nacre, always

    policy: unknown; this is what holds if the administrators have set nothing
    not checked: the administrators' policy: you are not permitted to read it
    not checked: whether the ConfigMap x is one the administrators let you use
    ");
}

/// Why is nothing happening? The reason is the planner's own.
#[test]
fn what_nacre_does_now_is_shown_with_its_reason() {
    let answer = |policy: Policy, status: &Value, source| {
        let mut object = backup(&json!({}));
        object.metadata.namespace = Some("shop".to_owned());
        object.metadata.uid = Some("1".to_owned());
        object.status = serde_json::from_value(status.clone()).unwrap();
        let manifest = Manifest::Backup(Box::new(object));
        let world = shop(policy);
        let now = doing(&world, &manifest, source);
        Explanation {
            reported: manifest.reported(),
            now,
            ..explain(&world, &manifest, source).checked_by(None)
        }
    };
    let first_lines = |answer: &Explanation| page(answer).lines().take(2).collect::<Vec<_>>().join("\n");
    let running = answer(Policy::default(), &at_velero(&json!({"phase": "InProgress"})), Source::Unreadable);
    insta::assert_snapshot!(first_lines(&running), @r"
    backup daily in namespace shop: InProgress - Velero has started
      now: Velero works on it: its status is shown
    ");
    let new = answer(Policy::default(), &json!({}), Source::Cluster);
    insta::assert_snapshot!(first_lines(&new), @r"
    backup daily in namespace shop: would pass
      now: it passed every check, and it is its turn: Velero is given the backup
    ");
    // Whether it passes is for the policy to say, which cannot be read.
    assert_eq!(answer(Policy::default(), &json!({}), Source::Unreadable).now, None);
    // What the status shows is not repeated.
    let mut policy = Policy::default();
    policy.backup.max_per_namespace = Some(0);
    let message = "metadata.namespace: this namespace has as many backups as it may have, which is 0; delete one to make room";
    let full = answer(policy, &refused("NamespaceLimitReached", message), Source::Cluster);
    assert_eq!(full.now.as_deref(), Some(message));
    assert!(!page(&full).contains("\n  now: "), "{}", page(&full));
}

/// How the data of each claim is saved, and by whose choice.
#[test]
fn the_method_is_shown_for_each_claim() {
    let shown = |node_agent_runs: bool, spec: &Value| {
        let claim = |name: &str, volume: Option<&str>| {
            let claim = json!({"metadata": {"name": name}, "spec": {"volumeName": volume}});
            Arc::new(serde_json::from_value::<Claim>(claim).unwrap())
        };
        let claims = Some(vec![claim("data", Some("pv")), claim("new", None)]);
        let volumes = VolumeFacts { claims, node_agent_runs, ..VolumeFacts::default() };
        let world = World { volumes, ..shop(Policy::default()) };
        let manifest = Manifest::Backup(Box::new(backup(spec)));
        page(&explain(&world, &manifest, Source::Cluster).checked_by(None))
    };
    insta::assert_snapshot!(shown(true, &json!({})), @r#"
    backup daily in namespace shop: would pass
      FIELD                      BECOMES                                       BY
      defaultVolumesToFsBackup   true                                          nacre, since the request says nothing about volumes
      excludedResources          cloudstorages.oadp.openshift.io and NN more   nacre, always
      includedNamespaces         shop                                          nacre, always
      volume data of claim "data": file by file, if a running pod mounts it: the request says nothing about volumes, and Velero's node agent runs
      volume data of claim "new": nothing to save: it has no volume yet

    policy: the cluster's, as it is now
    "#);
    insta::assert_snapshot!(shown(false, &json!({})), @r#"
    backup daily in namespace shop: would pass
      FIELD                BECOMES                                       BY
      excludedResources    cloudstorages.oadp.openshift.io and NN more   nacre, always
      includedNamespaces   shop                                          nacre, always
      volume data of claim "data": NOT saved, unless the cluster takes a snapshot of it, since Velero's node agent does not run
      volume data of claim "new": nothing to save: it has no volume yet

    policy: the cluster's, as it is now
    "#);
    insta::assert_snapshot!(shown(true, &json!({"snapshotVolumes": true})), @r#"
    backup daily in namespace shop: would pass
      FIELD                BECOMES                                       BY
      excludedResources    cloudstorages.oadp.openshift.io and NN more   nacre, always
      includedNamespaces   shop                                          nacre, always
      volume data of claim "data": as the request, or the administrators' policy, says about volumes
      volume data of claim "new": nothing to save: it has no volume yet

    policy: the cluster's, as it is now
    "#);
}
