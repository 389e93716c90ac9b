//! A backup that fills Velero's disk and takes none of its memory: the node evicts Velero's pod at its limit of ephemeral
//! storage, the disk is free again, the restore is over, and the neighbour's goes on. Part of `make long`.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bed::{NODE, Node, eventually};
use e2e::VELERO;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::bombed::{contents, ends, until_velero_has};
use crate::fenced::fence;
use crate::own_bucket::own_location;
use crate::{alone, say};

const PATIENCE: Duration = Duration::from_mins(4);
const SMALL: u64 = 1 << 20;
/// The limit of Velero's disk: less than what `install --fence` sets, so that it takes little of the machine's.
const LIMIT: u64 = 512 << 20;
/// Zeros that are packed once, and repeated.
const PIECE: usize = 64 << 20;
/// A gibibyte.
const PIECES_OF_FILE: usize = 16;
/// How the files begin that Velero unpacks and never reads.
const FILLER: &str = "many-zeros-";

fn packed(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// The header of a file in a tar archive.
fn header(name: &str, bytes: usize) -> [u8; 512] {
    let mut header = [0_u8; 512];
    let mut put = |at: usize, text: &[u8]| header[at..at + text.len()].copy_from_slice(text);
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(124, format!("{bytes:011o}\0").as_bytes());
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

/// Writes so many gibibytes of zeros, and then what is no archive: Velero fails there, and keeps what it unpacked. A packed
/// file is any number of packed parts, one after the other, so much takes hardly longer than little.
fn fill(contents: &Path, gibibytes: usize) -> Result<()> {
    let zeros = packed(&vec![0; PIECE])?;
    let mut archive = Vec::new();
    for number in 0..gibibytes {
        let name = format!("metadata/{FILLER}{number}");
        archive.extend(packed(&header(&name, PIECE * PIECES_OF_FILE))?);
        (0..PIECES_OF_FILE).for_each(|_| archive.extend_from_slice(&zeros));
    }
    archive.extend(packed(b"no archive")?);
    ensure!(archive.len() < gibibytes << 21, "it is small in the bucket");
    Ok(fs::write(contents, archive)?)
}

/// The files of such a backup that are on the node's disk.
fn unpacked(node: &Node) -> Result<String> {
    let mut find = Command::new("find");
    find.arg(node.folder().join("containerd")).args(["-name", &format!("{FILLER}*")]);
    // Others of its folders come and go meanwhile.
    Ok(String::from_utf8(find.output()?.stdout)?)
}

/// How much of its disk Velero uses, as the node counts it.
async fn used(node: &Node) -> Result<u64> {
    let summary = format!("--raw=/api/v1/nodes/{NODE}/proxy/stats/summary");
    let summary: Value = serde_json::from_str(&node.kubectl(&["get", &summary]).await?.ok()?)?;
    let pods = summary["pods"].as_array().context("no pods")?;
    let of_velero = |pod: &&Value| {
        let name = pod["podRef"]["name"].as_str().unwrap_or_default();
        pod["podRef"]["namespace"] == VELERO && name.starts_with("velero-")
    };
    let used = pods.iter().filter(of_velero).filter_map(|pod| pod["ephemeral-storage"]["usedBytes"].as_u64());
    used.max().context("nothing is known of Velero's disk")
}

async fn rolled_out(node: &Node) -> Result<()> {
    let rollout = ["rollout", "status", "deployment/velero", "-n", VELERO, "--timeout=4m"];
    node.kubectl(&rollout).await?.ok().map(drop)
}

/// planted: Velero's pod without a limit of ephemeral storage
#[tokio::test]
async fn a11_a_bomb_that_fills_the_disk_has_veleros_pod_evicted_and_the_neighbours_restore_goes_on()
-> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    let node = cluster.site.node()?;
    fence(&cluster).await?;
    let (shop, farm) = (cluster.tenant("filler", "fia").await?, cluster.tenant("filled", "fil").await?);
    farm.start_deployment("db", SMALL).await?;
    let written = farm.checksum("db").await?;
    farm.cli(&["backup", "create", "daily", "--wait"]).await?.with_code(0)?;
    farm.lose_namespace_contents().await?;
    own_location(&shop, "filler").await?;
    shop.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "prices"}})).await?;
    shop.cli(&["backup", "create", "one", "--storage-location", "mine", "--wait"]).await?.with_code(0)?;
    let contents = contents(&node.platform_bucket().with_file_name("filler"))?;

    // The planted weakness: without a limit Velero keeps what it unpacked before it failed, far beyond where the limit was.
    let no_limit = json!([{"op": "remove", "path": "/spec/template/spec/containers/0/resources/limits/ephemeral-storage"}]);
    let patch = ["patch", "deployment", "velero", "-n", VELERO, "--type=json", "-p", &no_limit.to_string()];
    node.kubectl(&patch).await?.ok()?;
    rolled_out(node).await?;
    fill(&contents, 2)?;
    let odd = shop.cli(&["restore", "create", "odd", "--from-backup", "one", "--wait"]).await?;
    ensure!(odd.code != Some(0) && odd.code != Some(4), "the bomb is no good, or is not over: {odd:#?}");
    eventually("the node to count what Velero keeps", PATIENCE, async || {
        let used = used(node).await?;
        ensure!(used > 3 * LIMIT, "{used} bytes");
        Ok(())
    })
    .await?;
    ensure!(!unpacked(node)?.is_empty() && ends(&cluster).await?.is_empty(), "nobody minds without a limit");

    let limits = format!("--limits=memory=1Gi,ephemeral-storage={LIMIT}");
    node.kubectl(&["set", "resources", "deployment", "velero", "-n", VELERO, &limits]).await?.ok()?;
    rolled_out(node).await?;
    // So much that Velero is busy with it until it is ended: the node looks every few seconds. The neighbour asks meanwhile.
    fill(&contents, 32)?;
    let start = Instant::now();
    shop.cli(&["restore", "create", "boom", "--from-backup", "one"]).await?.with_code(0)?;
    until_velero_has(&shop, "boom").await?;
    let back = ["restore", "create", "back", "--from-backup", "daily", "--wait", "--timeout=8m"];
    farm.cli(&back).await?.with_code(0)?;
    let took = start.elapsed();
    assert_eq!(farm.checksum("db").await?, written);

    let ended = shop.cli(&["restore", "wait", "boom", "--timeout=1m"]).await?;
    ensure!(ended.code != Some(0) && ended.code != Some(4), "the bomb is not over: {ended:#?}");
    let ends = ends(&cluster).await?;
    say(&format!(
        "a backup of 32 GiB of zeros at a limit of {LIMIT} bytes: Velero's pods ended as {ends:?}, and the neighbour's \
         restore was complete after {took:.0?}"
    ))?;
    let evicted = |end: &String| end.starts_with("Evicted: ") && end.contains("ephemeral local storage");
    ensure!(ends.iter().any(evicted), "the node evicted nobody");
    eventually("the disk to be free again", PATIENCE, async || {
        let left = unpacked(node)?;
        ensure!(left.is_empty(), "{left}");
        Ok(())
    })
    .await?;
    rolled_out(node).await?;
    let failed = ["delete", "pods", "-n", VELERO, "--field-selector=status.phase=Failed"];
    node.kubectl(&failed).await?.ok().map(drop)
}
