//! What the fence costs: a restore of a thousand objects with it and without it, where the namespace has five thousand old
//! Restores; and what Velero's flag `--disable-informer-cache` costs, which a Velero for tenants alone needs.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use api::{RestoredFrom, restore_name};
use bed::{Bed, eventually, wait_until};
use e2e::{TestCluster, VELERO, deploy, refused_by};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

const TIMEOUT: Duration = Duration::from_mins(10);

/// A cluster with a backup of so many objects of a namespace.
struct Shop {
    cluster: TestCluster,
    client: Client,
    nacre: Client,
    uid: String,
    objects: usize,
}

impl Shop {
    /// With a Velero that does nothing yet.
    async fn empty(flags: &[&str]) -> Result<Self> {
        let bed = Bed::builder().with_idle_velero();
        let cluster =
            TestCluster::build_on(flags.iter().fold(bed, |bed, flag| bed.velero_flag(flag))).await?;
        cluster.admission().await?;
        let client = cluster.bed.client().await?;
        cluster.bed.namespace("shop").await?;
        let uid = Api::<Namespace>::all(client.clone()).get("shop").await?.uid().context("a uid")?;
        let nacre = cluster.bed.service_account_client(VELERO, "non-admin-controller").await?;
        Ok(Self { cluster, client, nacre, uid, objects: 0 })
    }

    async fn with(objects: usize, flags: &[&str]) -> Result<Self> {
        let shop = Self { objects, ..Self::empty(flags).await? };
        shop.cluster.bed.velero_start().await?;
        let maps = Api::<ConfigMap>::namespaced(shop.client.clone(), "shop");
        stream::iter(0..objects)
            .map(|number| {
                let map = json!({"metadata": {"name": format!("map-{number}")}, "data": {"a": "b"}});
                let maps = &maps;
                async move {
                    anyhow::Ok(maps.create(&PostParams::default(), &serde_json::from_value(map)?).await?)
                }
            })
            .buffer_unordered(20)
            .try_for_each(async |_| Ok(()))
            .await?;
        shop.back_up().await?;
        Ok(shop)
    }

    async fn back_up(&self) -> Result<()> {
        let backup = json!({"apiVersion": "velero.io/v1", "kind": "Backup", "metadata": {"name": "all", "namespace": VELERO},
            "spec": {"includedNamespaces": ["shop"], "includedResources": ["configmaps"]}});
        let backups = self.cluster.bed.velero_api("Backup").await?;
        backups.create(&PostParams::default(), &serde_json::from_value(backup)?).await?;
        let phase = wait_until("the backup to end", TIMEOUT, backups, "all", |backup| {
            let status = &backup?.data["status"];
            status["completionTimestamp"].as_str().and_then(|_| status["phase"].as_str().map(str::to_owned))
        })
        .await?;
        ensure!(phase == "Completed", "the backup ended as {phase}");
        Ok(())
    }

    fn restore_named(&self, number: usize) -> String {
        let uid = format!("00000000-0000-4000-8000-{number:012}");
        restore_name(RestoredFrom::TenantStorage, ("shop", &self.uid), (&format!("r{number}"), &uid))
    }

