//! The controller: drift is repaired, other controllers are respected, grants expire in time, and a settled cluster
//! gets no writes.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use bed::{Bed, eventually};
use e2e::{NACRE, TestCluster, at_length};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, RoleBinding};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::ask::{TIMEOUT, expect_writes, user};
use crate::cluster::{MIGRATE, a_user, bind, furnished, migration, people, rules};

/// A cluster with nacre's roles and account, set up to look after live-migration permissions.
async fn kept() -> Result<TestCluster> {
    let bed = furnished(Bed::builder()).await?;
    bed.namespace("velero").await?;
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    bed.apply_path(&deploy.join("crds")).await?;
    bed.apply_path(&deploy.join("nacre.yaml")).await?;
    migration(&bed, &["install", "--guard", "deny"]).await?.with(0)?;
    people(&bed).await?;
    Ok(TestCluster { bed })
}

async fn eventually_role(
    bed: &Bed,
    what: &str,
    name: &str,
    good: impl Fn(Option<&ClusterRole>) -> bool,
) -> Result<()> {
    let api = Api::<ClusterRole>::all(bed.client().await?);
    bed::wait_until(what, TIMEOUT, api, name, |role| good(role).then_some(())).await
}

async fn change(bed: &Bed, name: &str, patch: &Value) -> Result<()> {
    let api = Api::<ClusterRole>::all(bed.client().await?);
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

#[tokio::test]
async fn drift_is_repaired_foreign_labels_stay_and_then_there_is_silence() -> Result<()> {
    let test_cluster = kept().await?;
    let bed = &test_cluster.bed;
    let good = rules(&bed.client().await?).await?;
    let _nacre = test_cluster.start_nacre().await?;
    let vmim = "virtualmachineinstancemigrations";
    let aggregate = "rbac.authorization.k8s.io/aggregate-to";

    let wanted = &good.iter().find(|(known, _)| known == MIGRATE).unwrap().1;
    let is_good = |role: Option<&ClusterRole>| {
        role.is_some_and(|role| role.rules.as_ref() == Some(wanted) && role.aggregation_rule.is_none())
    };
    let bent = [
        json!({ "rules": [{ "apiGroups": ["kubevirt.io"], "resources": [vmim], "verbs": ["get"] }] }),
        json!({ "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { "a": "b" } }] } }),
    ];
    for bend in bent {
        change(bed, MIGRATE, &bend).await?;
        eventually_role(bed, &format!("it to be put right after {bend}"), MIGRATE, is_good).await?;
    }
    // A rule for everything gives migrations too. It keeps reading everywhere, and writing what KubeVirt's own rule lists.
    let everything = json!({ "rules": [{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }] });
    change(bed, "kubevirt.io:admin", &everything).await?;
    eventually_role(bed, "admin to lose what migrates", "kubevirt.io:admin", |role| {
        let rules = role.and_then(|role| role.rules.as_deref()).unwrap_or_default();
        let has = |list: &Option<Vec<String>>, one: &str| list.iter().flatten().any(|given| given == one);
        let reads = |rule: &PolicyRule| rule.verbs == ["get", "list", "watch"];
        let of_all = |rule: &&PolicyRule| has(&rule.api_groups, "*");
        let of_migrations = |rule: &&PolicyRule| has(&rule.resources, vmim);
        rules.iter().any(|rule| of_all(&rule))
            && rules.iter().filter(|rule| of_all(rule) || of_migrations(rule)).all(reads)
    })
    .await?;
    expect_writes(bed, &user("ann"), "shop", false).await?;
    // KubeVirt's own roles change with its version: they keep their other rules, and lose what migrates.
    let create = json!([{ "apiGroups": ["kubevirt.io"], "resources": [vmim, "virtualmachines"], "verbs": ["create", "get"] }]);
    change(bed, "kubevirt.io:edit", &json!({ "rules": create })).await?;
    eventually_role(bed, "edit to lose what migrates, and no more", "kubevirt.io:edit", |role| {
        let rules = role.and_then(|role| role.rules.as_deref()).unwrap_or_default();
        let creates = |resource: &str| {
            rules.iter().any(|rule| {
                rule.resources.iter().flatten().any(|one| one == resource)
                    && rule.verbs.iter().any(|verb| verb == "create")
            })
        };
        creates("virtualmachines") && !creates(vmim)
    })
    .await?;
    expect_writes(bed, &user("ed"), "shop", false).await?;
    change(bed, "kubevirt.io:edit", &json!({ "metadata": { "labels": { format!("{aggregate}-edit"): null, "app.kubernetes.io/managed-by": null } } })).await?;
    eventually_role(bed, "its labels to come back", "kubevirt.io:edit", |role| {
        role.is_some_and(|role| {
            role.labels().contains_key("app.kubernetes.io/managed-by")
                && role.labels()[&format!("{aggregate}-edit")] == "true"
        })
    })
    .await?;

    // A label that an administrator sets stays, is remembered, and comes back with the role.
    change(bed, MIGRATE, &json!({ "metadata": { "labels": { format!("{aggregate}-admin"): "true" } } }))
        .await?;
    let client = bed.client().await?;
    let configs = Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(client.clone(), "kube-system");
    bed::wait_until("the label to be remembered", TIMEOUT, configs, "nacre-migration", |config| {
        config?.data.as_ref()?.get("rememberedLabels")?.contains("aggregate-to-admin").then_some(())
    })
    .await?;
    Api::<ClusterRole>::all(client.clone()).delete(MIGRATE, &DeleteParams::default()).await?;
    eventually_role(bed, "the role to come back, labelled", MIGRATE, |role| {
        role.is_some_and(|role| {
            role.labels().get(&format!("{aggregate}-admin")).is_some_and(|value| value == "true")
        })
    })
    .await?;
    expect_writes(bed, &user("ann"), "shop", true).await?;
    expect_writes(bed, &user("ed"), "shop", false).await?;

    // The guard's own objects are kept as the roles are.
    let bindings = Api::<ValidatingAdmissionPolicyBinding>::all(client.clone());
    bindings.delete("nacre-migration-protected", &DeleteParams::default()).await?;
    let weaken = Patch::Merge(json!({ "spec": { "validationActions": ["Audit"] } }));
    bindings.patch("nacre-migration-bindings", &PatchParams::default(), &weaken).await?;
    for name in ["nacre-migration-protected", "nacre-migration-bindings"] {
        bed::wait_until("the guard to be put right", TIMEOUT, bindings.clone(), name, |binding| {
            (binding?.spec.validation_actions == ["Deny"]).then_some(())
        })
        .await?;
    }

    // Nobody else's role is touched, whatever its name.
    migration(bed, &["bridge", "create"]).await?.with(0)?;
    let changed = bed.audit().mark().await?;
    change(bed, "kubevirt.io:upgrademigrate", &json!({ "rules": null })).await?;
    // Who can migrate is another answer now, and nacre writes it down.
    bed.audit().until_quiet(NACRE, Duration::from_secs(5)).await?;
    let touched = bed
        .audit()
        .since(changed)
        .await?
        .writes()
        .by(NACRE)
        .only(|request| request.resource == "clusterroles");
    assert!(touched.is_empty(), "{:#?}", touched.tally());

    let mark = bed.audit().mark().await?;
    bed.audit().quiet("kubectl-nacre/", at_length(Duration::from_secs(10), Duration::from_mins(1))).await?;
    let writes =
        bed.audit().since(mark).await?.writes().by(NACRE).only(|request| request.resource != "leases");
    assert!(writes.is_empty(), "{:#?}", writes.tally());
    let bridge = Api::<ClusterRole>::all(client).get("kubevirt.io:upgrademigrate").await?;
    assert_eq!(bridge.rules, None);
    Ok(())
}

/// Somebody who keeps changing a role wins after a few rounds: nacre waits instead of fighting.
#[tokio::test]
async fn a_contest_is_not_a_write_loop() -> Result<()> {
    let test_cluster = kept().await?;
    let bed = &test_cluster.bed;
    let _nacre = test_cluster.start_nacre().await?;
    let mark = bed.audit().mark().await?;
    let wrong = json!({ "rules": [{ "apiGroups": ["kubevirt.io"], "resources": ["virtualmachines"], "verbs": ["get"] }] });
    let mut repaired = 0;
    for _ in 0..8 {
        change(bed, MIGRATE, &wrong).await?;
        let api = Api::<ClusterRole>::all(bed.client().await?);
        let outcome = bed::wait_until("a repair", Duration::from_secs(20), api, MIGRATE, |role| {
            (role?.rules.as_ref()?.len() == 2).then_some(())
        })
        .await;
        if outcome.is_err() {
            break;
        }
        repaired += 1;
    }
    assert_eq!(repaired, 5);
    let writes =
        bed.audit().since(mark).await?.writes().by(NACRE).only(|request| request.resource == "clusterroles");
    assert_eq!(writes.len(), 5, "{:#?}", writes.tally());
    Ok(())
}

/// Grants end in time, also if nobody was there to see it; and one that was extended does not.
#[tokio::test]
async fn grants_end_in_time_and_across_downtime() -> Result<()> {
    let test_cluster = kept().await?;
    let bed = &test_cluster.bed;
    let nacre = test_cluster.start_nacre().await?;
    let bindings = Api::<RoleBinding>::namespaced(bed.client().await?, "shop");
    let gone = async |name: &str| {
        bed::wait_until("the grant to end", TIMEOUT, bindings.clone(), name, |found| {
            found.is_none().then_some(())
        })
        .await
    };
    migration(bed, &["grant", "--user", "extended", "-n", "shop", "--expires", "4s"]).await?.with(0)?;
    migration(bed, &["grant", "--user", "extended", "-n", "shop", "--expires", "24h"]).await?.with(0)?;
    let granted = migration(bed, &["grant", "--user", "short", "-n", "shop", "--expires", "5s"]).await?;
    assert!(!granted.stderr.contains("no controller"), "{granted:?}");
    expect_writes(bed, &user("short"), "shop", true).await?;
    gone("nacre:migrate:user:short").await?;
    expect_writes(bed, &user("short"), "shop", false).await?;
    expect_writes(bed, &user("extended"), "shop", true).await?;

    // While nacre is down a grant outlives its end, for nobody else can know; once it is up, it is over.
    drop(nacre);
    migration(bed, &["grant", "--user", "late", "-n", "shop", "--expires", "1s"]).await?.with(0)?;
    let end = bindings.get("nacre:migrate:user:late").await?.annotations()["nacre.dev/expires"].clone();
    eventually("the end to pass", TIMEOUT, async || {
        ensure!(jiff::Timestamp::now() > end.parse::<jiff::Timestamp>()?, "not yet");
        anyhow::Ok(())
    })
    .await?;
    assert!(bindings.get_opt("nacre:migrate:user:late").await?.is_some());
    let _nacre = test_cluster.start_nacre().await?;
    gone("nacre:migrate:user:late").await?;
    expect_writes(bed, &user("extended"), "shop", true).await
}

/// The same on a real API server, by an administrator's hand.
#[tokio::test]
async fn g6_a_right_that_is_handed_out_is_written_down_reported_and_counted() -> Result<()> {
    const WHO_CAN: &str = "nacre.dev/who-can-migrate";
    const MIA: &str = "user mia in all namespaces: create";
    let test_cluster = kept().await?;
    let bed = &test_cluster.bed;
    let nacre = test_cluster.start_nacre().await?;
    let client = bed.client().await?;
    let settings = Api::<ConfigMap>::namespaced(client.clone(), "kube-system");
    let written = async |what: &str, text: &str| {
        bed::wait_until(what, TIMEOUT, settings.clone(), "nacre-migration", |config| {
            config?.annotations().get(WHO_CAN)?.contains(text).then_some(())
        })
        .await
    };
    written("the first answer", "").await?;
    bind(bed, None, "handed-out", MIGRATE, a_user("mia")).await?;
    written("the new answer", MIA).await?;
    let events = Api::<Event>::namespaced(client, "kube-system");
    eventually("an Event and a step of the counter", TIMEOUT, async || {
        let all = events.list(&ListParams::default()).await?.items;
        let reported = |event: &Event| {
            event.reason.as_deref() == Some("MigrationRightsChanged")
                && event.message.as_deref().is_some_and(|note| note.contains(MIA))
        };
        ensure!(all.iter().any(reported), "{all:#?}");
        let metrics = nacre.metrics().await?;
        ensure!(metrics.contains("nacre_migration_subjects_changes_total 1"), "{metrics}");
        Ok(())
    })
    .await
}
