//! The control plane: users, permissions, manifests and the audit log.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use bed::{Bed, wait_until};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::sync::OnceCell;

async fn bed() -> Result<&'static Bed> {
    static BED: OnceCell<Bed> = OnceCell::const_new();
    BED.get_or_try_init(|| Bed::builder().start()).await
}

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    }
}

fn is_forbidden<T>(outcome: kube::Result<T>) -> bool {
    matches!(outcome, Err(kube::Error::Api(status)) if status.code == 403)
}

#[tokio::test]
async fn a_tenant_may_do_what_the_role_says_in_the_own_namespace_alone() -> Result<()> {
    let bed = bed().await?;
    bed.namespace("owned").await?;
    bed.namespace("foreign").await?;
    bed.bind("owned", "ada", "admin").await?;
    bed.bind("owned", "vic", "view").await?;

    let ada = bed.client_as("ada", &[]).await?;
    let own = Api::<ConfigMap>::namespaced(ada.clone(), "owned");
    own.create(&PostParams::default(), &config_map("hers")).await?;
    let foreign = Api::<ConfigMap>::namespaced(ada, "foreign");
    assert!(is_forbidden(foreign.list(&ListParams::default()).await));

    let vic = bed.client_as("vic", &[]).await?;
    let seen = Api::<ConfigMap>::namespaced(vic.clone(), "owned");
    seen.get("hers").await?;
    assert!(is_forbidden(seen.delete("hers", &DeleteParams::default()).await));
    assert!(is_forbidden(Api::<Secret>::namespaced(vic, "owned").list(&ListParams::default()).await));
    Ok(())
}

#[tokio::test]
async fn a_service_account_has_its_own_rights_and_no_more() -> Result<()> {
    let bed = bed().await?;
    bed.namespace("accounts").await?;
    let account = |client: Client| Api::<ConfigMap>::namespaced(client, "accounts");
    let client = bed.service_account_client("accounts", "default").await?;
    assert!(is_forbidden(account(client.clone()).list(&ListParams::default()).await));
    bed.bind("accounts", "system:serviceaccount:accounts:default", "view").await?;
    account(client.clone()).list(&ListParams::default()).await?;
    assert!(is_forbidden(account(client).create(&PostParams::default(), &config_map("no")).await));
    Ok(())
}

#[tokio::test]
async fn manifests_are_applied_definitions_first() -> Result<()> {
    let bed = bed().await?;
    bed.apply_yaml(
        r"
apiVersion: bed.test/v1
kind: Pearl
metadata: { name: first, namespace: default }
spec: { colour: white }
---
# An empty document is skipped.
---
apiVersion: v1
kind: List
items:
  - apiVersion: apiextensions.k8s.io/v1
    kind: CustomResourceDefinition
    metadata: { name: pearls.bed.test }
    spec:
      group: bed.test
      names: { kind: Pearl, plural: pearls }
      scope: Namespaced
      versions:
        - name: v1
          served: true
          storage: true
          schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } }
",
    )
    .await?;
    let colour = bed.kubectl(&["get", "pearl", "first", "--output=jsonpath={.spec.colour}"]).await?.ok()?;
    assert_eq!(colour, "white");
    let refused = bed.kubectl(&["get", "pearl", "second"]).await?.ok().unwrap_err().to_string();
    assert!(refused.contains("kubectl get pearl second") && refused.contains("not found"), "{refused}");
    Ok(())
}

