//! The data of a backup is damaged in the bucket, and a restore that needs it reports that. Part of `make long`.

use anyhow::{Context as _, Result, ensure};
use e2e::{NodeTenant, VELERO};

use crate::cluster_of_bed;

const BYTES: u64 = 2 << 20;
const OUTCOME: &str =
    "jsonpath={.status.conditions[?(@.type=='DataRestored')].reason} {.status.claims[*].state}";
const MESSAGE: &str = "jsonpath={.status.conditions[?(@.type=='DataRestored')].message}";

/// Removes every piece of the tenant's volumes from the bucket, not the lists of them: so Velero begins to restore them.
pub(crate) fn damage_data(tenant: &NodeTenant<'_>) -> Result<()> {
    let pieces = tenant.cluster.site.node()?.platform_bucket().join("kopia").join(&tenant.namespace);
    let mut removed = 0;
    for piece in std::fs::read_dir(&pieces).with_context(|| format!("reading {}", pieces.display()))? {
        let piece = piece?;
        if piece.file_name().to_string_lossy().starts_with('p') {
            std::fs::remove_file(piece.path())?;
            removed += 1;
        }
    }
    ensure!(removed > 0, "nothing in {}", pieces.display());
    Ok(())
}

#[tokio::test]
async fn a_volume_that_velero_fails_to_restore_is_reported_in_veleros_words_and_never_called_complete()
-> Result<()> {
    let Some(cluster) = cluster_of_bed().await? else { return Ok(()) };
    let tenant = cluster.tenant("damaged", "dana").await?;
    tenant.start_deployment("db", BYTES).await?;
    tenant.cli(&["backup", "create", "good", "--wait"]).await?.with_code(0)?;
    tenant.lose_namespace_contents().await?;
    damage_data(&tenant)?;

    let back = ["restore", "create", "back", "--from-backup", "good", "--wait", "--timeout=5m"];
    let said = tenant.cli(&back).await?.with_code(3)?;
    ensure!(said.contains("volume data of claim \"db\" was NOT restored: "), "{said}");
    ensure!(!said.contains("back: complete"), "{said}");
    let found = tenant.kubectl(&["get", "nonadminrestore", "back", "-o", OUTCOME]).await?.ok()?;
    assert_eq!(found.trim(), "VolumesFailed Failed");

    // The reason is Velero's message.
    let path = format!("jsonpath={{.items[?(@.spec.pod.namespace=='{}')].status.message}}", tenant.namespace);
    let words = cluster.site.kubectl(&["get", "podvolumerestores", "-n", VELERO, "-o", &path]).await?.ok()?;
    let begin: String = words.trim().chars().take(80).collect();
    let message = tenant.kubectl(&["get", "nonadminrestore", "back", "-o", MESSAGE]).await?.ok()?;
    ensure!(!begin.is_empty() && message.contains(&begin), "no {begin:?} in {message}");
    // A page about it ends with the same code, as does looking for what is wrong.
    tenant.cli(&["restore", "describe", "back"]).await?.with_code(3)?;
    Ok(())
}
