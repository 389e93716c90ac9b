//! The last good backup, with real Velero: what is empty, partial or stored where Velero cannot read is not it.

use std::time::Duration;

use anyhow::{Result, ensure};
use api::{NonAdminBackup, NonAdminRestore, condition};
use bed::eventually;
use e2e::TestCluster;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use serde_json::json;

use crate::{
    cluster_and_nacre,
    person::Person,
    program::{Ended, nacre},
    terminal::Terminal,
    test_cluster,
};

/// Whether these words are in what the program wrote, wherever it wrote them.
fn shows(ended: &Ended, code: i32, words: &[&str]) {
    assert_eq!(ended.code, Some(code), "{ended:#?}");
    for words in words {
        assert!(ended.stdout.contains(words) || ended.stderr.contains(words), "{words}: {ended:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_nothing_or_of_a_part_is_not_the_last_good_one() -> Result<()> {
    let test_cluster = test_cluster().await?;
    let ada = Person::new(test_cluster, "nothing", "ada").await?;
    ada.tenant.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;

    // A name that the cluster does not serve is refused at once, with the nearest that it does.
    let create = ["backup", "create", "x", "--wait", "--include-resources"];
    let ended = ada.nacre(&[&create[..], &["nonsense"]].concat()).await?;
    shows(&ended, 1, &["spec.backupSpec.includedResources: the cluster serves no resource \"nonsense\""]);
    let ended = ada.nacre(&[&create[..], &["configmap,secrets2"]].concat()).await?;
    shows(&ended, 1, &["no resource \"secrets2\"; did you mean \"secrets\"?"]);
    assert!(ada.tenant.api::<NonAdminBackup>().get_opt("x").await?.is_none(), "nothing was sent");

    // By other means it gets to Velero, which calls it Completed.
    let nonsense = json!({"spec": {"backupSpec": {"includedResources": ["nonsense"]}}});
    ada.tenant.create::<NonAdminBackup>("x", nonsense).await?;
    let ended = ada.nacre(&["backup", "wait", "x", "--timeout", "2m"]).await?;
    shows(&ended, 3, &["backup x: nothing was backed up: 0 items", "kubectl nacre backup describe x"]);
    assert!(!ended.stdout.contains("complete"), "{ended:#?}");
    let ended = ada.nacre(&["status"]).await?;
    shows(&ended, 3, &["Last good backup  none. Newest: x, not counted because it holds 0 items"]);
    shows(
        &ada.nacre(&["restore", "create"]).await?,
        1,
        &["namespace nothing has no good backup; the newest, x,"],
    );

    // The whole namespace: what nacre and Velero always leave out is no filter.
    ada.says(&["backup", "create", "whole", "--wait", "--timeout", "2m"]).await?;
    shows(&ada.nacre(&["status"]).await?, 0, &["Last good backup  whole, "]);

    // Velero's times are whole seconds: what comes next shall be newer.
    let second = jiff::Timestamp::now().as_second();
    eventually("the second to be over", Duration::from_mins(2), async || {
        ensure!(jiff::Timestamp::now().as_second() > second, "it is not");
        Ok(())
    })
    .await?;

    // A part of it ends well, as it was asked for, and is not the last good one.
    let part = ["backup", "create", "part", "--include-resources", "cm", "--exclude-resources", "gadgets"];
    let ended = ada.nacre(&[&part[..], &["--wait", "--timeout", "2m"]].concat()).await?;
    shows(
        &ended,
        0,
        &["Warning: spec.backupSpec.excludedResources: the cluster serves no resource \"gadgets\""],
    );
    let because = "it holds only a part of the namespace (limited by includedResources, excludedResources)";
    let ended = ada.nacre(&["status"]).await?;
    shows(&ended, 0, &["Last good backup  whole, ", &format!("Not counted       part: {because}")]);
    let page = ada.says(&["backup", "describe", "part"]).await?;
    assert!(page.contains(&format!("not counted as the last good backup: {because}")), "{page}");

    // Taken without being named, it is named, and somebody has to agree.
    let ended = ada.nacre(&["restore", "create", "--wait"]).await?;
    let newer = "newer, but not taken: part, ";
    shows(
        &ended,
        1,
        &["restoring from whole, the last good backup", "the whole namespace, ", newer, "use --yes"],
    );
    let mut terminal = Terminal::start(&ada.kubeconfig, &["restore", "create"])?;
    terminal.shows("Restore from whole all the same? [y/N]").await?;
    terminal.types("n\n")?;
    terminal.shows("nothing was restored").await?;
    assert_eq!(terminal.ends().await?, 1);
    let restores = ada.tenant.api::<NonAdminRestore>();
    assert!(restores.list(&ListParams::default()).await?.items.is_empty());
    ada.tenant.delete::<ConfigMap>("prices").await?;
    ada.says(&["restore", "create", "back", "--yes", "--wait", "--timeout", "2m"]).await?;
    let back = restores.get("back").await?;
    assert_eq!(back.spec.restore_spec.backup_name.as_deref(), Some("whole"));
    assert!(ada.tenant.api::<ConfigMap>().get_opt("prices").await?.is_some());

    // A restore of nothing is no success either.
    let nothing = ["restore", "create", "none", "--from-backup", "whole", "--include-resources", "gadgets"];
    let ended = ada.nacre(&[&nothing[..], &["--wait", "--timeout", "2m"]].concat()).await?;
    let warning = "Warning: spec.restoreSpec.includedResources: the cluster serves no resource \"gadgets\"";
    shows(&ended, 3, &[warning, "restore none: nothing was restored: 0 items"]);
    Ok(())
}

async fn admin(test_cluster: &TestCluster, arguments: &[&str]) -> Result<String> {
    nacre(&test_cluster.bed.kubeconfig(), arguments).await?.with(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_in_a_revoked_location_is_not_the_last_good_one() -> Result<()> {
    let (test_cluster, controller) = cluster_and_nacre().await?;
    let metric = "nacre_last_good_backup_timestamp_seconds{namespace=\"revoked\"}";
    let bob = Person::new(test_cluster, "revoked", "bob").await?;
    bob.tenant.keep_keys("keys", &test_cluster.bed.store()?.credentials()).await?;
    bob.tenant.bring_bucket("mine", "revoked-bucket", "keys").await?;
    let pending = async || {
        let is_pending = |status: &api::NonAdminBackupStorageLocationStatus| {
            let approved = condition::get(&status.conditions, condition::CLUSTER_ADMIN_APPROVED);
            approved.is_some_and(|approved| approved.reason == condition::BSL_SPEC_APPROVAL_PENDING)
        };
        bob.tenant.location_is("an administrator to be asked", "mine", is_pending).await
    };
    pending().await?;
    admin(test_cluster, &["request", "approve", "revoked/mine", "--wait", "--timeout", "2m"]).await?;
    bob.says(&["backup", "create", "kept", "--storage-location", "mine", "--wait", "--timeout", "2m"])
        .await?;
    shows(&bob.nacre(&["status"]).await?, 0, &["Last good backup  kept, "]);
    assert!(controller.metrics().await?.contains(metric));

    admin(test_cluster, &["request", "revoke", "revoked/mine", "--wait", "--timeout", "2m"]).await?;
    pending().await?;
    let because = "because its storage location \"mine\" is not approved by an administrator";
    let ended = bob.nacre(&["status"]).await?;
    shows(&ended, 3, &[&format!("Last good backup  none. Newest: kept, not counted {because}")]);
    let ended = bob.nacre(&["restore", "create"]).await?;
    shows(&ended, 1, &[&format!("the newest, kept, is not taken {because}"), "--from-backup"]);

    assert!(!controller.metrics().await?.contains(metric));

    admin(test_cluster, &["request", "approve", "revoked/mine", "--wait", "--timeout", "2m"]).await?;
    bob.tenant.location_available("mine").await?;
    shows(&bob.nacre(&["status"]).await?, 0, &["Last good backup  kept, "]);
    Ok(())
}
