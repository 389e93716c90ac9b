//! Who chooses which volumes are saved: annotations on pods, the policy, and nacre. With real bytes. Part of `make long`.

use anyhow::{Result, ensure};

use crate::alone;

const BYTES: u64 = 1 << 20;
/// The claims of a backup, and what became of their data.
const CLAIMS: &str = "jsonpath={range .status.claims[*]}{.name}={.state} {end}";

#[tokio::test]
async fn annotations_and_policy_choose_which_volumes_are_saved() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    let tenant = cluster.tenant("choices", "chad").await?;
    for name in ["in", "out"] {
        tenant.start_deployment(name, BYTES).await?;
    }
    let written = [tenant.checksum("in").await?, tenant.checksum("out").await?];
    let (inside, outside) = (tenant.pod_of("in").await?, tenant.pod_of("out").await?);
    let back_up = async |name: &str, code: i32| {
        tenant.cli(&["backup", "create", name, "--wait"]).await?.with_code(code)?;
        let claims = tenant.kubectl(&["get", "nonadminbackup", name, "-o", CLAIMS]).await?.ok()?;
        anyhow::Ok(claims.trim().to_owned())
    };

    // nacre chooses: everything but what an annotation takes out.
    tenant
        .kubectl(&["annotate", "pod", &outside, "backup.velero.io/backup-volumes-excludes=data"])
        .await?
        .ok()?;
    assert_eq!(back_up("taken-out", 3).await?, "in=Saved out=NotSaved");
    tenant
        .kubectl(&["annotate", "pod", &outside, "backup.velero.io/backup-volumes-excludes-"])
        .await?
        .ok()?;

    // Velero's own defaults: nothing but what an annotation puts in.
    cluster.set_policy("backup: {volumes: velero}").await?;
    tenant.kubectl(&["annotate", "pod", &inside, "backup.velero.io/backup-volumes=data"]).await?.ok()?;
    assert_eq!(back_up("put-in", 3).await?, "in=Saved out=NotSaved");

    // The administrators have every volume saved.
    cluster.set_policy("backup: {volumes: velero, enforce: {defaultVolumesToFsBackup: true}}").await?;
    assert_eq!(back_up("enforced", 0).await?, "in=Saved out=Saved");
    let page = tenant.cli(&["backup", "describe", "enforced"]).await?.with_code(0)?;
    ensure!(page.contains("defaultVolumesToFsBackup"), "{page}");

    // What a backup says of its claims is what comes back.
    tenant.lose_namespace_contents().await?;
    tenant.cli(&["restore", "create", "--from-backup", "enforced", "--wait"]).await?.with_code(0)?;
    assert_eq!([tenant.checksum("in").await?, tenant.checksum("out").await?], written);
    tenant.lose_namespace_contents().await?;
    tenant.cli(&["restore", "create", "--from-backup", "put-in", "--wait"]).await?.with_code(3)?;
    assert_eq!(tenant.checksum("in").await?, written[0]);
    Ok(())
}
