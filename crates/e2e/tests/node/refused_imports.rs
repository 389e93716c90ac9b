//! What Velero may not import from a tenant's own bucket is shown on the location, by Velero's own log. Part of `make long`.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bed::eventually;
use e2e::NodeTenant;

use crate::bombed::contents;
use crate::own_bucket::own_location;
use crate::{alone, say};

/// Velero looks every minute, and nacre reads its log every half of one. What is over is known two minutes later.
const PATIENCE: Duration = Duration::from_mins(8);
const SHOWN: [&str; 4] = [
    "get",
    "nonadminbackupstoragelocation",
    "mine",
    "-o=jsonpath={.status.conditions[?(@.type==\"BackupsImported\")].message}",
];

async fn shown(tenant: &NodeTenant<'_>) -> Result<String> {
    Ok(tenant.kubectl(&SHOWN).await?.ok()?.trim().to_owned())
}

/// H2: own bucket: a backup that nacre did not make, as another cluster's Velero would have put there
#[tokio::test]
async fn h2_backups_that_velero_may_not_import_are_named_by_their_location_until_they_are_gone() -> Result<()>
{
    let Some(cluster) = alone().await? else { return Ok(()) };
    let node = cluster.site.node()?;
    let shop = cluster.tenant("refused-imports", "rita").await?;
    own_location(&shop, "refused-imports").await?;
    shop.cli(&["backup", "create", "one", "--storage-location", "mine", "--wait"]).await?.with_code(0)?;
    assert_eq!(shown(&shop).await?, "", "nothing is refused yet");

    let genuine = contents(&node.platform_bucket().with_file_name("refused-imports"))?;
    let genuine = genuine.parent().context("the backup's folder")?;
    let foreign = genuine.parent().context("the folder of all backups")?.join("nightly-2030");
    plant(genuine, &foreign, "nightly-2030")?;
    let start = Instant::now();
    eventually("the location to name it", PATIENCE, async || {
        let shown = shown(&shop).await?;
        ensure!(
            shown.contains("\"nightly-2030\"") && shown.contains("a name that nacre gave it"),
            "{shown:?}"
        );
        Ok(())
    })
    .await?;
    let took = start.elapsed();
    let page = shop.cli(&["location", "describe", "mine"]).await?.with_code(0)?;
    ensure!(page.contains("ImportsRefused") && page.contains("Available"), "{page}");
    let status = shop.cli(&["status"]).await?;
    ensure!(status.stdout.contains("some backups in it cannot be used"), "{status:#?}");
    shop.cli(&["backup", "create", "two", "--storage-location", "mine", "--wait"]).await?.with_code(0)?;

    fs::remove_dir_all(&foreign)?;
    let removed = Instant::now();
    eventually("the location to say no more of it", PATIENCE, async || {
        let shown = shown(&shop).await?;
        ensure!(shown.is_empty(), "{shown:?}");
        Ok(())
    })
    .await?;
    say(&format!(
        "a refused import was shown after {took:.0?}, and not any more {:.0?} later",
        removed.elapsed()
    ))
}

/// A copy of a backup under another name.
fn plant(genuine: &Path, folder: &Path, name: &str) -> Result<()> {
    let own = genuine.file_name().context("a name")?.to_string_lossy().into_owned();
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(genuine)? {
        let entry = entry?;
        let file = entry.file_name().to_string_lossy().replace(&own, name);
        fs::copy(entry.path(), folder.join(file))?;
    }
    let path = folder.join("velero-backup.json");
    let text = fs::read_to_string(&path)?.replace(&own, name);
    Ok(fs::write(path, text)?)
}
