//! Its cost: no request while the view is disabled, and one write for each change while it is enabled.

use std::time::Duration;

use anyhow::{Result, ensure};
use api::velero::Backup;
use bed::{Bed, Requests, eventually, wait_until};
use e2e::{NACRE, TestCluster, VELERO};
use kube::Api;
use serde_json::json;

use super::{label, velero_backup};

const TIMEOUT: Duration = Duration::from_mins(2);
const ACCOUNT: &str = "system:serviceaccount:velero:non-admin-controller";

/// What nacre asked of Velero's kinds outside Velero's namespace, and of the note that there are copies.
fn extra(requests: &Requests) -> Requests {
    let kinds = [
        "backups",
        "restores",
        "backupstoragelocations",
        "deletebackuprequests",
        "downloadrequests",
        "podvolumebackups",
        "podvolumerestores",
        "datauploads",
        "datadownloads",
    ];
    requests.by(NACRE).only(|request| {
        (kinds.contains(&request.resource.as_str()) && request.namespace != VELERO)
            || request.name == "nacre-velero-view"
            || (request.resource == "configmaps" && request.verb == "create")
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn it_costs_nothing_where_it_is_off_and_one_write_for_each_change_where_it_is_on() -> Result<()> {
    let test_cluster = TestCluster::build_on(Bed::builder().with_idle_velero().audit_reads()).await?;
    let start = test_cluster.bed.audit().mark().await?;
    let nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    shop.back_up("daily").await?;
    let velero =
        eventually("the Velero Backup", TIMEOUT, async || velero_backup(&shop, "daily").await).await?;
    test_cluster.bed.velero_status("Backup", &velero, json!({"phase": "InProgress"})).await?;

    // Off: not one request, and not one right to make one.
    let off = extra(&test_cluster.bed.audit().since(start).await?);
    ensure!(off.is_empty(), "{:#?}", off.tally());
    for (verb, resource) in
        [("list", "backups"), ("watch", "backups"), ("create", "restores"), ("patch", "downloadrequests")]
    {
        ensure!(
            !test_cluster.bed.allowed(ACCOUNT, "shop", verb, "velero.io", resource).await?,
            "{verb} {resource}"
        );
    }
    ensure!(!test_cluster.bed.allowed("ada", "shop", "get", "velero.io", "backups").await?);
    ensure!(
        !test_cluster.bed.allowed(ACCOUNT, "shop", "create", "oadp.openshift.io", "nonadminrestores").await?
    );

    // Labelled without the rights: it says so, and nothing is written.
    label(&test_cluster, "shop", json!("true")).await?;
    eventually("it to show in /readyz", TIMEOUT, async || {
        let details = nacre.details().await?;
        ensure!(details.contains("the Velero view is disabled"), "{details}");
        anyhow::Ok(())
    })
    .await?;
    let tried = extra(&test_cluster.bed.audit().since(start).await?);
    ensure!(tried.writes().is_empty(), "{:#?}", tried.tally());

    // With them it begins by itself; each change of the original costs one write, and rest costs none.
    test_cluster.allow_velero_view().await?;
    let copies = Api::<Backup>::namespaced(test_cluster.bed.client().await?, "shop");
    wait_until("the copy", TIMEOUT, copies.clone(), "daily", |copy| {
        (copy?.phase() == "InProgress").then_some(())
    })
    .await?;
    test_cluster.bed.audit().until_quiet(NACRE, Duration::from_secs(2)).await?;
    let mark = test_cluster.bed.audit().mark().await?;
    for done in 1..=5 {
        let progress = json!({"progress": {"itemsBackedUp": done, "totalItems": 5}});
        test_cluster.bed.velero_status("Backup", &velero, progress).await?;
        wait_until("the copy to follow", TIMEOUT, copies.clone(), "daily", |copy| {
            let progress = copy?.status.as_ref()?.progress.as_ref()?;
            (progress.items_backed_up == Some(done)).then_some(())
        })
        .await?;
    }
    let writes = extra(&test_cluster.bed.audit().since(mark).await?).writes();
    ensure!(
        writes.len() == 5 && writes.only(|write| write.verb == "patch" && write.code == 200).len() == 5,
        "{:#?}",
        writes.tally()
    );

    // Whoever may only look sees copies, and asks for nothing: a link leads to everything that was backed up.
    test_cluster.bed.bind("shop", "eve", "view").await?;
    test_cluster.bed.wait_allowed("eve", "shop", "list", "velero.io", "backups").await?;
    for (verb, resource) in
        [("create", "backups"), ("get", "downloadrequests"), ("create", "downloadrequests")]
    {
        ensure!(
            !test_cluster.bed.allowed("eve", "shop", verb, "velero.io", resource).await?,
            "{verb} {resource}"
        );
    }
    test_cluster.bed.wait_allowed("ada", "shop", "create", "velero.io", "restores").await?;
    for (verb, resource) in
        [("patch", "backups"), ("delete", "backups"), ("create", "backupstoragelocations")]
    {
        ensure!(
            !test_cluster.bed.allowed("ada", "shop", verb, "velero.io", resource).await?,
            "{verb} {resource}"
        );
    }

    // A label that goes while nacre is down: the copies go when it is back, and then nobody looks any more.
    drop(nacre);
    label(&test_cluster, "shop", json!(null)).await?;
    let _nacre = test_cluster.start_nacre().await?;
    wait_until("the copy to go", TIMEOUT, copies, "daily", |copy| copy.is_none().then_some(())).await?;
    test_cluster.gone_from_velero::<k8s_openapi::api::core::v1::ConfigMap>("nacre-velero-view").await?;
    Ok(())
}