    fn restores(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.nacre.clone(), VELERO, &api::Kind::Restore.resource())
    }

    /// Restores that are over, of tenants.
    async fn old_restores(&self, many: usize) -> Result<()> {
        let restores = self.restores();
        stream::iter(0..many)
            .map(|number| {
                let name = self.restore_named(1_000_000 + number);
                let old = json!({"apiVersion": "velero.io/v1", "kind": "Restore",
                    "metadata": {"name": name, "labels": {"openshift.io/oadp-nar-origin-nacuuid": name}},
                    "spec": {"backupName": "all"}, "status": {"phase": "Completed",
                    "completionTimestamp": "2026-01-01T00:00:00Z"}});
                let restores = &restores;
                async move {
                    anyhow::Ok(restores.create(&PostParams::default(), &serde_json::from_value(old)?).await?)
                }
            })
            .buffer_unordered(20)
            .try_for_each(async |_| Ok(()))
            .await
    }

    /// The objects of the namespace, of which there are none now.
    async fn no_objects(&self) -> Result<Api<ConfigMap>> {
        let maps = Api::<ConfigMap>::namespaced(self.client.clone(), "shop");
        maps.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
        eventually("the namespace to be empty", TIMEOUT, async || {
            let left = maps.list(&ListParams::default().limit(2)).await?.items.len();
            ensure!(left <= 1, "{left} are left");
            anyhow::Ok(())
        })
        .await?;
        Ok(maps)
    }

    /// How long each of so many objects takes a client that writes what Velero writes and does nothing else: one request
    /// to create it, and one to change it.
    async fn write(&self, objects: usize) -> Result<Vec<Duration>> {
        self.no_objects().await?;
        let velero = self.cluster.bed.service_account_client(VELERO, "velero").await?;
        let maps = Api::<ConfigMap>::namespaced(velero, "shop");
        let label = json!({"velero.io/restore-name": self.restore_named(1)});
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"changed": "true"}}}));
        let mut times = Vec::new();
        for number in 0..objects {
            let name = format!("map-{number}");
            let map = json!({"metadata": {"name": name, "labels": label}, "data": {"a": "b"}});
            let map = serde_json::from_value(map)?;
            let start = Instant::now();
            maps.create(&PostParams::default(), &map).await?;
            maps.patch(&name, &PatchParams::default(), &patch).await?;
            times.push(start.elapsed());
        }
        Ok(times)
    }

    /// How long Velero takes to bring everything back into the empty namespace.
    async fn restore(&self, number: usize) -> Result<Duration> {
        let maps = self.no_objects().await?;
        let name = self.restore_named(number);
        let restore = json!({"apiVersion": "velero.io/v1", "kind": "Restore",
            "metadata": {"name": name, "labels": {"openshift.io/oadp-nar-origin-nacuuid": name}}, "spec": {"backupName": "all"}});
        let start = Instant::now();
        self.restores().create(&PostParams::default(), &serde_json::from_value(restore)?).await?;
        wait_until("the restore to end", TIMEOUT, self.restores(), &name, |restore| {
            restore?.data["status"]["completionTimestamp"].as_str().map(|_| ())
        })
        .await?;
        let took = start.elapsed();
        let back = maps.list(&ListParams::default()).await?.items.len();
        ensure!(back >= self.objects, "only {back} objects came back");
        Ok(took)
    }

    /// Puts nacre's policies in force or takes all of them away, and waits until that is so.
    async fn fence(&self, up: bool) -> Result<()> {
        if up {
            self.cluster.bed.apply_path(&deploy("admission.yaml")).await?;
        } else {
            let bindings = Api::<ValidatingAdmissionPolicyBinding>::all(self.client.clone());
            let found = bindings.list(&ListParams::default()).await?;
            let own = found.iter().map(ResourceExt::name_any).filter(|name| name.starts_with("nacre-"));
            for name in own {
                bindings.delete(&name, &DeleteParams::default()).await?;
            }
        }
        let velero = Api::<ConfigMap>::namespaced(
            self.cluster.bed.service_account_client(VELERO, "velero").await?,
            "default",
        );
        let label = self.restore_named(0);
        let probe = json!({"metadata": {"name": "probe", "labels": {"velero.io/restore-name": label}}});
        let probe = serde_json::from_value(probe)?;
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        eventually("the fence to be as asked", TIMEOUT, async || {
            let answer = velero.create(&dry, &probe).await;
            if up { refused_by("nacre-restored-objects", answer) } else { Ok(answer.map(drop)?) }
        })
        .await
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Velero sends a hundred requests a second by default. Without that limit more of the fence is seen.
const UNLIMITED: [&str; 2] = ["--client-qps=5000", "--client-burst=5000"];

/// How much slower a restore of a thousand objects is with the fence, where there are five thousand old Restores. Pairs of
/// one with it and one without, so that a machine that gets slower does so for both.
async fn slower_with_the_fence(flags: &[&str], pairs: usize) -> Result<f64> {
    let shop = Shop::with(1000, flags).await?;
    shop.old_restores(5000).await?;
    // The first one is slow whatever there is.
    shop.restore(1).await?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        shop.fence(true).await?;
        with.push(shop.restore(10 + 2 * pair).await?);
        shop.fence(false).await?;
        without.push(shop.restore(11 + 2 * pair).await?);
    }
    println!("with the fence: {with:.2?}\nwithout:        {without:.2?}");
    let (with, without) = (median(with), median(without));
    let ratio = with.as_secs_f64() / without.as_secs_f64();
    println!(
        "1000 objects, 5000 old Restores, {flags:?}: {with:.2?} with the fence, {without:.2?} without ({ratio:.3})"
    );
    Ok(ratio)
}

/// The same without Velero, whose own work and limit of requests hide much of what the API server does. In turns of a few
/// hundred objects, of which the one in the middle counts.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_fence_costs_the_api_server_is_known() -> Result<()> {
    let shop = Shop::empty(&[]).await?;
    shop.old_restores(5000).await?;
    shop.write(300).await?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        shop.fence(true).await?;
        with.extend(shop.write(500).await?);
        shop.fence(false).await?;
        without.extend(shop.write(500).await?);
    }
    let (with, without) = (median(with), median(without));
    let ratio = with.as_secs_f64() / without.as_secs_f64();
    println!("an object, created and changed: {with:.2?} with the fence, {without:.2?} without ({ratio:.3})");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fence_makes_a_restore_of_a_thousand_objects_hardly_slower() -> Result<()> {
    let ratio = slower_with_the_fence(&[], 3).await?;
    ensure!(ratio <= 1.05, "more than 5 % slower: {ratio:.3}");
    Ok(())
}

/// For the record: what it costs where nothing else takes time.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_fence_costs_a_velero_without_limit_of_requests_is_known() -> Result<()> {
    slower_with_the_fence(&UNLIMITED, 5).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_velero_without_its_cache_costs_is_known() -> Result<()> {
    let mut took = Vec::new();
    for cache in ["--disable-informer-cache=false", "--disable-informer-cache=true"] {
        let shop = Shop::with(5000, &[&UNLIMITED[..], &[cache]].concat()).await?;
        let mut times = Vec::new();
        for number in 1..=3 {
            times.push(shop.restore(number).await?);
        }
        println!("a restore of 5000 objects with {cache}: {times:.2?}");
        took.push(median(times));
    }
    let ratio = took[1].as_secs_f64() / took[0].as_secs_f64();
    println!("with the cache {:.2?}, without {:.2?} ({ratio:.2})", took[0], took[1]);
    Ok(())
}
