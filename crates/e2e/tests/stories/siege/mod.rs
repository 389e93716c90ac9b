//! Hostile buckets by the thousand: whatever a tenant writes into its own bucket, a restore of it through real Velero
//! changes nothing outside the tenant's namespace and brings nothing privileged into it. nacre is down, and the Restores
//! are as wide as can be: what holds here holds by the API server alone.
//!
//! `CI=true make test` runs a few seeds, `make siege` as many as it is asked for.

#![expect(
    clippy::print_stdout,
    reason = "which seed broke what, and how many were tried, belongs in the output"
)]

mod archive;
mod dice;
mod grammar;
mod invariant;
mod objects;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use api::RestoredFrom;
use bed::{Bed, wait_until};
use e2e::VELERO;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use self::grammar::{Hostile, hostile, planted};
use self::invariant::{Invariant, Picture, Place, escaped};
use self::objects::HOME;
use crate::dedicated::fenced_velero;
use crate::fence::cluster::{Fenced, TIMEOUT};
use crate::fence::finished::{Forger, folder};
use crate::fence::{MIGRATION, SNAPSHOTS, SOURCES};
use crate::forged::{genuine_backup, tenant_storage};
use crate::imported::forget_looks;

/// The seeds of `CI=true make test`: always the same, whatever the machine's speed.
const SLICE: std::ops::Range<u64> = 0..8;
/// Those of a Velero for tenants alone, which has the same policies and RBAC besides. Velero can read both archives.
const SLICE_OF_DEDICATED: std::ops::Range<u64> = 2..4;

/// How long Velero may take for one restore before it counts as stuck.
const STUCK: Duration = Duration::from_mins(3);

/// Which seeds: `SEEDS=FIRST..END`, if that is set.
fn seeds() -> Option<std::ops::Range<u64>> {
    let asked = std::env::var("SEEDS").ok()?;
    let (first, end) = asked.split_once("..").unwrap_or(("0", &asked));
    Some(first.parse().ok()?..end.parse().ok()?)
}

/// Whose Velero it is.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// Administrators' and tenants': cluster-admin, held by admission policies.
    Shared,
    /// Tenants' alone, held by RBAC as well.
    Dedicated,
}

struct Siege {
    mode: Mode,
    fenced: Fenced,
    invariant: Invariant,
    /// The folder of the backup in the tenant's bucket.
    folder: PathBuf,
    /// What Velero said of all restores, by phase, for the report.
    phases: std::collections::BTreeMap<String, u32>,
}

impl Siege {
    async fn lay(mode: Mode) -> Result<Self> {
        let bed = Bed::builder().velero_flag("--features=EnableCSI");
        // Before Velero ends a restore, it waits so long for claims to be bound, ten minutes by default.
        let bed = bed.velero_flag("--resource-timeout=30s");
        let fenced = match mode {
            Mode::Shared => {
                // With its cache Velero waits for ever for kinds that do not exist (X4).
                let bed = bed.with_idle_velero().velero_flag("--disable-informer-cache=true");
                let bed = bed.api_server_flag("--allow-privileged=true");
                Fenced::prepare(bed, &[SOURCES, SNAPSHOTS, MIGRATION]).await?
            }
            Mode::Dedicated => dedicated(bed).await?,
        };
        let invariant = Invariant::new(&fenced.cluster.bed).await?;
        let folder = fenced.contents.parent().context("a folder")?.to_owned();
        Ok(Self { mode, fenced, invariant, folder, phases: std::collections::BTreeMap::new() })
    }

