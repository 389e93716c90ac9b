//! What it costs: nothing at all where nobody is to see copies, and one write for each change where somebody is.

use std::time::Duration;

use anyhow::{Result, ensure};
use api::velero::Backup;
use bed::{Bed, Requests, eventually, wait_until};
use e2e::{House, NACRE, VELERO};
use kube::Api;
use serde_json::json;

use super::{label, velero_backup};

const PATIENCE: Duration = Duration::from_mins(1);
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
    let house = House::build_on(Bed::builder().with_idle_velero().audit_reads()).await?;
    let start = house.bed.audit().mark().await?;
    let nacre = house.start_nacre().await?;
    let shop = house.tenant("shop", "ada").await?;
    shop.back_up("daily").await?;
    let velero =
        eventually("the Velero Backup", PATIENCE, async || velero_backup(&shop, "daily").await).await?;
    house.bed.velero_status("Backup", &velero, json!({"phase": "InProgress"})).await?;

    // Off: not one request, and not one right to make one.
    let off = extra(&house.bed.audit().since(start).await?);
    ensure!(off.is_empty(), "{:#?}", off.tally());
    for (verb, resource) in
        [("list", "backups"), ("watch", "backups"), ("create", "restores"), ("patch", "downloadrequests")]
    {
        ensure!(!house.bed.allowed(ACCOUNT, "shop", verb, "velero.io", resource).await?, "{verb} {resource}");
    }
    ensure!(!house.bed.allowed("ada", "shop", "get", "velero.io", "backups").await?);
    ensure!(!house.bed.allowed(ACCOUNT, "shop", "create", "oadp.openshift.io", "nonadminrestores").await?);

    // Labelled without the rights: it says so, and nothing is written.
    label(&house, "shop", json!("true")).await?;
    eventually("it to show in /readyz", PATIENCE, async || {
        let details = nacre.details().await?;
        ensure!(details.contains("are not shown in tenants' namespaces"), "{details}");
        anyhow::Ok(())
    })
    .await?;
    let tried = extra(&house.bed.audit().since(start).await?);
    ensure!(tried.writes().is_empty(), "{:#?}", tried.tally());

    // With them it begins by itself; each change of the original costs one write, and rest costs none.
    house.allow_velero_view().await?;
    let copies = Api::<Backup>::namespaced(house.bed.client().await?, "shop");
    wait_until("the copy", PATIENCE, copies.clone(), "daily", |copy| {
        (copy?.phase() == "InProgress").then_some(())
    })
    .await?;
    house.bed.audit().quiet(NACRE, Duration::from_secs(2)).await?;
    let mark = house.bed.audit().mark().await?;
    for done in 1..=5 {
        let progress = json!({"progress": {"itemsBackedUp": done, "totalItems": 5}});
        house.bed.velero_status("Backup", &velero, progress).await?;
        wait_until("the copy to follow", PATIENCE, copies.clone(), "daily", |copy| {
            let progress = copy?.status.as_ref()?.progress.as_ref()?;
            (progress.items_backed_up == Some(done)).then_some(())
        })
        .await?;
    }
    let writes = extra(&house.bed.audit().since(mark).await?).writes();
    ensure!(
        writes.len() == 5 && writes.only(|write| write.verb == "patch" && write.code == 200).len() == 5,
        "{:#?}",
        writes.tally()
    );

    // Whoever may only look sees copies, and asks for nothing: a link leads to everything that was backed up.
    house.bed.bind("shop", "eve", "view").await?;
    house.bed.wait_allowed("eve", "shop", "list", "velero.io", "backups").await?;
    for (verb, resource) in
        [("create", "backups"), ("get", "downloadrequests"), ("create", "downloadrequests")]
    {
        ensure!(!house.bed.allowed("eve", "shop", verb, "velero.io", resource).await?, "{verb} {resource}");
    }
    house.bed.wait_allowed("ada", "shop", "create", "velero.io", "restores").await?;
    for (verb, resource) in
        [("patch", "backups"), ("delete", "backups"), ("create", "backupstoragelocations")]
    {
        ensure!(!house.bed.allowed("ada", "shop", verb, "velero.io", resource).await?, "{verb} {resource}");
    }

    // A label that goes while nacre is down: the copies go when it is back, and then nobody looks any more.
    drop(nacre);
    label(&house, "shop", json!(null)).await?;
    let _nacre = house.start_nacre().await?;
    wait_until("the copy to go", PATIENCE, copies, "daily", |copy| copy.is_none().then_some(())).await?;
    house.gone_from_velero::<k8s_openapi::api::core::v1::ConfigMap>("nacre-velero-view").await?;
    Ok(())
}
