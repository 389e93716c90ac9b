//! `restore create --replace` on a real API server. The story plays nacre and Velero, so that the program can be killed
//! at every step.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Result, ensure};
use api::{NonAdminBackup, NonAdminRestore};
use bed::wait_until;
use e2e::Tenant;
use e2e::played::{bring_back, complete, condition, play, refuse_downloads, restore_of, safety_backup, shop};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, PersistentVolumeClaim, Pod},
};
use kube::api::ListParams;
use serde_json::json;
use tokio::process::{Child, Command};

use crate::{person::Person, stage};

const TIMEOUT: Duration = Duration::from_mins(2);

const REPLACE: [&str; 6] = ["restore", "create", "--from-backup", "good", "--replace", "--yes"];

/// Starts the program; it is killed when it is dropped.
fn start(ada: &Person<'_>) -> Result<Child> {
    let program = Command::new(e2e::command_line()?)
        .args(REPLACE)
        .env("KUBECONFIG", &ada.kubeconfig)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    Ok(program)
}

async fn kill(mut program: Child) -> Result<()> {
    ensure!(program.try_wait()?.is_none(), "it ended before it was killed");
    Ok(program.kill().await?)
}

async fn there<K>(tenant: &Tenant<'_>, name: &str) -> Result<bool>
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    Ok(tenant.api::<K>().get_opt(name).await?.is_some())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replacement_that_is_killed_at_every_step_is_resumed_by_the_same_command() -> Result<()> {
    let stage = stage().await?;
    let ada = Person::new(stage, "undo", "ada").await?;
    let tenant = &ada.tenant;
    let downloads = tokio::spawn(refuse_downloads(stage.bed.client().await?, "undo".to_owned()));
    shop(tenant, &json!({})).await?;

    // Nobody agreed: nothing happens.
    let ended = ada.nacre(&REPLACE[..5]).await?;
    assert!(ended.code == Some(1) && ended.stderr.contains("use --yes"), "{ended:#?}");
    for words in ["Removed first:", "Deployment web", "claim files, with the data in it"] {
        assert!(ended.stdout.contains(words), "{words}: {ended:#?}");
    }
    assert!(!there::<ConfigMap>(tenant, "nacre-replace-good").await?);

    // Killed while the safety backup runs: everything is there.
    let program = start(&ada)?;
    let safety = safety_backup(tenant).await?;
    kill(program).await?;
    assert!(
        there::<Deployment>(tenant, "web").await? && there::<PersistentVolumeClaim>(tenant, "files").await?
    );

    // The same command does not take a second one. Killed when the workload is gone; the claim waits for its finalizer.
    let program = start(&ada)?;
    play::<NonAdminBackup>(tenant, &safety, complete("Completed", "True")).await?;
    tenant.gone::<Deployment>("web").await?;
    kill(program).await?;
    let program = start(&ada)?;
    let deleting =
        |claim: Option<&PersistentVolumeClaim>| claim?.metadata.deletion_timestamp.as_ref().map(|_| ());
    wait_until("the claim to be deleted", TIMEOUT, tenant.api(), "files", deleting).await?;
    tenant.gone::<Pod>("web-a").await?;
    kill(program).await?;
    let backups = tenant.api::<NonAdminBackup>().list(&ListParams::default()).await?.items.len();
    assert_eq!(backups, 2, "one safety backup");
    assert!(tenant.api::<NonAdminRestore>().list(&ListParams::default()).await?.items.is_empty());

    // Nobody else holds the claim. Killed when the restore is there.
    tenant.edit::<PersistentVolumeClaim>("files", json!({"metadata": {"finalizers": null}})).await?;
    tenant.gone::<PersistentVolumeClaim>("files").await?;
    let program = start(&ada)?;
    let restore = restore_of(tenant).await?;
    kill(program).await?;

    // Velero brings everything back.
    bring_back(tenant, &restore).await?;
    let ended = ada.nacre(&REPLACE).await?;
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(ended.stdout.contains("the data of files is back as in good"), "{ended:#?}");
    assert!(ended.stderr.contains(&format!("what was there before is in backup {safety}")), "{ended:#?}");
    assert!(!there::<ConfigMap>(tenant, "nacre-replace-good").await?, "the record is gone");
    downloads.abort();
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_removed_without_a_complete_safety_backup() -> Result<()> {
    let stage = stage().await?;
    let ada = Person::new(stage, "undo-not", "ada").await?;
    let tenant = &ada.tenant;
    let downloads = tokio::spawn(refuse_downloads(stage.bed.client().await?, "undo-not".to_owned()));
    shop(tenant, &json!({"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": "x"}}})).await?;

    // Argo CD would re-create what is removed.
    let ended = ada.nacre(&REPLACE).await?;
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    assert!(ended.stderr.contains("Deployment web is managed by Argo CD"), "{ended:#?}");
    tenant.edit::<Deployment>("web", json!({"metadata": {"annotations": null}})).await?;

    // A safety backup that misses a claim is none.
    let running = async { ada.nacre(&REPLACE).await };
    let playing = async {
        let safety = safety_backup(tenant).await?;
        play::<NonAdminBackup>(tenant, &safety, complete("Completed", "False")).await
    };
    let (ended, played) = tokio::join!(running, playing);
    played?;
    let ended = ended?;
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    assert!(ended.stderr.contains("because ClaimsNotSaved. If "), "{ended:#?}");
    assert!(ended.stderr.contains("add --no-safety-backup; nothing was removed"), "{ended:#?}");
    assert!(
        there::<Deployment>(tenant, "web").await? && there::<PersistentVolumeClaim>(tenant, "files").await?
    );
    assert!(!there::<ConfigMap>(tenant, "nacre-replace-good").await?);
    downloads.abort();
    Ok(())
}