    /// Writes what a seed makes into the bucket, restores it, and returns what it broke.
    async fn round(&mut self, seed: u64) -> Result<Vec<String>> {
        let hostile = hostile(seed)?;
        self.write(&hostile)?;
        let before = self.invariant.picture().await?;
        let upcoming = self.fenced.upcoming(RestoredFrom::TenantStorage);
        let mut forgers = Vec::new();
        for (suffix, content) in &hostile.of_restore {
            let file = format!("{upcoming}/restore-{upcoming}{suffix}");
            forgers.push(Forger::of(folder(&self.fenced, "restores")?.join(file), content)?);
        }
        let mut spec = hostile.restore;
        spec["backupName"] = json!(self.fenced.backup);
        if self.mode == Mode::Shared {
            // The API server does not put these under admission policies, so there nacre's filters hold alone.
            spec["excludedResources"] = json!(["*.admissionregistration.k8s.io"]);
        }
        let ended = self.fenced.attempt(RestoredFrom::TenantStorage, spec, STUCK).await?;
        drop(forgers);
        let phase = ended.as_ref().and_then(|restore| restore.data["status"]["phase"].as_str());
        *self.phases.entry(phase.unwrap_or("stuck").to_owned()).or_default() += 1;
        if let Some(errors) = ended.as_ref().map(|restore| &restore.data["status"]["validationErrors"]) {
            ensure!(errors.is_null(), "Velero does not take the Restore of seed {seed}: {errors}");
        }
        let (restore, unexpected) = match &ended {
            Some(restore) => (serde_json::to_value(restore)?, None),
            None => self.get_unstuck().await?,
        };
        let after = self.invariant.picture().await?;
        let mut broken = self.invariant.broken(&before, &after, &restore).await?;
        broken.extend(unexpected);
        broken.extend(
            escaped(&self.fenced.cluster.bed)?.into_iter().map(|path| format!("{path} was unpacked")),
        );
        self.invariant.tidy_up(&before, &after).await?;
        Ok(broken)
    }

    fn write(&self, hostile: &Hostile) -> Result<()> {
        let name = &self.fenced.backup;
        std::fs::write(&self.fenced.contents, &hostile.archive)?;
        for (suffix, contents) in &hostile.files {
            std::fs::write(self.folder.join(format!("{name}{suffix}")), contents)?;
        }
        Ok(())
    }

    /// Ends a Restore that Velero does not end and starts Velero again. Returns it as it was, and what is wrong with that,
    /// unless nacre, which is down here, would have ended it.
    async fn get_unstuck(&self) -> Result<(Value, Option<String>)> {
        let bed = &self.fenced.cluster.bed;
        let runs = bed.velero_runs()?;
        bed.velero_stop()?;
        let restores = bed.velero_api("Restore").await?;
        let running = restores.list(&ListParams::default()).await?;
        let stuck = running.iter().find(|restore| !restore.data["status"]["completionTimestamp"].is_string());
        let stuck = serde_json::to_value(stuck.context("a restore that runs")?)?;
        restores
            .delete(stuck["metadata"]["name"].as_str().unwrap_or_default(), &DeleteParams::default())
            .await?;
        bed.velero_start().await?;
        let phase = stuck["status"]["phase"].as_str().unwrap_or_default();
        let unexpected = (!ended_by_nacre(runs, phase)).then(|| {
            let velero = if runs { "runs" } else { "has exited" };
            format!("the restore is {phase:?} after {STUCK:.0?}, and Velero {velero}")
        });
        Ok((stuck, unexpected))
    }

    /// Plants backups by seed, has Velero look at the bucket, and returns what it imported that it should not have.
    async fn import(&self, seeds: std::ops::Range<u64>) -> Result<Vec<String>> {
        let bed = &self.fenced.cluster.bed;
        let genuine: Value = serde_json::from_slice(&std::fs::read(self.folder.join("velero-backup.json"))?)?;
        let backups = self.folder.parent().context("the folder of all backups")?;
        let shaped = |what: &str| format!("{HOME}-{what}-0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f");
        bed.velero_stop()?;
        let before = self.invariant.picture().await?;
        for seed in seeds.clone() {
            let name = match seed % 5 {
                0 => format!("nightly-2030010100{seed:04}"),
                1 => format!("victim-{seed}-0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f"),
                _ => shaped(&format!("i{seed}")),
            };
            plant(backups, &name, &planted(seed, &genuine, &name), &hostile(seed)?)?;
        }
        let control = shaped(&format!("zz{}", seeds.end));
        let mut harmless = genuine;
        harmless["metadata"]["name"] = json!(control);
        harmless["metadata"]["labels"]["openshift.io/oadp-nab-origin-nacuuid"] = json!(control);
        plant(backups, &control, &harmless, &hostile(seeds.end)?)?;
        forget_looks(bed).await?;
        bed.velero_start().await?;
        e2e::imported(bed, &control, 2 * TIMEOUT).await?;
        let after = self.invariant.picture().await?;
        let mut wrong = imported(&before, &after);
        wrong.extend(self.delete_imported(&before, &after).await?);
        for entry in std::fs::read_dir(backups)? {
            let path = entry?.path();
            if path != self.folder {
                std::fs::remove_dir_all(path)?;
            }
        }
        self.invariant.tidy_up(&before, &self.invariant.picture().await?).await?;
        Ok(wrong)
    }

