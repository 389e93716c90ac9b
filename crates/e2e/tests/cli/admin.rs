//! An administrator's tasks with the CLI alone: requests for storage, the policy, backups of re-created namespaces.

use anyhow::{Context as _, Result};
use api::{
    NonAdminBackup, NonAdminBackupStorageLocation, condition, labels,
    velero::{Backup, BackupStorageLocation},
};
use e2e::{TestCluster, VELERO};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{Api, ResourceExt as _, api::PostParams};
use serde_json::{Value, json};

use crate::{
    person::Person,
    program::{Ended, nacre},
    terminal::Terminal,
    test_cluster,
};

async fn admin(test_cluster: &TestCluster, arguments: &[&str]) -> Result<Ended> {
    nacre(&test_cluster.bed.kubeconfig(), arguments).await
}

async fn says(test_cluster: &TestCluster, arguments: &[&str]) -> Result<String> {
    admin(test_cluster, arguments).await?.with(0)
}

/// Brings a bucket and waits until an administrator is asked about it.
async fn asks(person: &Person<'_>, bucket: &str) -> Result<()> {
    person.tenant.keep_keys("keys", &person.tenant.bed.store()?.credentials()).await?;
    person.tenant.bring_bucket("mine", bucket, "keys").await?;
    person
        .tenant
        .location_is("an administrator to be asked", "mine", |status| {
            let approved = condition::get(&status.conditions, condition::CLUSTER_ADMIN_APPROVED);
            approved.is_some_and(|approved| approved.reason == condition::BSL_SPEC_APPROVAL_PENDING)
        })
        .await?;
    Ok(())
}

