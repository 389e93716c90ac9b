//! Two people side by side: one asks for storage, the other decides.

use anyhow::Result;

use crate::browser::Driver;
use crate::cluster::{laptop, owner, test_cluster};

#[tokio::test(flavor = "multi_thread")]
async fn storage_is_asked_for_and_approved() -> Result<()> {
    let cluster = test_cluster().await?;
    let cat = owner("browser-mill", "cat").await?;
    let store = cluster.bed.store()?;
    cat.keep_keys("keys", &store.credentials()).await?;
    cat.bring_bucket("mine", "browser-mill", "keys").await?;

    let driver = Driver::start().await?;
    let tenant = laptop(&cluster.bed, "browser-mill", Some("cat")).await?;
    let hers = driver.browser("cat", 1280, 900).await?;
    hers.open(&tenant.link).await?;
    hers.sees("mine").await?;
    hers.does_not_see("Doctor").await?;

    let admin = laptop(&cluster.bed, "velero", None).await?;
    let his = driver.browser("admin", 1280, 900).await?;
    his.open(&admin.link).await?;
    his.sees("Doctor").await?;
    his.finds(&admin.page("/admin/requests"), "browser-mill").await?;
    his.picture("30-requests").await?;
    his.is_accessible().await?;
    his.click("a[href='/admin/requests/browser-mill/mine']").await?;
    his.sees("Approving means").await?;
    his.picture("31-request").await?;
    his.is_accessible().await?;
    his.write("#reason", "ticket 7").await?;
    his.click("button[value=approve]").await?;
    his.sees("Approved - Velero may use it").await?;
    his.sees("ticket 7").await?;
    for (path, name) in
        [("queue", "32-queue"), ("usage", "33-usage"), ("policy", "34-policy"), ("doctor", "35-doctor")]
    {
        his.open(&admin.page(&format!("/admin/{path}"))).await?;
        his.sees("kubectl nacre").await?;
        his.picture(name).await?;
        his.is_accessible().await?;
    }

    cat.location_is("the location to be available", "mine", |status| {
        let velero = status.velero_backup_storage_location.as_ref();
        velero.and_then(|velero| velero.status.as_ref()).is_some_and(|status| status.phase.is_some())
    })
    .await?;
    hers.finds(&tenant.page("/ns/browser-mill/locations/mine"), "Available").await?;
    hers.picture("36-location").await?;
    hers.is_accessible().await
}
