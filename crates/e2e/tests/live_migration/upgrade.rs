//! Upgrades: users who keep the permission never lose it in between, and an interrupted upgrade can be run again.

use anyhow::{Context as _, Result, ensure};
use bed::{Bed, eventually};
use e2e::{FaultProxy, at_length};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::ask::{TIMEOUT, expect, expect_writes, user};
use crate::cluster::{MIGRATE, ROLES, a_user, bind, cluster, migration, old_cluster, rules};
use crate::poller::Poller;

async fn asked(poller: &Poller, more: usize) -> Result<()> {
    let before = poller.so_far().await.asked;
    eventually("the poller to go on", TIMEOUT, async || {
        let now = poller.so_far().await.asked;
        ensure!(now >= before + more, "{now} so far");
        anyhow::Ok(())
    })
    .await
}

/// The bridge of KubeVirt's proposal for live-migration roles, corrected: created before the upgrade, used during it,
/// removed after everybody who needs it has a grant.
#[tokio::test]
async fn a_bridge_carries_everybody_over() -> Result<()> {
    let bed = old_cluster().await?;
    bed.bind("shop", "zoe", "admin").await?;
    expect_writes(&bed, &user("ann"), "shop", true).await?;
    expect(&bed, &user("ed"), "shop", ("deletecollection", "virtualmachineinstancemigrations"), false)
        .await?;

    let preview = migration(&bed, &["preview", "-o", "json"]).await?.json(3)?;
    let losers: Vec<&str> = names(&preview["losses"]);
    assert_eq!(losers, ["ann", "ed", "zoe"]);
    // Installing is no upgrade: it says who would lose, and does nothing.
    let refusal = migration(&bed, &["install"]).await?;
    assert!(refusal.code == Some(3) && refusal.stderr.contains("user ann"), "{refusal:?}");

    // The manifest is one that kubectl takes.
    let manifest = migration(&bed, &["bridge", "create", "--dry-run", "-o", "yaml"]).await?.with(0)?;
    let file = bed.folder().join("bridge.yaml");
    std::fs::write(&file, manifest)?;
    bed.kubectl(&["apply", "--dry-run=server", "-f", &file.display().to_string()]).await?.ok()?;
    migration(&bed, &["bridge", "create"]).await?.with(0)?;
    assert_eq!(migration(&bed, &["preview", "-o", "json"]).await?.json(0)?["losses"], json!([]));

    let ann = Poller::start(&bed, user("ann"), "shop", &[]).await?;
    let ed = Poller::start(&bed, user("ed"), "shop", &["deletecollection"]).await?;
    let zoe = Poller::start(&bed, user("zoe"), "shop", &[]).await?;
    asked(&ed, 6).await?;
    migration(&bed, &["upgrade"]).await?.with(0)?;
    asked(&ed, 12).await?;

    // Nobody is cut off unawares.
    let refusal = migration(&bed, &["bridge", "remove"]).await?;
    assert_eq!(refusal.code, Some(3));
    for (name, command) in [
        ("ann", "grant --user ann -n shop"),
        ("ed", "grant --user ed -n shop"),
        ("zoe", "grant --user zoe -n shop"),
    ] {
        assert!(
            refusal.stderr.contains(&format!("user {name} would lose")) && refusal.stderr.contains(command),
            "{refusal:?}"
        );
    }
    migration(&bed, &["grant", "--user", "ann", "--user", "ed", "-n", "shop"]).await?.with(0)?;
    let refusal = migration(&bed, &["bridge", "remove", "-o", "json"]).await?.json(3)?;
    assert_eq!(names(&refusal["cutOff"]), ["zoe"]);
    assert_eq!(zoe.so_far().await.refused, Vec::<String>::new());
    migration(&bed, &["bridge", "remove", "--force"]).await?.with(0)?;
    expect_writes(&bed, &user("zoe"), "shop", false).await?;
    asked(&ann, 12).await?;

    let (ann, ed, zoe) = (ann.stop().await, ed.stop().await, zoe.stop().await);
    assert_eq!(ann.refused, Vec::<String>::new());
    assert_eq!(ed.refused, Vec::<String>::new());
    assert!(!zoe.refused.is_empty(), "the poller sees refusals where there are some");
    println!(
        "bridge: {} and {} polls of granted users, no denial; {} of {} for the one without",
        ann.asked,
        ed.asked,
        zoe.refused.len(),
        zoe.asked
    );
    Ok(())
}

