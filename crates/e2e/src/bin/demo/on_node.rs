//! The demo on a node: a tenant's database and its volume are lost and brought back; then the database is overwritten in
//! place, as ransomware does, and brought back too.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use bed::Output;
use e2e::{NodeCluster, NodeTenant, claim, sqlite_pod_spec};
use serde_json::json;

use crate::show::{command, heading, line};

/// Fills the database, with about 60 MB. Each order has bytes of its own, so that only this file has this checksum.
const FILL: &str = "sqlite3 /data/shop.db 'CREATE TABLE orders(id INTEGER PRIMARY KEY, cents INT, receipt BLOB); \
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 60000) \
                    INSERT INTO orders SELECT i, 100 + i % 9900, randomblob(1000) FROM n'; sync";
/// What she looks at.
const COUNT: &str = "SELECT count(*), sum(cents) FROM orders";
/// What ransomware does: other bytes in the same file.
const OVERWRITE: &str = "size=$(stat -c %s /data/shop.db); head -c $size /dev/urandom > /data/shop.db; sync";

pub(crate) async fn story() -> Result<()> {
    heading("A real cluster with a node: kubelet, containerd, an S3 store, Velero and its node agent");
    let began = Instant::now();
    let cluster = NodeCluster::start_without_nacre().await?;
    line(&format!("   ready after {:.0} s", began.elapsed().as_secs_f64()));

    heading("An administrator installs nacre");
    command("admin", "kubectl nacre", &["install", "--image", &cluster.image, "--wait"]);
    let installed = cluster.install().await?;
    let created = installed.lines().filter(|line| line.starts_with("create ")).count();
    line(&format!(
        "   {created} objects created: CRDs, roles, admission policies, a Deployment with two replicas"
    ));
    let pods = ["get", "pods", "--namespace=velero"];
    command("admin", "kubectl", &pods);
    Shown(cluster.site.kubectl(&pods).await?).shown()?;

    let ada = cluster.tenant("shop", "ada").await?;
    let bob = cluster.tenant("rival", "bob").await?;
    heading("ada may edit the namespace shop, and nothing else. Her orders are in a database on a volume");
    cluster.load_sqlite().await?;
    ada.apply(&claim("db")).await?;
    ada.apply_deployment("db", &json!({}), &sqlite_pod_spec("db")).await?;
    ada.shell("db", FILL).await?;
    kubectl(&ada, &["get", "deployments,pvc"]).await?.shown()?;
    orders(&ada).await?.shown()?;
    let written = checksum(&ada).await?;

    heading("She backs it up, volume included");
    nacre(&ada, &["backup", "create", "daily", "--wait"]).await?.shown()?;

    heading("She loses it all");
    kubectl(&ada, &["delete", "deployment/db", "pvc/db"]).await?.shown()?;
    ada.lose_namespace_contents().await?;
    kubectl(&ada, &["get", "deployments,pods,pvc"]).await?.shown()?;

    heading("She restores it");
    nacre(&ada, &["restore", "create", "--from-backup", "daily", "--wait"]).await?.shown()?;
    ada.pod_of("db").await?;
    orders(&ada).await?.shown()?;
    ensure!(checksum(&ada).await? == written, "the bytes are others than before");
    line("   The same checksum: the volume is back, byte by byte.");

    heading("Ransomware: her database is overwritten in place while its pod runs");
    ada.shell("db", OVERWRITE).await?;
    orders(&ada).await?.refused()?;
    ensure!(checksum(&ada).await? != written, "nothing was overwritten");

    heading("One command takes a safety backup, and then goes back to yesterday");
    // A claim that is deleted uses up its volume.
    cluster.site.add_volumes(1).await?;
    nacre(&ada, &["restore", "create", "--from-backup", "daily", "--replace", "--yes"]).await?.shown()?;
    ada.pod_of("db").await?;
    orders(&ada).await?.shown()?;
    ensure!(checksum(&ada).await? == written, "the bytes are others than before");
    line("   The same checksum again: what was overwritten is back.");

    heading("bob, who may edit the namespace rival, tries to take her backup");
    kubectl(&bob, &["get", "nonadminbackups", "--namespace=shop"]).await?.refused()?;
    nacre(&bob, &["restore", "create", "theft", "--from-backup", "daily", "--wait"]).await?.refused()
}

/// How many orders there are, and what they come to.
async fn orders(who: &NodeTenant<'_>) -> Result<Shown> {
    kubectl(who, &["exec", "deployment/db", "--", "sqlite3", "/data/shop.db", COUNT]).await
}

/// Shows the checksum of the file of the database, and returns it.
async fn checksum(who: &NodeTenant<'_>) -> Result<String> {
    let output = kubectl(who, &["exec", "deployment/db", "--", "sha256sum", "/data/shop.db"]).await?;
    let checksum = output.0.stdout.split_whitespace().next().context("no checksum")?.to_owned();
    output.shown()?;
    Ok(checksum)
}

async fn nacre(who: &NodeTenant<'_>, args: &[&str]) -> Result<Shown> {
    command(&who.user, "kubectl nacre", args);
    Ok(Shown(who.cli(args).await?))
}

async fn kubectl(who: &NodeTenant<'_>, args: &[&str]) -> Result<Shown> {
    command(&who.user, "kubectl", args);
    Ok(Shown(who.kubectl(args).await?))
}

/// What a command printed, to be shown.
struct Shown(Output);

impl Shown {
    fn shown(self) -> Result<()> {
        ensure!(self.0.success, "{}{}", self.0.stderr, self.0.stdout);
        self.print();
        Ok(())
    }

    fn refused(self) -> Result<()> {
        ensure!(!self.0.success, "that was allowed: {}", self.0.command);
        self.print();
        Ok(())
    }

    /// What it answered, or else what it remarked: how a wait goes on is for people who wait.
    fn print(&self) {
        let answer = if self.0.stdout.trim().is_empty() { &self.0.stderr } else { &self.0.stdout };
        let lines = answer.lines();
        lines.filter(|text| !text.trim().is_empty()).for_each(|text| line(&format!("   {text}")));
    }
}