#[tokio::test]
async fn waiting_in_vain_says_for_what_and_what_was_there_instead() -> Result<()> {
    let bed = bed().await?;
    bed.namespace("waiting").await?;
    let maps = Api::<ConfigMap>::namespaced(bed.client().await?, "waiting");
    let wait = |within| {
        let full = |map: Option<&ConfigMap>| map?.data.clone();
        wait_until("the map to be filled", within, maps.clone(), "map", full)
    };
    maps.create(&PostParams::default(), &config_map("map")).await?;
    let error = wait(Duration::from_secs(5)).await.unwrap_err().to_string();
    assert!(error.starts_with("waited 5s for the map to be filled; last seen: {"), "{error}");
    assert!(error.contains(r#""namespace": "waiting""#) && !error.contains("managedFields"), "{error}");

    let patch = Patch::Merge(json!({ "data": { "key": "value" } }));
    maps.patch("map", &PatchParams::default(), &patch).await?;
    assert_eq!(wait(Duration::from_secs(30)).await?["key"], "value");
    Ok(())
}

#[tokio::test]
async fn writes_are_counted_by_who_made_them() -> Result<()> {
    let bed = bed().await?;
    bed.namespace("counted").await?;
    let ada = "system:serviceaccount:counted:default";
    bed.bind("counted", ada, "edit").await?;
    let own = Api::<ConfigMap>::namespaced(bed.client_as(ada, &[]).await?, "counted");
    own.create(&PostParams::default(), &config_map("before")).await?;

    let mark = bed.audit().mark().await?;
    for name in ["one", "two", "three"] {
        own.create(&PostParams::default(), &config_map(name)).await?;
    }
    own.create(&PostParams::default(), &config_map("one")).await.unwrap_err();
    let patch = Patch::Merge(json!({ "data": { "key": "value" } }));
    own.patch("one", &PatchParams::default(), &patch).await?;
    own.delete("two", &DeleteParams::default()).await?;
    own.get("three").await?;
    bed.kubectl(&["create", "configmap", "four", "--namespace=counted"]).await?.ok()?;

    let requests = bed.audit().since(mark).await?.only(|request| request.namespace == "counted");
    let expected = BTreeMap::from([
        ("create configmaps in counted: 201".to_owned(), 3),
        ("create configmaps in counted: 409".to_owned(), 1),
        ("patch configmaps in counted: 200".to_owned(), 1),
        ("delete configmaps in counted: 200".to_owned(), 1),
    ]);
    let own = requests.by(bed::USER_AGENT);
    assert_eq!(own.tally(), expected);
    assert!(own.as_slice().iter().all(|request| request.user == ada));
    assert_eq!(
        requests.by("kubectl").tally(),
        BTreeMap::from([("create configmaps in counted: 201".to_owned(), 1)])
    );
    Ok(())
}

#[tokio::test]
async fn a_count_is_exact_while_many_write() -> Result<()> {
    let bed = bed().await?;
    bed.namespace("busy").await?;
    let maps = Api::<ConfigMap>::namespaced(bed.client().await?, "busy");
    for round in 0..5 {
        let mark = bed.audit().mark().await?;
        let (maps, parameters) = (&maps, &PostParams::default());
        let write = |number| async move {
            maps.create(parameters, &config_map(&format!("map-{round}-{number}"))).await
        };
        futures::future::try_join_all((0..40).map(write)).await?;
        let counted = bed.audit().since(mark).await?.only(|request| request.namespace == "busy");
        assert_eq!(counted.len(), 40, "{:#?}", counted.tally());
    }
    Ok(())
}

#[tokio::test]
async fn a_quiet_program_is_told_from_one_that_writes() -> Result<()> {
    let bed = bed().await?;
    bed.audit().quiet("nobody/", Duration::from_millis(100)).await?;
    let maps = Api::<ConfigMap>::namespaced(bed.client().await?, "default");
    let noise = async {
        for number in 0.. {
            maps.create(&PostParams::default(), &config_map(&format!("noise-{number}"))).await?;
        }
        anyhow::Ok(())
    };
    let error = tokio::select! {
        quiet = bed.audit().quiet(bed::USER_AGENT, Duration::from_millis(200)) => quiet.unwrap_err().to_string(),
        failed = noise => return failed,
    };
    assert!(error.contains("create configmaps in default: 201"), "{error}");
    Ok(())
}

#[tokio::test]
async fn reads_are_counted_on_request() -> Result<()> {
    let bed = Bed::builder().audit_reads().start().await?;
    let maps = Api::<ConfigMap>::namespaced(bed.client().await?, "default");
    let mark = bed.audit().mark().await?;
    maps.list(&ListParams::default()).await?;
    maps.create(&PostParams::default(), &config_map("map")).await?;
    let requests = bed.audit().since(mark).await?.by(bed::USER_AGENT);
    assert_eq!(requests.only(|request| request.verb == "list").len(), 1);
    assert_eq!(requests.writes().len(), 1);
    Ok(())
}