/// Bindings made before the role exists come alive with it, before anything is taken away.
#[tokio::test]
async fn a_binding_made_in_advance_bridges_too() -> Result<()> {
    let bed = old_cluster().await?;
    bed.kubectl(&[
        "create",
        "-n",
        "shop",
        "rolebinding",
        "kvmigrate",
        "--clusterrole=kubevirt.io:migrate",
        "--user=ann",
    ])
    .await?
    .ok()?;
    // This one has its right from KubeVirt's role directly, and loses it the moment that shrinks.
    bind(&bed, Some("shop"), "direct", "kubevirt.io:admin", a_user("dan")).await?;
    bind(&bed, Some("shop"), "dans", MIGRATE, a_user("dan")).await?;
    expect_writes(&bed, &user("dan"), "shop", true).await?;
    let answer = migration(&bed, &["preview", "-o", "json"]).await?;
    assert!(answer.stderr.contains("waits for kubevirt.io:migrate"), "{answer:?}");
    assert_eq!(names(&answer.json(3)?["losses"]), ["ed"]);

    let ann = Poller::start(&bed, user("ann"), "shop", &[]).await?;
    let dan = Poller::start(&bed, user("dan"), "shop", &[]).await?;
    asked(&ann, 6).await?;
    let upgrade = migration(&bed, &["upgrade"]).await?;
    assert!(upgrade.stderr.contains("user ed loses"), "{upgrade:?}");
    upgrade.with(0)?;
    expect_writes(&bed, &user("ed"), "shop", false).await?;
    bed.wait_allowed("ed", "shop", "create", "kubevirt.io", "virtualmachines").await?;
    asked(&ann, 12).await?;
    let (ann, dan) = (ann.stop().await, dan.stop().await);
    assert_eq!((ann.refused, dan.refused), (Vec::new(), Vec::new()));
    println!("pre-binding: {} and {} polls, no denial", ann.asked, dan.asked);

    Ok(())
}

/// An upgrade takes the permissions to migrate out of the roles and nothing else; a rollback restores them to the byte: a rule
/// that an administrator added, labels, and the aggregation rule of a role that another controller fills.
#[tokio::test]
async fn an_upgrade_edits_the_roles_and_a_rollback_is_exact() -> Result<()> {
    let bed = old_cluster().await?;
    let edits = r#"[{"op": "add", "path": "/rules/0", "value":
            {"apiGroups": ["example.com"], "resources": ["things"], "verbs": ["get"]}},
        {"op": "remove", "path": "/metadata/labels/app.kubernetes.io~1managed-by"},
        {"op": "replace", "path": "/metadata/labels/app.kubernetes.io~1component", "value": "machines"},
        {"op": "add", "path": "/metadata/labels/team", "value": "virt"}]"#;
    bed.kubectl(&["patch", "clusterrole", "kubevirt.io:edit", "--type=json", "-p", edits]).await?.ok()?;
    bed.apply_yaml(AGGREGATED_VIEW).await?;
    bed.wait_allowed("vic", "shop", "watch", "example.com", "things").await?;
    bed.kubectl(&["delete", "clusterrole", "kubevirt.io:admin"]).await?.ok()?;
    let before = contents(&bed).await?;
    assert_eq!(before[0], Value::Null, "admin is not there");

    migration(&bed, &["upgrade"]).await?.with(0)?;
    let upgraded = contents(&bed).await?;
    assert_eq!(upgraded[0], Value::Null, "and stays away");
    let machines = ["get", "delete", "create", "update", "patch", "list", "watch"];
    assert_eq!(
        upgraded[1]["rules"],
        json!([
            {"apiGroups": ["example.com"], "resources": ["things"], "verbs": ["get"]},
            {"apiGroups": ["subresources.kubevirt.io"], "verbs": ["update"], "resources": ["virtualmachines/start",
                "virtualmachines/stop", "virtualmachines/addvolume", "virtualmachines/removevolume"]},
            {"apiGroups": ["kubevirt.io"], "resources": ["virtualmachines", "virtualmachineinstances"], "verbs": machines},
            {"apiGroups": ["kubevirt.io"], "resources": ["virtualmachineinstancemigrations"],
                "verbs": ["get", "list", "watch"]},
        ])
    );
    assert_eq!(upgraded[1]["labels"]["team"], "virt");
    assert_eq!(upgraded[2]["aggregationRule"], Value::Null);
    assert_eq!(upgraded[2]["rules"], before[2]["rules"]);

    migration(&bed, &["rollback"]).await?.with(0)?;
    assert_eq!(contents(&bed).await?, before);
    // nacre is done with them: what an administrator does now is theirs.
    bed.kubectl(&["label", "clusterrole", "kubevirt.io:edit", "kubevirt.io-"]).await?.ok()?;
    migration(&bed, &["rollback"]).await?.with(0)?;
    assert_eq!(contents(&bed).await?[1]["labels"].get("kubevirt.io"), None);
    Ok(())
}