    /// Has Velero delete the hostile backups that it imported, and returns what it did besides.
    async fn delete_imported(&self, before: &Picture, after: &Picture) -> Result<Vec<String>> {
        let bed = &self.fenced.cluster.bed;
        let mark = bed.audit().mark().await?;
        let own = |(resource, ..): &Place| {
            ["backups.velero.io", "deletebackuprequests.velero.io"].contains(&resource.as_str())
        };
        let requests = bed.velero_api("DeleteBackupRequest").await?;
        let new = after.keys().filter(|place| place.0 == "backups.velero.io" && !before.contains_key(*place));
        for (number, (_, _, backup)) in new.enumerate() {
            let name = format!("siege-{number}");
            let request = json!({"apiVersion": "velero.io/v1", "kind": "DeleteBackupRequest",
                "metadata": {"name": name, "namespace": VELERO}, "spec": {"backupName": backup}});
            requests.create(&PostParams::default(), &serde_json::from_value(request)?).await?;
            // It goes with its backup, or says why that cannot be deleted.
            wait_until("the deletion to end", TIMEOUT, requests.clone(), &name, |request| {
                request.is_none_or(|request| request.data["status"]["phase"] == "Processed").then_some(())
            })
            .await
            .with_context(|| format!("deleting {backup}"))?;
        }
        let left = self.invariant.picture().await?;
        let gone = after.keys().filter(|place| !own(place) && !left.contains_key(*place));
        let changed = left.iter().filter(|(place, object)| !own(place) && after.get(*place) != Some(*object));
        let mut wrong: Vec<String> = gone.map(|place| format!("{place:?} went with a backup")).collect();
        wrong.extend(changed.map(|(place, object)| format!("{place:?} is {object} since a deletion")));
        let made = bed.audit().since(mark).await?.only(|request| {
            request.verb == "create"
                && request.resource.starts_with("volumesnapshotcontents")
                && request.code == 201
        });
        wrong.extend(made.as_slice().iter().map(|request| format!("{request:?} deletes a snapshot")));
        Ok(wrong)
    }
}

/// A Velero for tenants alone, installed as an administrator does it.
async fn dedicated(bed: bed::Builder) -> Result<Fenced> {
    let cluster = fenced_velero(bed, &[SOURCES, SNAPSHOTS]).await?;
    let nacre = cluster.start_nacre_in(&cluster.account().await?, &[("FENCE", "true")]).await?;
    let shop = cluster.tenant(HOME, "ada").await?;
    tenant_storage(&cluster, &shop).await?;
    shop.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
    let (backup, contents) = genuine_backup(&cluster, &shop).await?;
    shop.delete::<ConfigMap>("prices").await?;
    drop((nacre, shop));
    let client = cluster.bed.client().await?;
    let uid = Api::<Namespace>::all(client).get(HOME).await?.uid().context("a uid")?;
    Ok(Fenced::on(cluster, backup, uid).await?.with_contents(contents))
}

/// Whether a Restore that does not end is one of those that nacre ends: files of the tenant's make Velero exit while it
/// finishes the restore, and again at each start (X6). That is the only reason known.
fn ended_by_nacre(velero_runs: bool, phase: &str) -> bool {
    !velero_runs && phase.starts_with("Finalizing")
}

fn plant(folder: &Path, name: &str, backup: &Value, hostile: &Hostile) -> Result<()> {
    let folder = folder.join(name);
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("velero-backup.json"), backup.to_string())?;
    std::fs::write(folder.join(format!("{name}.tar.gz")), &hostile.archive)?;
    for (suffix, contents) in &hostile.files {
        std::fs::write(folder.join(format!("{name}{suffix}")), contents)?;
    }
    Ok(())
}

/// The labels that a PodVolumeBackup has.
const OF_VOLUMES: [&str; 3] = ["velero.io/backup-name", "velero.io/backup-uid", "velero.io/pvc-uid"];

