//! nacre on OADP: with OADP's own role the record of the leader is in a Secret, and with the one command that `doctor`
//! prints every story works, on the Kubernetes of OADP's clusters too.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::velero::Backup;
use api::{DataProtectionApplication, NonAdminBackup, NonAdminRestore, NonAdminSchedule, condition, labels};
use bed::{Bed, eventually};
use e2e::two_replicas::{BRISK, created, leads, only_holders_act};
use e2e::{OADP, TestCluster, VELERO, before_1_36, oadp_controller};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::imported::forget_looks;
use super::requester::operator;
use super::requester_webhook::{FORGED, is_of};

const TIMEOUT: Duration = Duration::from_mins(3);

/// Who holds the Lease, and whether there is a Secret in its place.
async fn records(test_cluster: &TestCluster) -> Result<(Option<String>, bool)> {
    let client = test_cluster.bed.client().await?;
    let lease = Api::<Lease>::namespaced(client.clone(), "kube-system").get_opt("nacre").await?;
    let secret = Api::<Secret>::namespaced(client, test_cluster.velero()).get_opt("nacre-lease").await?;
    Ok((lease.and_then(|lease| lease.spec?.holder_identity), secret.is_some()))
}

#[tokio::test(flavor = "multi_thread")]
async fn under_oadps_role_one_of_two_replicas_acts_and_both_move_to_the_lease_once_they_may() -> Result<()> {
    let test_cluster = TestCluster::build_as_oadp().await?;
    test_cluster.configure_oadp(json!({})).await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let mark = test_cluster.bed.audit().mark().await?;
    let first = test_cluster.launch("first", VELERO, &test_cluster.account_of(VELERO).await?, &BRISK)?;
    leads(&first, true).await?;
    let second = test_cluster.launch("second", VELERO, &test_cluster.account_of(VELERO).await?, &BRISK)?;
    second.until_ready().await?;
    let names_it = async || {
        let details = second.details().await?;
        ensure!(details.contains("standby: velero/first_"), "{details}");
        anyhow::Ok(())
    };
    eventually("the second to say who leads", TIMEOUT, names_it).await?;
    shop.back_up("before").await?;
    created(&shop, "before").await?;
    ensure!(records(&test_cluster).await? == (None, true), "by the Secret");

    // kill -9: the other waits until the record has run out.
    first.process.kill().await?;
    shop.back_up("after").await?;
    created(&shop, "after").await?;
    leads(&second, true).await?;
    let third = test_cluster.launch("third", VELERO, &test_cluster.account_of(VELERO).await?, &BRISK)?;
    third.until_ready().await?;
    only_holders_act(&test_cluster.bed.audit().since(mark).await?)?;

    // An administrator gives it more: whoever leads goes on, by the Lease.
    test_cluster.apply_parts("oadp").await?;
    let moved = async || {
        let records = records(&test_cluster).await?;
        let by_lease = records.0.as_deref().is_some_and(|holder| holder.starts_with("velero/second_"));
        ensure!(by_lease && !records.1, "{records:?}: {}", second.details().await?);
        anyhow::Ok(())
    };
    eventually("the leader to go by the Lease", TIMEOUT, moved).await?;
    leads(&second, true).await?;
    leads(&third, false).await?;
    ensure!(second.process.terminate(TIMEOUT).await? == Some(0), "it ends in peace");
    leads(&third, true).await?;
    shop.back_up("later").await?;
    created(&shop, "later").await?;
    only_holders_act(&test_cluster.bed.audit().since(mark).await?)
}