async fn shown(test_cluster: &TestCluster, name: &str) -> Result<Value> {
    admin(test_cluster, &["request", "show", name, "-o", "json"]).await?.json(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_looked_at_and_decided_by_name() -> Result<()> {
    let test_cluster = test_cluster().await?;
    let (ann, ben) =
        tokio::try_join!(Person::new(test_cluster, "asks", "ann"), Person::new(test_cluster, "begs", "ben"))?;
    tokio::try_join!(asks(&ann, "asks-first"), asks(&ben, "begs-bucket"))?;

    // Who asks for what; tenants do not get to see it.
    let table = says(test_cluster, &["request", "list", "--state", "pending"]).await?;
    let line = table.lines().find(|line| line.starts_with("asks ")).context("a line")?;
    let cells: Vec<&str> = line.split_whitespace().collect();
    let url = test_cluster.bed.store()?.url();
    assert_eq!(cells[..7], ["asks", "mine", "Pending", url, "asks-first", "asks", "-"], "{table}");
    let ended = ann.nacre(&["request", "list"]).await?;
    assert!(ended.code == Some(1) && ended.stderr.contains("forbidden"), "{ended:#?}");

    // A user who may only decide cannot see whether a location was changed, and the output says so.
    test_cluster.bed.apply_yaml(APPROVER).await?;
    test_cluster
        .bed
        .wait_allowed("apt", "velero", "patch", "oadp.openshift.io", "nonadminbackupstoragelocationrequests")
        .await?;
    let apt = ["--as", "apt", "--as-group", "system:authenticated"];
    let ended = admin(test_cluster, &[&["request", "list", "-n", "begs"], &apt[..]].concat()).await?;
    assert!(ended.stderr.contains("not for you to read"), "{ended:#?}");
    let table = ended.with(0)?;
    assert!(
        table.lines().count() == 2 && table.lines().nth(1).is_some_and(|line| line.contains(" ? ")),
        "{table}"
    );

    // A name that fits several lists them, and does nothing.
    for verb in ["approve", "reject", "revoke", "show"] {
        let ended = admin(test_cluster, &["request", verb, "mine"]).await?;
        assert_eq!(ended.code, Some(1), "{ended:#?}");
        for words in [
            "matches several requests, and nothing was changed",
            "asks/mine   asks-mine-",
            "begs/mine   begs-mine-",
        ] {
            assert!(ended.stderr.contains(words), "{words}: {ended:#?}");
        }
    }
    let ended = admin(test_cluster, &["request", "approve", "asks/mine", "begs/yours"]).await?;
    assert!(ended.code == Some(1) && ended.stderr.contains("no request fits"), "{ended:#?}");
    for name in ["asks/mine", "begs/mine"] {
        assert_eq!(shown(test_cluster, name).await?["decision"], "pending", "one bad name spoils all");
    }

    // What was shown is what is approved: ann exchanges the bucket under the administrator's hands.
    let seen = shown(test_cluster, "asks/mine").await?;
    let version = seen["resourceVersion"].as_str().context("a version")?;
    let page = says(test_cluster, &["request", "show", "asks/mine"]).await?;
    for words in [
        "Velero may read and write http://",
        "bucket asks-first, under asks",
        "can read all Secrets that Velero can read",
        "not encrypted",
        version,
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    ann.says(&["location", "delete", "mine", "--yes", "--wait"]).await?;
    asks(&ann, "asks-second").await?;
    let ended =
        admin(test_cluster, &["request", "approve", "asks/mine", "--resource-version", version]).await?;
    assert!(ended.code == Some(1) && ended.stderr.contains("has changed since it was shown"), "{ended:#?}");
    let seen = shown(test_cluster, "asks/mine").await?;
    assert_eq!((&seen["decision"], &seen["bucket"]), (&json!("pending"), &json!("asks-second")));

    // Approved by the request's own name, and waited for.
    let own = seen["request"].as_str().context("a name")?;
    let ended = admin(
        test_cluster,
        &["request", "approve", own, "--wait", "--timeout", "2m", "--reason", "ticket 7"],
    )
    .await?;
    assert!(ended.stderr.contains("ready: Velero can use it"), "{ended:#?}");
    assert!(ended.stderr.contains("can read all Secrets that Velero can read"), "{ended:#?}");
    assert!(ended.with(0)?.starts_with("asks/mine approved: http://"));
    assert!(says(test_cluster, &["request", "approve", "asks/mine"]).await?.contains("is approved already"));
    let seen = shown(test_cluster, "asks/mine").await?;
    assert_eq!((&seen["state"], &seen["reason"]), (&json!("Approved"), &json!("ticket 7")));
    assert_eq!(seen["decided"]["with"], "kubectl-nacre");

    // What the location says now is compared with what was approved.
    let other = json!({"spec": {"backupStorageLocationSpec": {"objectStorage": {"bucket": "asks-first"}}}});
    ann.tenant.edit::<NonAdminBackupStorageLocation>("mine", other).await?;
    let table = says(test_cluster, &["request", "list", "-n", "asks"]).await?;
    assert!(table.contains("objectStorage.bucket"), "{table}");
    let page = says(test_cluster, &["request", "show", "asks/mine"]).await?;
    assert!(page.contains("objectStorage.bucket   asks-second   asks-first"), "{page}");
    let back = json!({"spec": {"backupStorageLocationSpec": {"objectStorage": {"bucket": "asks-second"}}}});
    ann.tenant.edit::<NonAdminBackupStorageLocation>("mine", back).await?;
    ann.tenant.location_available("mine").await?;

    // Taken back: Velero loses it. Rejected: its owner reads why.
    says(test_cluster, &["request", "revoke", "asks/mine", "--wait", "--timeout", "2m"]).await?;
    test_cluster.gone_from_velero::<BackupStorageLocation>(own).await?;
    let ended = admin(test_cluster, &["request", "revoke", "begs/mine"]).await?;
    assert!(ended.code == Some(1) && ended.stderr.contains("nothing to take back"), "{ended:#?}");
    let reject = ["request", "reject", "begs/mine", "--reason", "that bucket is public"];
    says(test_cluster, &[&reject[..], &apt[..]].concat()).await?;
    says(test_cluster, &["request", "reject", "begs/mine", "--wait", "--timeout", "2m"]).await?;
    let reported = "an administrator has rejected the location: that bucket is public";
    let ended = ben.nacre(&["location", "wait", "mine"]).await?;
    assert!(ended.code == Some(1) && ended.stdout.contains(reported), "{ended:#?}");
    assert!(ben.says(&["location", "describe", "mine"]).await?.contains(reported));
    let names =
        says(test_cluster, &["request", "list", "--state", "rejected", "-n", "begs", "-o", "name"]).await?;
    assert!(
        names.starts_with("nonadminbackupstoragelocationrequest.oadp.openshift.io/begs-mine-"),
        "{names}"
    );
    Ok(())
}

/// Somebody who may decide, and nothing else.
const APPROVER: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: approver }
rules:
  - apiGroups: [oadp.openshift.io]
    resources: [nonadminbackupstoragelocationrequests]
    verbs: [get, list, update, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: approver }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: approver }
subjects: [{ apiGroup: rbac.authorization.k8s.io, kind: User, name: apt }]
";

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_is_shown_with_who_says_what_and_checked_before_it_counts() -> Result<()> {
    let test_cluster = test_cluster().await?;
    let page = says(test_cluster, &["policy", "show"]).await?;
    for words in [
        "storageLocations.endpoints.allow",
        "127.0.0.1",
        "nacre-policy 2:",
        "default",
        "Differing in namespaces with kubernetes.io/metadata.name=strict (overrides[0])",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let liv = Person::new(test_cluster, "asks-not", "liv").await?;
    test_cluster.bed.namespace("strict").await?;
    let page = says(test_cluster, &["policy", "show", "-n", "strict"]).await?;
    assert!(page.starts_with("In namespace strict, by overrides[0]:"), "{page}");
    let answer = admin(test_cluster, &["policy", "show", "-n", "asks-not", "-o", "json"]).await?.json(0)?;
    assert_eq!(answer["policy"]["storageLocations"]["requireApproval"], false, "{answer:#}");
    let answer = admin(test_cluster, &["policy", "show", "-n", "first", "-o", "json"]).await?.json(0)?;
    assert_eq!((&answer["open"], &answer["override"]), (&json!(true), &Value::Null));
    let ended = admin(test_cluster, &["policy", "show", "-n", "nowhere"]).await?;
    assert!(
        ended.code == Some(1) && ended.stderr.contains("there is no namespace \"nowhere\""),
        "{ended:#?}"
    );
    let ended = liv.nacre(&["policy", "show"]).await?;
    assert!(ended.code == Some(1) && ended.stderr.contains("you may not read"), "{ended:#?}");

    // Where nobody has to approve, nacre approves; taking that back would mean nothing, and is not done.
    liv.tenant.keep_keys("keys", &test_cluster.bed.store()?.credentials()).await?;
    liv.tenant.bring_bucket("own", "asks-not", "keys").await?;
    liv.tenant.location_available("own").await?;
    let ended = admin(test_cluster, &["request", "revoke", "own", "-n", "asks-not"]).await?;
    assert!(
        ended.code == Some(1) && ended.stderr.contains("reject it instead; nothing was done"),
        "{ended:#?}"
    );
    let ended = admin(test_cluster, &["request", "reject", "own", "-n", "asks-not", "--wait"]).await?;
    assert!(ended.with(0)?.contains("asks-not/own rejected"));

    // What holds now passes the check; with a mistake in it, it does not, and the field is named.
    let map = test_cluster
        .bed
        .kubectl(&["get", "configmap", "nacre-policy", "-n", "velero", "-o", "yaml"])
        .await?
        .ok()?;
    let file = test_cluster.bed.folder().join("policy-map.yaml");
    let path = file.display().to_string();
    std::fs::write(&file, &map)?;
    assert!(
        says(test_cluster, &["policy", "check", "-f", &path]).await?.contains("ConfigMap nacre-policy: fine")
    );
    std::fs::write(&file, map.replace("requireApproval", "requiresApproval"))?;
    let ended = admin(test_cluster, &["policy", "check", "-f", &path]).await?;
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    assert!(
        ended.stdout.contains("overrides[1].storageLocations.requiresApproval: there is no such field"),
        "{ended:#?}"
    );
    Ok(())
}

/// A backup of a namespace that is gone, as Velero would have found it in the cluster's storage.
async fn leave_backup(test_cluster: &TestCluster, namespace: &str, name: &str) -> Result<()> {
    let uid = "5f0c7a4e-1d55-4b3f-9b52-0d6b1c7d2a11";
    let own = format!("{namespace}-{name}-{uid}");
    let body = json!({
        "apiVersion": "velero.io/v1", "kind": "Backup",
        "metadata": {"name": own, "labels": {"openshift.io/oadp": "True",
            "app.kubernetes.io/managed-by": "oadp-nac-controller", "openshift.io/oadp-nab-origin-nacuuid": own},
            "annotations": {"openshift.io/oadp-nab-origin-namespace": namespace, "openshift.io/oadp-nab-origin-name": name,
                "nacre.dev/origin-namespace-uid": "00000000-0000-4000-8000-000000000001"}},
        "spec": {"storageLocation": "default", "includedNamespaces": [namespace]},
        "status": {"phase": "Completed", "completionTimestamp": "2026-11-15T12:00:00Z"},
    });
    test_cluster
        .admin::<Backup>()
        .await?
        .create(&PostParams::default(), &serde_json::from_value(body)?)
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn backups_of_a_namespace_made_anew_are_handed_over_and_held_back_again() -> Result<()> {
    let test_cluster = test_cluster().await?;
    let ida = Person::new(test_cluster, "heir", "ida").await?;
    leave_backup(test_cluster, "heir", "daily").await?;
    let adoptions = test_cluster.admin::<ConfigMap>().await?;
    let recorded = async || -> Result<Option<String>> {
        let map = adoptions.get_opt("nacre-adoptions").await?;
        Ok(map.and_then(|map| map.data?.get("heir").cloned()))
    };

    let row = |table: &str| table.lines().find(|line| line.starts_with("heir ")).map(str::to_owned);
    let table = says(test_cluster, &["adopt", "--list"]).await?;
    assert!(row(&table).is_some_and(|row| row.contains("held back") && row.contains(" 1 ")), "{table}");

    // Where nothing was found, it says when to look again.
    let ended = admin(test_cluster, &["adopt", "--list", "--velero-namespace", "nowhere"]).await?;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""));
    assert_eq!(
        ended.stderr,
        "Nothing is held back, and nothing was adopted. Backups of a namespace that was deleted just now are found \
         within two minutes: look again then.\n"
    );

    // Not for a namespace that is not there, not for a tenant, not without a yes, not in a rehearsal.
    let ended = admin(test_cluster, &["adopt", "nowhere", "--yes"]).await?;
    assert!(
        ended.code == Some(1) && ended.stderr.contains("there is no namespace \"nowhere\""),
        "{ended:#?}"
    );
    assert_eq!(ida.nacre(&["adopt", "heir", "--yes"]).await?.code, Some(1));
    let ended = admin(test_cluster, &["adopt", "heir"]).await?;
    assert!(ended.code == Some(1) && ended.stderr.contains("use --yes"), "{ended:#?}");
    assert!(ended.stdout.contains("daily    Completed"), "what it is about is shown first: {ended:#?}");
    assert!(
        says(test_cluster, &["adopt", "heir", "--dry-run"])
            .await?
            .contains("1 backup would be given to namespace heir")
    );
    let mut terminal = Terminal::start(&test_cluster.bed.kubeconfig(), &["adopt", "heir"])?;
    terminal.shows("Give 1 backup of an earlier namespace heir to its current owners").await?;
    terminal.types("n\n")?;
    terminal.shows("nothing was adopted").await?;
    assert_eq!(terminal.ends().await?, 1);
    assert_eq!(recorded().await?, None);
    assert!(ida.tenant.api::<NonAdminBackup>().get_opt("daily").await?.is_none());

    // Handed over: the owner has it, and whoever asks again changes nothing.
    assert!(
        says(test_cluster, &["adopt", "heir", "--yes"]).await?.contains("1 backup given to namespace heir")
    );
    let spaces: Api<Namespace> = Api::all(test_cluster.bed.client().await?);
    assert_eq!(recorded().await?, spaces.get("heir").await?.metadata.uid);
    let given = ida
        .tenant
        .wait("the backup to be there", "daily", |backup: Option<&NonAdminBackup>| backup.cloned())
        .await?;
    assert!(says(test_cluster, &["adopt", "heir", "--yes"]).await?.contains("already"));
    // It carries the name of who adopted it, and nobody can write another one.
    let whoami = ["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"];
    let user = test_cluster.bed.kubectl(&whoami).await?.ok()?;
    let record = given.annotations().get(labels::REQUESTER).cloned().unwrap_or_default();
    assert!(record.starts_with(&format!(r#"{{"user":"{user}""#)), "{record}");
    let table = says(test_cluster, &["adopt", "--list"]).await?;
    assert!(row(&table).is_some_and(|row| row.contains("adopted") && row.ends_with(&user)), "{table}");
    let forged = r#"{"data":{"heir.requester":"somebody"}}"#;
    let forge = ["patch", "configmap", "nacre-adoptions", "-n", VELERO, "--type=merge", "-p", forged];
    let refused = test_cluster.bed.kubectl(&forge).await?;
    assert!(!refused.success && refused.stderr.contains("nacre-adoptions"), "{refused:#?}");
    let renewed =
        [&forge[..7], &[r#"{"data":{"heir":"another"}}"#, "--as=mallory", "--as-group=system:masters"]]
            .concat();
    let refused = test_cluster.bed.kubectl(&renewed).await?;
    assert!(!refused.success && refused.stderr.contains("nacre-adoptions"), "{refused:#?}");

    // Taken back: what comes later is held back, what is there stays.
    says(test_cluster, &["adopt", "heir", "--remove"]).await?;
    assert_eq!(recorded().await?, None);
    assert_eq!(admin(test_cluster, &["adopt", "heir", "--remove"]).await?.code, Some(1));
    assert!(ida.tenant.api::<NonAdminBackup>().get_opt("daily").await?.is_some());
    assert_eq!(
        row(&says(test_cluster, &["adopt", "--list"]).await?),
        None,
        "nothing is held back, and nothing handed over"
    );
    Ok(())
}