/// What is wrong with what Velero imported: anything but backups of the tenant's own that are over and carry nothing but
/// what nacre gives, and volumes of the tenant's own.
fn imported(before: &Picture, after: &Picture) -> Vec<String> {
    let mut wrong = Vec::new();
    for ((resource, namespace, name), object) in
        after.iter().filter(|(place, object)| before.get(*place) != Some(*object))
    {
        let metadata = &object["metadata"];
        let known = |label: &String| {
            ["openshift.io/oadp", "nacre.dev/", "app.kubernetes.io/managed-by", "velero.io/storage-location"]
                .iter()
                .any(|start| label.starts_with(start))
        };
        let labels = metadata["labels"].as_object();
        let bare =
            namespace == VELERO && metadata["finalizers"].is_null() && metadata["ownerReferences"].is_null();
        let fine = bare
            && match resource.as_str() {
                "backups.velero.io" => {
                    name.starts_with(&format!("{HOME}-"))
                        && object["spec"]["includedNamespaces"] == json!([HOME])
                        && object["spec"]["includeClusterResources"] != true
                        && labels.is_some_and(|labels| labels.keys().all(known))
                }
                // A volume of the tenant's own, in its own storage. Velero gives it the uid of the backup it came with.
                "podvolumebackups.velero.io" => {
                    let storage = object["spec"]["backupStorageLocation"].as_str().unwrap_or_default();
                    object["spec"]["pod"]["namespace"] == HOME
                        && storage.starts_with(&format!("{HOME}-"))
                        && labels
                            .is_some_and(|labels| labels.keys().all(|label| OF_VOLUMES.contains(&&**label)))
                }
                _ => false,
            };
        if !fine {
            wrong.push(format!("{resource} {namespace}/{name} was imported as {object}"));
        }
    }
    wrong
}

/// Restores what the seeds make, and fails if anything was broken.
async fn besiege(mode: Mode, slice: std::ops::Range<u64>) -> Result<()> {
    let asked = seeds();
    let long = asked.is_some();
    let mut siege = Siege::lay(mode).await?;
    siege.fenced.fence_is_there().await?;
    let start = Instant::now();
    let mut done = 0;
    let mut found = Vec::new();
    for seed in asked.unwrap_or_else(|| slice.clone()) {
        let mut broken = siege.round(seed).await.with_context(|| format!("seed {seed}"))?;
        if long && seed % 50 == 49 {
            broken.extend(siege.import(seed - 49..seed).await?);
        }
        for one in broken {
            println!("seed {seed}: {}", one.chars().take(600).collect::<String>());
            found.push(seed);
        }
        done += 1;
    }
    if !long {
        let wrong = siege.import(slice.clone()).await?;
        found.extend(wrong.into_iter().inspect(|one| println!("{one}")).map(|_| slice.end));
    }
    println!("{done} hostile buckets in {:.0?}, ended as {:?}", start.elapsed(), siege.phases);
    ensure!(found.is_empty(), "broken by the seeds {found:?}");
    ensure!(done > 0, "no restore at all: SEEDS is empty");
    Ok(())
}

/// X2: hostile buckets by seed: archives, metadata and result files mutated at random, restored with the widest Restore,
/// imported and deleted
/// in make test: 8 seeds
#[tokio::test(flavor = "multi_thread")]
async fn x2_no_hostile_bucket_changes_anything_outside_or_brings_anything_privileged() -> Result<()> {
    besiege(Mode::Shared, SLICE).await
}

/// The policies of both modes are the same but for what RBAC adds.
/// in make test: 2 seeds
#[tokio::test(flavor = "multi_thread")]
async fn x2_nor_where_velero_is_for_tenants_alone() -> Result<()> {
    besiege(Mode::Dedicated, SLICE_OF_DEDICATED).await
}

#[test]
fn only_a_restore_that_velero_exits_over_is_left_to_nacre() {
    assert!(ended_by_nacre(false, "Finalizing") && ended_by_nacre(false, "FinalizingPartiallyFailed"));
    assert!(!ended_by_nacre(true, "Finalizing") && !ended_by_nacre(true, "InProgress"));
    assert!(!ended_by_nacre(false, "InProgress") && !ended_by_nacre(false, ""));
}

/// The planted weakness: without the fence the same seeds break in.
/// planted: the policies around Velero are not in force
#[tokio::test(flavor = "multi_thread")]
async fn x2_without_the_fence_hostile_buckets_break_in() -> Result<()> {
    let mut siege = Siege::lay(Mode::Shared).await?;
    siege.fenced.take_the_fence_away().await?;
    let expected = ["is new", "could not be created by the tenant", "is privileged", "from elsewhere"];
    let mut broken = Vec::new();
    for seed in 0..40 {
        broken.extend(siege.round(seed).await?);
        if expected.iter().all(|what| broken.iter().any(|one: &String| one.contains(what))) {
            return Ok(());
        }
    }
    bail!("not all of {expected:?} are in {broken:#?}")
}
