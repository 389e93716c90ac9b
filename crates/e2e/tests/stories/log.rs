//! The log at OADP's default level, 4: one line when a request is created at Velero, and one when it has ended.

use std::time::Duration;

use anyhow::{Result, ensure};
use bed::eventually;
use e2e::TestCluster;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

const TIMEOUT: Duration = Duration::from_mins(2);

#[tokio::test(flavor = "multi_thread")]
async fn each_request_has_a_line_when_velero_gets_it_and_when_it_has_ended() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    let nacre = test_cluster.start_nacre_in(&test_cluster.account().await?, &[("LOG_LEVEL", "4")]).await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    shop.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
    shop.back_up("daily").await?;
    shop.backup_ends("daily").await?;
    shop.restore("back", "daily").await?;
    shop.restore_ends("back").await?;
    for (kind, name, words) in [
        ("NonAdminBackup", "daily", "Velero was given the backup as shop-daily-"),
        ("NonAdminBackup", "daily", "the backup is complete"),
        ("NonAdminRestore", "back", "Velero was given the restore as shop-back-"),
        ("NonAdminRestore", "back", "the restore is complete"),
    ] {
        let about = format!("kind=\"{kind}\" namespace=\"shop\" name=\"{name}\"");
        eventually(&format!("{words:?} in the log"), TIMEOUT, async || {
            let log = nacre.process.output();
            let lines = log.lines().filter(|line| line.contains(words));
            let lines: Vec<_> =
                lines.filter(|line| line.contains(" INFO ") && line.contains(&about)).collect();
            ensure!(lines.len() == 1, "{lines:#?}\n{log}");
            Ok(())
        })
        .await?;
    }
    ensure!(!nacre.process.output().contains("DEBUG"), "level 4 is info");
    Ok(())
}
