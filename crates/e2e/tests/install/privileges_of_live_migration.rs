//! Live migration: everything that nacre maintains is changed and removed, and grants expire.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use bed::{Bed, eventually};
use e2e::{Rights, TestCluster};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::life::nacre;

const TIMEOUT: Duration = Duration::from_mins(2);
const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
/// What nacre is given for it.
const ROLE: &str = "nacre:migration-controller";

/// What is kept, and how it can be bent.
fn kinds() -> [(&'static str, &'static str, Value); 6] {
    let ours = json!({"namespaceSelector": {"matchLabels": {"not": "all"}}});
    [
        (RBAC, "ClusterRole", json!({"rules": []})),
        (RBAC, "ClusterRoleBinding", json!({"subjects": []})),
        (ADMISSION, "ValidatingAdmissionPolicy", json!({"spec": {"failurePolicy": "Ignore"}})),
        (ADMISSION, "ValidatingAdmissionPolicyBinding", json!({"spec": {"validationActions": ["Audit"]}})),
        (ADMISSION, "MutatingAdmissionPolicy", json!({"spec": {"failurePolicy": "Fail"}})),
        (ADMISSION, "MutatingAdmissionPolicyBinding", json!({"spec": {"matchResources": ours}})),
    ]
}

const OF_KUBEVIRT: [&str; 3] = ["kubevirt.io:admin", "kubevirt.io:edit", "kubevirt.io:view"];

/// These rules, and one more that permits to migrate.
fn migrating(rules: &Value) -> Value {
    let resources = ["virtualmachineinstancemigrations"];
    let more = json!({"apiGroups": ["kubevirt.io"], "resources": resources, "verbs": ["create"]});
    let rules = rules.as_array().into_iter().flatten().chain([&more]);
    json!({"rules": rules.collect::<Vec<_>>()})
}

fn is_kept(name: &str) -> bool {
    OF_KUBEVIRT.contains(&name)
        || name == "kubevirt.io:migrate"
        || name == "nacre:migration-infrastructure"
        || name.starts_with("nacre-migration-")
}

async fn api(bed: &Bed, group: &str, kind: &str) -> Result<Api<DynamicObject>> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    let plural = resource.plural.replace("policys", "policies");
    Ok(Api::all_with(bed.client().await?, &ApiResource { plural, ..resource }))
}

/// Everything that is kept, by kind and name.
async fn kept(bed: &Bed) -> Result<BTreeMap<(&'static str, String), Value>> {
    let mut all = BTreeMap::new();
    for (group, kind, _) in kinds() {
        for object in api(bed, group, kind).await?.list(&ListParams::default()).await?.items {
            if is_kept(&object.name_any()) {
                let said =
                    ["rules", "aggregationRule", "subjects", "spec"].map(|part| object.data[part].clone());
                all.insert((kind, object.name_any()), json!(said));
            }
        }
    }
    Ok(all)
}

async fn come_back(bed: &Bed, wanted: &BTreeMap<(&'static str, String), Value>, after: &str) -> Result<()> {
    eventually(&format!("everything to be as it was after it was {after}"), TIMEOUT, async || {
        let found = kept(bed).await?;
        let differs: Vec<_> = wanted
            .iter()
            .filter(|(name, object)| found.get(name) != Some(object))
            .map(|(name, _)| name)
            .collect();
        ensure!(differs.is_empty(), "{differs:?}");
        anyhow::Ok(())
    })
    .await
}

async fn ask_for(bed: &Bed, guard: &str) -> Result<()> {
    let settings = Api::<ConfigMap>::namespaced(bed.client().await?, "kube-system");
    let change = Patch::Merge(json!({"data": {"guard": guard}}));
    settings.patch("nacre-migration", &PatchParams::default(), &change).await?;
    Ok(())
}

/// Sets it up, as an administrator does.
pub(crate) async fn set_up(test_cluster: &TestCluster) -> Result<()> {
    test_cluster.bed.apply_yaml(include_str!("../live_migration/kubevirt-crds.yaml")).await?;
    let (success, said, words) =
        nacre(&test_cluster.bed, &["migration", "install", "--guard", "deny"]).await?;
    ensure!(success, "{said}{words}");
    Ok(())
}

/// What nacre is given for it, as it is in the cluster.
pub(crate) async fn rights(bed: &Bed) -> Result<Rights> {
    let mut texts = Vec::new();
    for kind in ["clusterrole", "clusterrolebinding", "role", "rolebinding"] {
        texts.push(bed.kubectl(&["get", kind, ROLE, "-n", "kube-system", "-o", "yaml"]).await?.ok()?);
    }
    Rights::read(&bed::parse_manifests(&texts.join("---\n"))?, "non-admin-controller")
}

/// Bends and removes all of it, takes the guard down and puts it up again, and lets grants end.
pub(crate) async fn is_looked_after(test_cluster: &TestCluster) -> Result<()> {
    let bed = &test_cluster.bed;
    let wanted = kept(bed).await?;
    ensure!(wanted.len() == 26, "{:#?}", wanted.keys());
    for place in [&["-n", "shop"][..], &["--cluster"]] {
        let grant = ["migration", "grant", "--user", "guest", "--expires", "1s"];
        let (success, said, words) = nacre(bed, &[&grant[..], place].concat()).await?;
        ensure!(success, "{said}{words}");
    }
    for (group, kind, bend) in kinds() {
        let api = api(bed, group, kind).await?;
        for ((_, name), object) in wanted.iter().filter(|((one, _), _)| *one == kind) {
            // KubeVirt's own roles are KubeVirt's but for what migrates.
            let change =
                if OF_KUBEVIRT.contains(&name.as_str()) { migrating(&object[0]) } else { bend.clone() };
            api.patch(name, &PatchParams::default(), &Patch::Merge(&change)).await?;
        }
    }
    come_back(bed, &wanted, "bent").await?;
    for (group, kind, _) in kinds() {
        let api = api(bed, group, kind).await?;
        for (_, name) in wanted.keys().filter(|(one, _)| *one == kind) {
            api.delete(name, &DeleteParams::default()).await?;
        }
    }
    come_back(bed, &wanted, "removed").await?;

    ask_for(bed, "off").await?;
    eventually("the guard to go", TIMEOUT, async || {
        let left = kept(bed).await?;
        ensure!(left.len() == 6, "{:#?}", left.keys());
        anyhow::Ok(())
    })
    .await?;
    ask_for(bed, "deny").await?;
    come_back(bed, &wanted, "taken down").await?;

    // A label of an administrator's is remembered.
    let label = Patch::Merge(json!({"metadata": {"labels": {"team": "tea"}}}));
    api(bed, RBAC, "ClusterRole")
        .await?
        .patch("kubevirt.io:migrate", &PatchParams::default(), &label)
        .await?;
    let settings = Api::<ConfigMap>::namespaced(bed.client().await?, "kube-system");
    bed::wait_until("the label to be remembered", TIMEOUT, settings, "nacre-migration", |config| {
        config?.data.as_ref()?.get("rememberedLabels")?.contains("tea").then_some(())
    })
    .await?;
    eventually("the grants to end", TIMEOUT, async || {
        let left =
            bed.kubectl(&["get", "rolebindings,clusterrolebindings", "-A", "-o", "name"]).await?.ok()?;
        ensure!(!left.contains("nacre:migrate:"), "{left}");
        anyhow::Ok(())
    })
    .await
}