/// A role of KubeVirt's that is made of another.
const AGGREGATED_VIEW: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: kubevirt.io:view
  labels: { kubevirt.io: "", rbac.authorization.k8s.io/aggregate-to-view: "true" }
aggregationRule:
  clusterRoleSelectors:
    - matchLabels: { example.com/part-of-view: "true" }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: things
  labels: { example.com/part-of-view: "true" }
rules:
  - apiGroups: [example.com]
    resources: [things]
    verbs: [get, list, watch]
"#;

/// Labels, rules and aggregation of `kubevirt.io:admin`, `edit` and `view`; null for a role that is not there.
async fn contents(bed: &Bed) -> Result<Vec<Value>> {
    let roles = Api::<ClusterRole>::all(bed.client().await?);
    let mut found = Vec::new();
    for name in &ROLES[..3] {
        let role = roles.get_opt(name).await?;
        found.push(role.map_or(Value::Null, |role| {
            json!({"labels": role.metadata.labels, "rules": role.rules, "aggregationRule": role.aggregation_rule})
        }));
    }
    Ok(found)
}

/// Rolling back restores what was, exactly, and keeps what administrators chose for the next upgrade.
#[tokio::test]
async fn rolling_back_keeps_opt_ins_and_grants() -> Result<()> {
    let bed = old_cluster().await?;
    migration(&bed, &["upgrade"]).await?.with(0)?;
    migration(&bed, &["grant", "--group", "movers", "-n", "shop"]).await?.with(0)?;
    // As documented in "Restoring the old default".
    let labels = ["admin", "edit"].map(|role| format!("rbac.authorization.k8s.io/aggregate-to-{role}=true"));
    bed.kubectl(&["label", "--overwrite", "clusterrole", MIGRATE, &labels[0], &labels[1]]).await?.ok()?;
    for name in ["ann", "ed"] {
        expect_writes(&bed, &user(name), "shop", true).await?;
    }
    // The first one alone is for those who do not want editors to migrate.
    let unlabel = "rbac.authorization.k8s.io/aggregate-to-edit-";
    bed.kubectl(&["label", "clusterrole", MIGRATE, unlabel]).await?.ok()?;
    expect_writes(&bed, &user("ann"), "shop", true).await?;
    expect_writes(&bed, &user("ed"), "shop", false).await?;

    migration(&bed, &["rollback"]).await?.with(0)?;
    for what in crate::ask::WRITES.into_iter().filter(|(verb, _)| *verb != "deletecollection") {
        expect(&bed, &user("ed"), "shop", what, true).await?;
    }
    // edit never had this one.
    expect(&bed, &user("ed"), "shop", ("deletecollection", "virtualmachineinstancemigrations"), false)
        .await?;
    expect_writes(&bed, &crate::ask::member("somebody", "movers"), "shop", true).await?;

    // Even if the role is lost meanwhile, as KubeVirt's own rollback loses it.
    bed.kubectl(&["delete", "clusterrole", MIGRATE]).await?.ok()?;
    migration(&bed, &["upgrade"]).await?.with(0)?;
    expect_writes(&bed, &user("ed"), "shop", false).await?;
    expect_writes(&bed, &user("ann"), "shop", true).await?;
    expect_writes(&bed, &crate::ask::member("somebody", "movers"), "shop", true).await
}

