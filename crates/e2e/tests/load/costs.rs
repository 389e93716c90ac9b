//! What the fence costs: a restore of a thousand objects with it and without it, where the namespace has five thousand old
//! Restores, for a Velero that administrators and tenants share and for one that is tenants' alone; and what Velero's flag
//! `--disable-informer-cache` costs, which a Velero for tenants alone needs.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use api::{RestoredFrom, restore_name};
use bed::{Bed, eventually, wait_until};
use e2e::{TestCluster, VELERO, deploy, refused_by};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use k8s_openapi::api::apps::v1::Deployment as DeploymentKind;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_mins(10);

/// Which of nacre's policies are in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policies {
    None,
    /// Those of a Velero that administrators and tenants share.
    Shared,
    /// Those, and in addition those of a Velero for tenants alone.
    Dedicated,
}

const ALL: [Policies; 3] = [Policies::None, Policies::Shared, Policies::Dedicated];

/// What is restored: a kind that few policies look at, and one with a pod in it, that most do. Without replicas no
/// controller does anything about it.
#[derive(Clone, Copy, Debug)]
enum What {
    ConfigMap,
    Deployment,
}

impl What {
    /// One after the other.
    const fn of(number: usize) -> Self {
        if number.is_multiple_of(2) { Self::ConfigMap } else { Self::Deployment }
    }

    fn api(self, client: Client, namespace: &str) -> Api<DynamicObject> {
        let kind = match self {
            Self::ConfigMap => ApiResource::erase::<ConfigMap>(&()),
            Self::Deployment => ApiResource::erase::<DeploymentKind>(&()),
        };
        Api::namespaced_with(client, namespace, &kind)
    }

    fn object(self, metadata: &Value) -> Result<DynamicObject> {
        let spec = json!({"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}});
        let object = match self {
            Self::ConfigMap => {
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}})
            }
            Self::Deployment => {
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
            }
        };
        Ok(serde_json::from_value(object)?)
    }
}

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
        stream::iter(0..objects)
            .map(|number| {
                let what = What::of(number);
                let api = what.api(shop.client.clone(), "shop");
                async move {
                    let object = what.object(&json!({"name": format!("one-{number}")}))?;
                    anyhow::Ok(api.create(&PostParams::default(), &object).await?)
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
            "spec": {"includedNamespaces": ["shop"], "includedResources": ["configmaps", "deployments.apps"]}});
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

    /// How many objects there are in the namespace.
    async fn count(&self) -> Result<usize> {
        let mut all = 0;
        for what in [What::ConfigMap, What::Deployment] {
            all += what.api(self.client.clone(), "shop").list(&ListParams::default()).await?.items.len();
        }
        Ok(all)
    }

    /// Empties the namespace, but for the API server's own certificate.
    async fn no_objects(&self) -> Result<()> {
        for what in [What::ConfigMap, What::Deployment] {
            let api = what.api(self.client.clone(), "shop");
            api.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
        }
        eventually("the namespace to be empty", TIMEOUT, async || {
            let left = self.count().await?;
            ensure!(left <= 1, "{left} are left");
            anyhow::Ok(())
        })
        .await
    }

    /// How long each of so many objects takes a client that writes what Velero writes and does nothing else: one request
    /// to create it, and one to change it.
    async fn write(&self, what: What, objects: usize) -> Result<Vec<Duration>> {
        self.no_objects().await?;
        let velero = self.cluster.bed.service_account_client(VELERO, "velero").await?;
        let api = what.api(velero, "shop");
        let label = json!({"velero.io/restore-name": self.restore_named(1)});
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"changed": "true"}}}));
        let mut times = Vec::new();
        for number in 0..objects {
            let name = format!("one-{number}");
            let object = what.object(&json!({"name": name, "labels": label}))?;
            let start = Instant::now();
            api.create(&PostParams::default(), &object).await?;
            api.patch(&name, &PatchParams::default(), &patch).await?;
            times.push(start.elapsed());
        }
        Ok(times)
    }

    /// How long Velero takes to bring everything back into the empty namespace.
    async fn restore(&self, number: usize) -> Result<Duration> {
        self.no_objects().await?;
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
        let back = self.count().await?;
        ensure!(back >= self.objects, "only {back} objects came back");
        Ok(took)
    }

    /// Puts these of nacre's policies in force and no others, and waits until that is so.
    async fn fence(&self, policies: Policies) -> Result<()> {
        let bed = &self.cluster.bed;
        if policies != Policies::None {
            bed.apply_path(&deploy("admission.yaml")).await?;
        }
        if policies == Policies::Dedicated {
            bed.apply_yaml(&dedicated_policies().await?).await?;
        }
        let bindings = Api::<ValidatingAdmissionPolicyBinding>::all(self.client.clone());
        let unwanted = |name: &String| match policies {
            Policies::None => name.starts_with("nacre-"),
            Policies::Shared => name.starts_with(OF_DEDICATED),
            Policies::Dedicated => false,
        };
        let found = bindings.list(&ListParams::default()).await?;
        for name in found.iter().map(ResourceExt::name_any).filter(unwanted) {
            bindings.delete(&name, &DeleteParams::default()).await?;
        }
        let velero = bed.service_account_client(VELERO, "velero").await?;
        // Each is refused by one of the two sets alone.
        let label = json!({"name": "probe", "labels": {"velero.io/restore-name": self.restore_named(0)}});
        let labelled = What::ConfigMap.object(&label)?;
        let mut wide = What::Deployment.object(&json!({"name": "probe"}))?;
        wide.data["spec"]["template"]["spec"]["hostNetwork"] = json!(true);
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        eventually("the policies to be as asked", TIMEOUT, async || {
            let answer = What::ConfigMap.api(velero.clone(), "default").create(&dry, &labelled).await;
            match policies {
                Policies::None => drop(answer?),
                Policies::Shared | Policies::Dedicated => refused_by("nacre-restored-objects", answer)?,
            }
            let answer = What::Deployment.api(velero.clone(), "default").create(&dry, &wide).await;
            match policies {
                Policies::Dedicated => refused_by("nacre-dedicated-pods", answer),
                Policies::None | Policies::Shared => Ok(answer.map(drop)?),
            }
        })
        .await
    }
}