/// As OADP's operator makes it. There are no nodes: nacre runs outside the cluster.
async fn deployment(test_cluster: &TestCluster) -> Result<()> {
    let dpa = test_cluster.admin::<DataProtectionApplication>().await?.get("dpa").await?;
    test_cluster.bed.apply(&[oadp_controller(&dpa, "registry.example/nacre:1")?]).await?;
    let pods = json!({"status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}});
    let deployments = test_cluster.admin::<Deployment>().await?;
    deployments.patch_status("non-admin-controller", &PatchParams::default(), &Patch::Merge(pods)).await?;
    Ok(())
}

/// What `doctor` finds, by an administrator.
async fn doctor(test_cluster: &TestCluster) -> Result<Vec<Value>> {
    let output = tokio::process::Command::new(e2e::command_line()?)
        .args(["doctor", "-o", "json", "-n", OADP])
        .env("KUBECONFIG", test_cluster.bed.kubeconfig())
        .kill_on_drop(true)
        .output()
        .await?;
    let diagnosis: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    Ok(diagnosis["findings"].as_array().cloned().unwrap_or_default())
}

fn says(findings: &[Value], verdict: &str, message: &str) -> bool {
    let is_it = |one: &Value| {
        one["verdict"] == verdict && one["message"].as_str().is_some_and(|text| text.contains(message))
    };
    findings.iter().any(is_it)
}

/// Every fix is this one command. What OADP's own CRDs cost is a note: they are OADP's to upgrade.
async fn apply_what_doctor_prints(test_cluster: &TestCluster, parts: &str) -> Result<()> {
    let findings = doctor(test_cluster).await?;
    let fixes: Vec<_> = findings.iter().filter_map(|one| one["fix"].as_str()).collect();
    let command = format!("kubectl nacre render --only {parts} -n {OADP} | kubectl apply --server-side -f -");
    ensure!(fixes.contains(&command.as_str()), "{fixes:#?}");
    let others = fixes.iter().filter(|fix| fix.contains("kubectl apply") && **fix != command);
    ensure!(others.count() == 0, "one command is enough: {fixes:#?}");
    for lost in ["the state of each claim", "start times", "logs of backups", "columns Data-Protected"] {
        ensure!(says(&findings, "note", lost), "{lost}: {findings:#?}");
    }
    test_cluster.apply_parts(parts).await?;
    test_cluster.until_policies_are_in_force().await
}

/// With what it printed, doctor finds nothing missing, and that it is recorded who asks.
async fn is_satisfied(test_cluster: &TestCluster, (verdict, recorder): (&str, &str)) -> Result<Vec<Value>> {
    let findings = doctor(test_cluster).await?;
    ensure!(says(&findings, "ok", "has every permission that nacre uses"), "{findings:#?}");
    ensure!(says(&findings, "ok", "openshift-adp/nacre_"), "{findings:#?}");
    ensure!(says(&findings, verdict, recorder), "{findings:#?}");
    let printed =
        findings.iter().any(|one| one["fix"].as_str().is_some_and(|fix| fix.contains("nacre render")));
    ensure!(!printed, "{findings:#?}");
    // Of what OLM makes, only what viewers can read is a problem.
    let of_olm: Vec<_> =
        findings.iter().filter(|one| one["area"] == "rights" && one["verdict"] == "problem").collect();
    ensure!(
        of_olm.len() == 1 && says(&findings, "problem", "viewers can read download links"),
        "{findings:#?}"
    );
    Ok(findings)
}

/// OLM gives viewers the links to all that was backed up, and puts its roles back. What `doctor` prints outlasts that and a
/// restart of the API server, which puts back Kubernetes' own roles.
#[tokio::test(flavor = "multi_thread")]
async fn h6_viewers_lose_the_links_that_olm_gives_them_for_good() -> Result<()> {
    let bed = Bed::builder().with_idle_velero().velero_namespace(OADP);
    let test_cluster = TestCluster::build_as_oadp_on(bed).await?;
    test_cluster.configure_oadp(json!({"requireApprovalForBSL": true})).await?;
    deployment(&test_cluster).await?;
    test_cluster.apply_parts("oadp").await?;
    let bed = &test_cluster.bed;
    bed.namespace("shop").await?;
    bed.bind("shop", "vic", "view").await?;
    bed.bind("shop", "ed", "edit").await?;
    let kinds = [("oadp.openshift.io", "nonadmindownloadrequests"), ("velero.io", "downloadrequests")];
    for (group, kind) in kinds {
        bed.wait_allowed("vic", "shop", "get", group, kind).await?;
    }
    let rights = async || -> Result<Vec<Value>> {
        let mut found = doctor(&test_cluster).await?;
        found.retain(|one| one["area"] == "rights" && one["verdict"] == "problem");
        Ok(found)
    };
    let [problem] = &rights().await?[..] else { anyhow::bail!("{:#?}", rights().await?) };
    let fix = problem["fix"].as_str().unwrap_or_default();
    // As a shell would read it.
    let (words, patch) = fix.split_once(" -p ").with_context(|| fix.to_owned())?;
    let words: Vec<&str> = words.split(' ').skip(1).chain(["-p", patch.trim_matches('\'')]).collect();
    bed.kubectl(&words).await?.ok()?;

    let without_links = async || {
        for (group, kind) in kinds {
            for verb in ["get", "list", "watch"] {
                ensure!(!bed.allowed("vic", "shop", verb, group, kind).await?, "vic may {verb} {kind}");
            }
        }
        let found = rights().await?;
        ensure!(found.is_empty(), "{found:#?}");
        anyhow::Ok(())
    };
    eventually("viewers to be without links", TIMEOUT, without_links).await?;
    test_cluster.olm_writes_its_roles().await?;
    bed.restart_api_server().await?;
    // Aggregation works again: a new role for viewers counts.
    let label = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    let more = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "later", "labels": label},
        "rules": [{"apiGroups": ["example.test"], "resources": ["pearls"], "verbs": ["get"]}]});
    bed.apply(&[serde_json::from_value(more)?]).await?;
    bed.wait_allowed("vic", "shop", "get", "example.test", "pearls").await?;
    without_links().await?;
    ensure!(bed.allowed("vic", "shop", "get", "oadp.openshift.io", "nonadminbackups").await?);
    ensure!(bed.allowed("ed", "shop", "get", "oadp.openshift.io", "nonadmindownloadrequests").await?);
    Ok(())
}