/// Killed after each of its writes in turn, and run again, an upgrade ends as if nothing had happened.
#[tokio::test]
async fn an_upgrade_killed_after_any_write_ends_the_same() -> Result<()> {
    let bed = old_cluster().await?;
    let reset = async || {
        wipe(&bed.client().await?).await?;
        bed.apply_yaml(include_str!("kubevirt-1.4-roles.yaml")).await
    };
    // Wherever it dies, whoever was bound in advance still may: these two have nothing else, once the roles have shrunk.
    bind(&bed, Some("shop"), "anns", MIGRATE, a_user("ann")).await?;
    bind(&bed, Some("shop"), "direct", "kubevirt.io:admin", a_user("dan")).await?;
    bind(&bed, Some("shop"), "dans", MIGRATE, a_user("dan")).await?;
    let dead = async || {
        for name in ["ann", "dan"] {
            expect_writes(&bed, &user(name), "shop", true).await?;
        }
        Ok(())
    };
    let kills = killed_after_each_write(&bed, &["migration", "upgrade"], 1, reset, dead).await?;
    assert!(kills >= 4, "settings, migrate, edit and admin are at least four writes: {kills}");
    Ok(())
}

/// The same for an installation, guard and all.
#[tokio::test]
async fn an_installation_killed_after_any_write_ends_the_same() -> Result<()> {
    let bed = cluster().await?;
    let reset = async || wipe(&bed.client().await?).await;
    let dead = async || Ok(());
    // It has dozens of writes, most of them of one sort: every fourth is enough for once, and each at length.
    let command = ["migration", "install", "--guard", "deny"];
    let kills = killed_after_each_write(&bed, &command, at_length(4, 1), reset, dead).await?;
    assert!(kills >= 20, "{kills}");
    Ok(())
}

async fn killed_after_each_write(
    bed: &Bed,
    command: &[&str],
    every: usize,
    reset: impl AsyncFn() -> Result<()>,
    dead: impl AsyncFn() -> Result<()>,
) -> Result<usize> {
    let admin = bed.client().await?;
    reset().await?;
    crate::program::nacre(&bed.kubeconfig(), command).await?.with(0)?;
    let expected = everything(&admin).await?;
    for limit in (1..).step_by(every) {
        reset().await?;
        let fault_proxy = FaultProxy::open(&bed.kubeconfig()).await?;
        fault_proxy.cut_after(limit);
        let mut child = Command::new(e2e::command_line()?)
            .args(command)
            .env("KUBECONFIG", fault_proxy.kubeconfig(bed.folder())?)
            .stdout(std::process::Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        tokio::select! {
            ended = child.wait() => {
                ensure!(ended?.success());
                return Ok(limit - 1);
            }
            () = fault_proxy.silent() => child.kill().await?,
        }
        dead().await.with_context(|| format!("dead after write {limit}"))?;
        crate::program::nacre(&bed.kubeconfig(), command).await?.with(0)?;
        assert_eq!(everything(&admin).await?, expected, "killed after write {limit}");
    }
    unreachable!("it ends some time")
}

/// All that nacre has written, but for what the API server adds.
async fn everything(client: &Client) -> Result<Vec<(String, Value)>> {
    let mut found = Vec::new();
    for (name, rules) in rules(client).await? {
        found.push((name, serde_json::to_value(rules)?));
    }
    let config = Api::<ConfigMap>::namespaced(client.clone(), "kube-system").get("nacre-migration").await?;
    found.push(("settings".to_owned(), json!(config.data)));
    for kind in [
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    ] {
        for object in policies(client, kind).list(&ListParams::default()).await? {
            found.push((
                format!("{kind} {}", object.metadata.name.unwrap_or_default()),
                object.data["spec"].clone(),
            ));
        }
    }
    Ok(found)
}

fn policies(client: &Client, kind: &str) -> Api<kube::api::DynamicObject> {
    let kind = kube::api::GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
    Api::all_with(client.clone(), &kube::api::ApiResource::from_gvk(&kind))
}

/// As if nacre had never been there.
async fn wipe(client: &Client) -> Result<()> {
    let roles = Api::<ClusterRole>::all(client.clone());
    for name in ROLES {
        gone(roles.delete(name, &DeleteParams::default()).await)?;
    }
    let settings = Api::<ConfigMap>::namespaced(client.clone(), "kube-system");
    gone(settings.delete("nacre-migration", &DeleteParams::default()).await)?;
    for kind in [
        "ValidatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
    ] {
        let api = policies(client, kind);
        for object in api.list(&ListParams::default()).await? {
            gone(api.delete(&object.metadata.name.unwrap_or_default(), &DeleteParams::default()).await)?;
        }
    }
    Ok(())
}

fn gone<T>(answer: kube::Result<T>) -> Result<()> {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

fn names(losses: &Value) -> Vec<&str> {
    losses.as_array().unwrap().iter().map(|loss| loss["who"]["name"].as_str().unwrap()).collect()
}