/// How the names of the policies of a Velero for tenants alone begin.
const OF_DEDICATED: &str = "nacre-dedicated-";

/// These policies and their bindings, as `install --fence` creates them.
async fn dedicated_policies() -> Result<String> {
    let output = tokio::process::Command::new(e2e::command_line()?)
        .args(["render", "-n", VELERO, "--fence", "--image", "nacre:test"])
        .kill_on_drop(true)
        .output()
        .await?;
    ensure!(output.status.success(), "render: {}", String::from_utf8_lossy(&output.stderr));
    let all = String::from_utf8(output.stdout)?;
    let own: Vec<&str> =
        all.split("---\n").filter(|one| one.contains(&format!("name: {OF_DEDICATED}"))).collect();
    ensure!(own.len() == 6, "three policies and their bindings: {own:?}");
    Ok(own.join("---\n"))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Velero sends a hundred requests a second by default. Without that limit more of the fence is seen.
const UNLIMITED: [&str; 2] = ["--client-qps=5000", "--client-burst=5000"];

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

/// How much slower a restore of a thousand objects is with each of the fences, where there are five thousand old Restores. In
/// turns with and without, so that a machine that gets slower does so for all.
async fn slower_with_the_fence(flags: &[&str], turns: usize) -> Result<[f64; 2]> {
    let shop = Shop::with(1000, flags).await?;
    shop.old_restores(5000).await?;
    // The first one is slow whatever there is.
    shop.restore(1).await?;
    let mut times = [const { Vec::new() }; 3];
    for turn in 0..turns {
        for (position, policies) in ALL.into_iter().enumerate() {
            shop.fence(policies).await?;
            times[position].push(shop.restore(10 + 3 * turn + position).await?);
        }
    }
    println!("1000 objects, 5000 old Restores, {flags:?}: {ALL:?}\n{times:.2?}");
    let [none, shared, dedicated] = times.map(median);
    let slower = [ratio(shared, none), ratio(dedicated, none)];
    println!("without {none:.2?}, shared {shared:.2?}, dedicated {dedicated:.2?}, {slower:.3?} of that");
    Ok(slower)
}

/// The same without Velero, whose own work and limit of requests hide much of what the API server does. In turns of a few
/// hundred objects, of which the one in the middle counts.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_fence_costs_the_api_server_is_known() -> Result<()> {
    let shop = Shop::empty(&[]).await?;
    shop.old_restores(5000).await?;
    for what in [What::ConfigMap, What::Deployment] {
        shop.write(what, 300).await?;
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..4 {
            for (position, policies) in ALL.into_iter().enumerate() {
                shop.fence(policies).await?;
                times[position].extend(shop.write(what, 500).await?);
            }
        }
        let [none, shared, dedicated] = times.map(median);
        println!(
            "a {what:?}, created and changed: {none:.2?} without the fence, {shared:.2?} shared ({:.3}), {dedicated:.2?} \
             dedicated ({:.3})",
            ratio(shared, none),
            ratio(dedicated, none)
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fence_makes_a_restore_of_a_thousand_objects_hardly_slower() -> Result<()> {
    for slower in slower_with_the_fence(&[], 3).await? {
        ensure!(slower <= 1.05, "more than 5 % slower: {slower:.3}");
    }
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
    println!("with the cache {:.2?}, without {:.2?} ({:.2})", took[0], took[1], ratio(took[1], took[0]));
    Ok(())
}
