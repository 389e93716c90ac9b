//! Which extra fields of users are recorded, on the real API server: the policy says so, at any time, and nobody forges or
//! drops one while nacre is down.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::{NonAdminBackup, labels};
use bed::eventually;
use e2e::{TestCluster, VELERO, deploy, refused_by};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::requester::record;

const POLICY: &str = "nacre-requester";
const LIST: &str = "nacre-requester";
const TIMEOUT: Duration = Duration::from_mins(3);

pub(crate) const TEAM: &str = "example.com/team";
/// With what JSON and the policies put between fields.
pub(crate) const VALUES: [&str; 2] = ["a\"],", "b"];

/// Requests of somebody with extra fields.
pub(crate) async fn requests(test_cluster: &TestCluster, user: &str) -> Result<Api<NonAdminBackup>> {
    let extra = [(TEAM, VALUES[0]), (TEAM, VALUES[1]), ("cost", "1"), ("other", "o")];
    let client = test_cluster.bed.client_with_extra(user, &["system:masters"], &extra).await?;
    Ok(Api::namespaced(client, "shop"))
}

/// A request, and with it this record.
pub(crate) fn backup(name: &str, record: Option<&str>) -> Result<NonAdminBackup> {
    let annotations = record.map(|record| json!({ labels::REQUESTER: record }));
    Ok(serde_json::from_value(json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
        "metadata": {"name": name, "annotations": annotations}, "spec": {"backupSpec": {}}}))?)
}

/// What would be recorded of somebody who makes a request with this record.
async fn recorded(requests: &Api<NonAdminBackup>, by_hand: Option<&str>) -> Result<String> {
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let made = requests.create(&dry, &backup("probe", by_hand)?).await?;
    Ok(record(&made).context("no record")?.clone())
}

/// Waits until these extra fields are recorded, and returns the record.
pub(crate) async fn until_recorded(requests: &Api<NonAdminBackup>, keys: &[&str]) -> Result<String> {
    eventually("the extra fields to be recorded", TIMEOUT, async || {
        let text = recorded(requests, None).await?;
        let read: Value = serde_json::from_str(&text)?;
        let found: Vec<&String> = read["extra"].as_object().into_iter().flat_map(|all| all.keys()).collect();
        ensure!(found == keys, "{text}");
        ensure!(keys.is_empty() || read["extra"][TEAM] == json!(VALUES), "{text}");
        Ok(text)
    })
    .await
}

/// Records that are not the requester's own: forged, and with a field dropped where a list has it.
pub(crate) fn forgeries(own: &str) -> [String; 4] {
    let value = own.replace(r#""b"]"#, r#""root"]"#);
    let more = own.replace(r#""extra":{"#, r#""extra":{"role":["root"],"#);
    let last = own.replace("]}}", r#"],"role":["root"]}}"#);
    let another = own.replace(r#""user":""#, r#""user":"x"#);
    [value, more, last, another]
}

/// A record that repeats a field that is true until it is longer than nacre reads.
fn without_end(bare: &str, with_field: &str) -> Result<String> {
    let beginning = bare.strip_suffix('}').context("a record")?;
    let field = with_field.strip_prefix(&format!(r#"{beginning},"extra":{{"#)).context("extra fields")?;
    let field = field.strip_suffix("}}").context("an end")?;
    Ok(format!(r#"{beginning},"extra":{{{}}}}}"#, vec![field; 3000].join(",")))
}

/// E1: extra fields of a forged record: changed, added and dropped while nacre is down
#[tokio::test(flavor = "multi_thread")]
async fn e1_the_policy_says_which_extra_fields_are_recorded_and_nobody_forges_or_drops_them() -> Result<()> {
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    test_cluster.admission().await?;
    test_cluster.record_requesters().await?;
    test_cluster.tenant("shop", "ada").await?;
    let (ann, eve) = (requests(&test_cluster, "ann").await?, requests(&test_cluster, "eve").await?);
    let lists = test_cluster.admin::<ConfigMap>().await?;

    // Without a list, and by a policy without one, none are recorded.
    let bare = until_recorded(&ann, &[]).await?;
    let nacre = test_cluster.start_nacre().await?;
    // Another list counts without another installation.
    test_cluster.set_policy(&format!("requester: {{extra: [{TEAM}]}}")).await?;
    let one = until_recorded(&ann, &[TEAM]).await?;
    test_cluster.set_policy(&format!("requester: {{extra: [{TEAM}, cost]}}")).await?;
    let own = until_recorded(&ann, &["cost", TEAM]).await?;
    ensure!(!own.contains("other"), "{own}");
    // Installing again changes nothing about it.
    for part in ["admission.yaml", "requester.yaml"] {
        test_cluster.bed.apply_path(&deploy(part)).await?;
    }
    test_cluster.until_policies_are_in_force().await?;
    ensure!(recorded(&ann, None).await? == own);

    // nacre is down: the API server writes the truth over whatever is set by hand, and lets nobody change it later.
    nacre.process.kill().await?;
    let written = forgeries(&own);
    for by_hand in written.iter().chain([&bare, &one]) {
        ensure!(recorded(&ann, Some(by_hand)).await? == own, "{by_hand}");
    }
    ann.create(&PostParams::default(), &backup("daily", None)?).await?;
    for by_hand in written.iter().chain([&bare, &one]) {
        let change = Patch::Merge(json!({"metadata": {"annotations": {labels::REQUESTER: by_hand}}}));
        for somebody in [&ann, &eve] {
            refused_by(POLICY, somebody.patch("daily", &PatchParams::default(), &change).await)?;
        }
    }

    // Without the ConfigMap nobody is locked out, no field is recorded, and still nothing can be forged.
    lists.delete(LIST, &DeleteParams::default()).await?;
    until_recorded(&ann, &[]).await?;
    let unseen = [without_end(&bare, &one)?, r#"{"user":""}"#.to_owned()];
    for forged in written.iter().chain(&unseen) {
        ensure!(recorded(&ann, Some(forged)).await? == bare, "{forged}");
    }
    let label = Patch::Merge(json!({"metadata": {"labels": {"team": "a"}}}));
    ann.patch("daily", &PatchParams::default(), &label).await?;
    // nacre brings it back.
    let _nacre = test_cluster.start_nacre().await?;
    ensure!(until_recorded(&ann, &["cost", TEAM]).await? == own);
    // A list that is empty again needs no ConfigMap, but the one that is there says so.
    test_cluster.set_policy("requester: {extra: []}").await?;
    ensure!(until_recorded(&ann, &[]).await? == bare);
    ensure!(lists.get(LIST).await?.metadata.namespace.as_deref() == Some(VELERO));
    Ok(())
}