/// With the caller's own permissions and nothing more: somebody who may restore but not delete changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_permission_to_delete_nothing_begins() -> Result<()> {
    let stage = stage().await?;
    let ada = Person::new(stage, "undo-forbidden", "ada").await?;
    let tenant = &ada.tenant;
    let downloads = tokio::spawn(refuse_downloads(stage.bed.client().await?, "undo-forbidden".to_owned()));
    shop(tenant, &json!({})).await?;
    let bob = ada.colleague("bob", &["view", "nacre:edit"]).await?;
    stage.bed.wait_allowed("bob", "undo-forbidden", "list", "apps", "deployments").await?;

    let ended = crate::program::nacre(&bob, &REPLACE).await?;
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    for words in [
        "you may not do this in namespace undo-forbidden: ",
        "delete deployments.apps",
        "delete persistentvolumeclaims",
        "nothing was changed",
    ] {
        assert!(ended.stderr.contains(words), "{words}: {ended:#?}");
    }
    assert!(
        there::<Deployment>(tenant, "web").await? && there::<PersistentVolumeClaim>(tenant, "files").await?
    );
    let backups = tenant.api::<NonAdminBackup>().list(&ListParams::default()).await?.items.len();
    assert_eq!(backups, 1, "no safety backup either");
    downloads.abort();
    Ok(())
}

/// The policy changed in between. A restore that is refused would begin if the policy changed back, long after somebody
/// took the way back.
#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_is_refused_is_deleted_and_the_way_back_is_printed() -> Result<()> {
    let stage = stage().await?;
    let ada = Person::new(stage, "undo-refused", "ada").await?;
    let tenant = &ada.tenant;
    let downloads = tokio::spawn(refuse_downloads(stage.bed.client().await?, "undo-refused".to_owned()));
    shop(tenant, &json!({})).await?;
    let playing = async {
        let safety = safety_backup(tenant).await?;
        play::<NonAdminBackup>(tenant, &safety, complete("Completed", "True")).await?;
        tenant.gone::<Deployment>("web").await?;
        let deleting =
            |claim: Option<&PersistentVolumeClaim>| claim?.metadata.deletion_timestamp.as_ref().map(|_| ());
        wait_until("the claim to be deleted", TIMEOUT, tenant.api(), "files", deleting).await?;
        tenant.edit::<PersistentVolumeClaim>("files", json!({"metadata": {"finalizers": null}})).await?;
        let refused =
            json!({"phase": "BackingOff", "conditions": condition("Accepted", "False", "Forbidden")});
        play::<NonAdminRestore>(tenant, &restore_of(tenant).await?, refused).await?;
        anyhow::Ok(safety)
    };
    let (ended, safety) = tokio::join!(ada.nacre(&REPLACE), playing);
    let (ended, safety) = (ended?, safety?);
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    for words in ["was refused: because Forbidden", "claim files: removed", "which never began, was deleted"]
    {
        assert!(ended.stderr.contains(words), "{words}: {ended:#?}");
    }
    let back = "--replace --no-safety-backup --namespace undo-refused";
    let back = format!("kubectl nacre restore create --from-backup {safety} {back}");
    assert!(ended.stderr.lines().any(|line| line.trim() == back), "{ended:#?}");
    assert!(tenant.api::<NonAdminRestore>().list(&ListParams::default()).await?.items.is_empty());
    downloads.abort();
    Ok(())
}