/// OADP's clusters are older than Kubernetes 1.36, and the API server does not record who asks.
#[tokio::test(flavor = "multi_thread")]
async fn before_1_36_the_webhook_records_who_asks_with_the_extra_role() -> Result<()> {
    let bed = before_1_36(Bed::builder().with_idle_velero().velero_namespace(OADP));
    let test_cluster = TestCluster::build_as_oadp_on(bed).await?;
    test_cluster.configure_oadp(json!({"requireApprovalForBSL": true})).await?;
    deployment(&test_cluster).await?;
    apply_what_doctor_prints(&test_cluster, "oadp,admission,requester-webhook").await?;
    test_cluster.set_policy("requester: { unrecorded: enforce }\n").await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let (nacre, _) = test_cluster.start_answering(&shop, &[]).await?;
    test_cluster.until_recorded().await?;

    let forged =
        json!({"metadata": {"annotations": {labels::REQUESTER: FORGED}}, "spec": {"backupSpec": {}}});
    is_of(&shop.create::<NonAdminBackup>("daily", forged).await?, "ada")?;
    let named = shop.backup_starts("daily").await?;
    let velero = test_cluster.admin::<Backup>().await?.get(&named).await?;
    ensure!(velero.annotations().get(labels::REQUESTER).is_some_and(|who| who == "ada"), "{velero:?}");
    let details = nacre.details().await?;
    ensure!(!details.contains("forbidden"), "{details}");

    test_cluster.ask_at_service().await?;
    let findings = is_satisfied(&test_cluster, ("note", "nacre's webhook records who asks")).await?;
    let is_fine = |one: &Value| one["verdict"] == "ok" || one["verdict"] == "note";
    let of_admission = findings.iter().filter(|one| one["area"] == "admission");
    ensure!(of_admission.into_iter().all(is_fine), "{findings:#?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_extra_role_every_story_works() -> Result<()> {
    let bed = Bed::builder().with_velero().velero_namespace(OADP);
    let test_cluster = TestCluster::build_as_oadp_on(bed).await?;
    test_cluster.configure_oadp(json!({"requireApprovalForBSL": true})).await?;
    deployment(&test_cluster).await?;
    apply_what_doctor_prints(&test_cluster, "oadp,admission,requester").await?;
    test_cluster.until_recorded().await?;
    test_cluster.set_policy("schedules: {spread: 0}\n").await?;
    let nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    shop.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
    let spec = json!({"schedule": "* * * * *", "retention": {"keepLast": 1}, "template": {"backupSpec": {}}});
    shop.create::<NonAdminSchedule>("often", json!({ "spec": spec })).await?;

    // A restore from storage of one's own, which an administrator approves.
    shop.keep_keys("keys", &test_cluster.bed.store()?.credentials()).await?;
    shop.bring_bucket("bucket", "shop-bucket", "keys").await?;
    let asked = shop.approval_pending("bucket").await?;
    test_cluster.decide(&asked, "approve").await?;
    shop.location_available("bucket").await?;
    let own = json!({"spec": {"backupSpec": {"storageLocation": "bucket"}}});
    shop.create::<NonAdminBackup>("own", own).await?;
    ensure!(shop.backup_ends("own").await? == "Completed");
    shop.delete::<ConfigMap>("prices").await?;
    shop.gone::<ConfigMap>("prices").await?;
    shop.restore("back", "own").await?;
    ensure!(shop.restore_ends("back").await? == "Completed");
    shop.api::<ConfigMap>().get("prices").await?;

    // Who asked is recorded and checked.
    let named = shop.backup_starts("own").await?;
    let velero = test_cluster.admin::<Backup>().await?.get(&named).await?;
    ensure!(velero.annotations().get(labels::REQUESTER).is_some_and(|who| who == "ada"), "{velero:?}");
    let eve = operator(&test_cluster, "shop", "eve").await?;
    eve.restore("hers", "own").await?;
    let permitted = eve
        .wait("the check of permissions", "hers", |restore: Option<&NonAdminRestore>| {
            condition::get(&restore?.status.as_ref()?.conditions, condition::REQUESTER_PERMITTED).cloned()
        })
        .await?;
    ensure!(permitted.message.contains("\"eve\""), "{permitted:?}");

    // Events and the schedule.
    let events = Api::<Event>::namespaced(test_cluster.bed.client().await?, "shop");
    let seen = async || {
        let found = events.list(&ListParams::default()).await?.items;
        let ours = found
            .iter()
            .filter(|event| event.regarding.as_ref().and_then(|about| about.name.as_deref()) == Some("own"));
        ensure!(ours.count() > 0, "{} Events, and none about the backup", found.len());
        let schedule = shop.api::<NonAdminSchedule>().get("often").await?.status.unwrap_or_default();
        ensure!(schedule.last_good_backup.is_some(), "{schedule:?}");
        anyhow::Ok(())
    };
    eventually("Events and a run of the schedule", TIMEOUT, seen).await?;

    // The lease is held, and nothing is missing.
    let (holder, secret) = records(&test_cluster).await?;
    ensure!(
        holder.is_some_and(|holder| holder.starts_with("openshift-adp/nacre_")) && !secret,
        "the Lease is not held"
    );
    let details = nacre.details().await?;
    let body = details.split("\r\n\r\n").nth(1).unwrap_or_default();
    // What OADP's CRDs do not know is no matter of permissions.
    let of_crds =
        |line: &str| line.starts_with("nonadminbackups are shown without some of Velero's status fields");
    let lines: Vec<_> = body.lines().filter(|line| !line.trim().is_empty() && !of_crds(line)).collect();
    ensure!(lines == ["ok", "leader: this process holds the lease"], "{details}");
    is_satisfied(&test_cluster, ("ok", "mutating admission policies are there and current")).await?;

    // The backup is lost and its data is not: it comes back from the tenant's storage.
    shop.delete::<NonAdminBackup>("own").await?;
    shop.gone::<NonAdminBackup>("own").await?;
    test_cluster.gone_from_velero::<Backup>(&named).await?;
    test_cluster.bed.velero_stop()?;
    forget_looks(&test_cluster.bed).await?;
    test_cluster.bed.velero_start().await?;
    ensure!(shop.backup_ends("own").await? == "Completed");
    ensure!(shop.backup_starts("own").await? == named, "it is the one that was there");
    Ok(())
}
