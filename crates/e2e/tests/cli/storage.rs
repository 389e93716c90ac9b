//! A tenant's own storage, with the CLI alone.

use anyhow::Result;
use api::NonAdminBackupStorageLocation;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use crate::{person::Person, test_cluster};

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_is_brought_used_and_taken_away() -> Result<()> {
    let test_cluster = test_cluster().await?;
    let bob = Person::new(test_cluster, "cellar", "bob").await?;
    let store = test_cluster.bed.store()?;
    store.make_bucket("cellar-bucket")?;
    let url = format!("s3ForcePathStyle=true,s3Url={}", store.url());
    let create = [
        "location",
        "create",
        "mine",
        "--provider",
        "aws",
        "--bucket",
        "cellar-bucket",
        "--credential",
        "keys=cloud",
        "--region",
        bed::REGION,
        "--config",
        &url,
        "--wait",
        "--timeout",
        "2m",
    ];

    // Explained before the Secret is there, and with it.
    let manifest = bob.says(&[&create[..13], &["--dry-run"]].concat()).await?;
    let file = test_cluster.bed.folder().join("location.yaml");
    std::fs::write(&file, manifest)?;
    let file = file.display().to_string();
    let policy = test_cluster.bed.folder().join("cellar-policy.yaml");
    std::fs::write(&policy, crate::POLICY)?;
    let policy = policy.display().to_string();
    let explain = ["explain", "-f", &file, "--policy", &policy];
    let ended = bob.nacre(&explain).await?;
    assert!(ended.code == Some(3) && ended.stdout.contains("no Secret \"keys\""), "{ended:#?}");
    bob.tenant.keep_keys("keys", &store.credentials()).await?;
    assert!(bob.says(&explain).await?.contains("would pass"));

    let ended = bob.nacre(&create).await?;
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(ended.stdout.contains("location mine: ready"), "{ended:#?}");
    let table = bob.says(&["location", "get"]).await?;
    assert!(table.contains("mine   Available   aws        cellar-bucket"), "{table}");
    let page = bob.says(&["location", "describe", "mine"]).await?;
    assert!(page.contains("ClusterAdminApproved") && page.contains("--storage-location mine"), "{page}");

    // A backup in it can be downloaded whole, to a file that appears only when it is.
    bob.tenant.create::<ConfigMap>("wine", json!({"data": {"red": "5"}})).await?;
    bob.says(&["backup", "create", "kept", "--storage-location", "mine", "--wait"]).await?;
    assert!(bob.says(&["backup", "logs", "kept"]).await?.contains("level=info"));
    let to = test_cluster.bed.folder().join("kept.tar.gz");
    let to = to.display().to_string();
    assert!(bob.says(&["backup", "download", "kept", "--to", &to]).await?.starts_with(&to));
    let saved = std::fs::read(&to)?;
    assert_eq!(saved[..2], [0x1f, 0x8b], "a gzip file");
    let ended = bob.nacre(&["backup", "download", "kept", "--to", &to]).await?;
    assert!(ended.code == Some(1) && ended.stderr.contains("--force"), "{ended:#?}");
    bob.says(&["backup", "download", "kept", "--to", &to, "--force"]).await?;
    assert_eq!(std::fs::read(&to)?, saved);

    // It goes, and its backups with it.
    bob.says(&["location", "delete", "mine", "--yes", "--wait"]).await?;
    bob.tenant.gone::<NonAdminBackupStorageLocation>("mine").await?;
    bob.tenant.gone::<api::NonAdminBackup>("kept").await?;
    assert!(!store.keys("cellar-bucket")?.is_empty(), "what is in the bucket stays");
    Ok(())
}
