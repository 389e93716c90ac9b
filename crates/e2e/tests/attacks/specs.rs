//! Forbidden fields in a spec.

use anyhow::{Result, ensure};
use api::velero::Backup;
use api::{Kind, NonAdminBackup};
use serde_json::{Value, json};

use crate::attack_cluster::{AttackCluster, VICTIM};

/// Sends each, expects words about the field, and nothing made for it.
async fn all_refused(
    attack_cluster: &AttackCluster,
    scenario: &str,
    kind: Kind,
    attempts: impl IntoIterator<Item = (&str, Value)>,
) -> Result<()> {
    let mallory = attack_cluster.attacker(scenario).await?;
    let spec_name = if kind == Kind::NonAdminBackup { "backupSpec" } else { "restoreSpec" };
    for (number, (field, mut spec)) in attempts.into_iter().enumerate() {
        if kind == Kind::NonAdminRestore {
            spec["backupName"] = json!("daily");
        }
        let words =
            attack_cluster.refused(&mallory, kind, &format!("r{number}"), json!({ spec_name: spec })).await?;
        ensure!(words.contains(field), "{field} is not named in {words:?}");
        ensure!(!words.contains("1234"), "{words}");
    }
    attack_cluster.nothing_made_for(&mallory).await
}

/// B1: a restore hook with an init container
pub(crate) async fn b1_a_hook_that_brings_its_own_container(attack_cluster: &AttackCluster) -> Result<()> {
    let container = json!({"name": "x", "image": "x", "securityContext": {"privileged": true}});
    let hook = json!({"init": {"initContainers": [container]}});
    let hooks = json!({"hooks": {"resources": [{"name": "x", "postHooks": [hook]}]}});
    all_refused(attack_cluster, "b1", Kind::NonAdminRestore, [("init", hooks)]).await
}

/// planted: a policy that allows hooks
pub(crate) async fn b2_a_hook_where_the_policy_forbids_hooks(attack_cluster: &AttackCluster) -> Result<()> {
    let hook = json!({"name": "x", "pre": [{"exec": {"command": ["x"]}}]});
    let hooks = json!({"hooks": {"resources": [hook]}});
    all_refused(attack_cluster, "b2", Kind::NonAdminBackup, [("spec.backupSpec.hooks", hooks.clone())])
        .await?;
    let other = attack_cluster.attacker("b2-weak").await?;
    other.create::<NonAdminBackup>("with", json!({"spec": {"backupSpec": hooks}})).await?;
    let name = other.backup_starts("with").await?;
    let with = attack_cluster.requests_in_velero(Kind::Backup).await?.get(&name).await?;
    let given = &with.data["spec"]["hooks"]["resources"][0];
    ensure!(given["pre"][0]["exec"]["command"] == json!(["x"]), "{given}");
    // And in no other namespace than the own.
    ensure!(given["includedNamespaces"] == json!([other.namespace]), "{given}");
    Ok(())
}

/// B3: a spec field that nacre does not know
pub(crate) async fn b3_a_field_nobody_has_decided_about(attack_cluster: &AttackCluster) -> Result<()> {
    let mallory = attack_cluster.attacker("b3").await?;
    // The API server prunes what the definition does not know; so it reaches neither nacre nor Velero.
    for (kind, spec) in [
        (Kind::NonAdminBackup, json!({"backupSpec": {"runAs": "cluster-admin"}})),
        (Kind::NonAdminRestore, json!({"restoreSpec": {"backupName": "daily", "runAs": "cluster-admin"}})),
    ] {
        let kept = attack_cluster.send(&mallory, kind, "odd", json!({ "spec": spec })).await?;
        ensure!(!kept.data.to_string().contains("runAs"), "{}", kept.data);
    }
    Ok(())
}

/// B4: `resourcePolicy` names an administrator's ConfigMap
pub(crate) async fn b4_an_administrators_config_map_by_its_name(
    attack_cluster: &AttackCluster,
) -> Result<()> {
    attack_cluster.administrators_config_map("secret-plans", json!({})).await?;
    let mallory = attack_cluster.attacker("b4").await?;
    let mut reported = Vec::new();
    for name in ["secret-plans", "there-is-no-such-map"] {
        let reference = json!({"kind": "configmap", "name": name});
        let spec = json!({"backupSpec": {"resourcePolicy": reference}});
        let words =
            attack_cluster.refused(&mallory, Kind::NonAdminBackup, &format!("by-{name}"), spec).await?;
        reported.push(words.replace(name, "it"));
    }
    ensure!(reported[0] == reported[1], "the refusals reveal which exists: {reported:#?}");
    attack_cluster.nothing_made_for(&mallory).await
}

fn hooks_in(namespace: &str) -> Value {
    json!({"resources": [{"name": "x", "includedNamespaces": [namespace],
        "pre": [{"exec": {"command": ["x"]}}]}]})
}

/// B5: another namespace in any field of a spec
pub(crate) async fn b5_somebody_elses_namespace_anywhere_in_a_backup(
    attack_cluster: &AttackCluster,
) -> Result<()> {
    let lists =
        [json!([VICTIM]), json!(["attacker-b5a", VICTIM]), json!(["*"]), json!(["att*"]), json!([""])];
    let lists = lists.map(|list| ("includedNamespaces", json!({ "includedNamespaces": list })));
    let others = [
        ("excludedNamespaces", json!({"excludedNamespaces": ["kube-system"]})),
        ("includeClusterResources", json!({"includeClusterResources": true})),
        ("includedClusterScopedResources", json!({"includedClusterScopedResources": ["*"]})),
        ("orderedResources", json!({"orderedResources": {"pods": format!("{VICTIM}/till")}})),
        ("hooks", json!({"hooks": hooks_in(VICTIM)})),
    ];
    all_refused(attack_cluster, "b5a", Kind::NonAdminBackup, lists.into_iter().chain(others)).await
}

pub(crate) async fn b5_somebody_elses_namespace_anywhere_in_a_restore(
    attack_cluster: &AttackCluster,
) -> Result<()> {
    let hook = json!({"resources": [{"name": "x", "includedNamespaces": [VICTIM],
        "postHooks": [{"exec": {"command": ["x"]}}]}]});
    let attempts = [
        ("includedNamespaces", json!({"includedNamespaces": [VICTIM]})),
        ("namespaceMapping", json!({"namespaceMapping": {"attacker-b5b": VICTIM}})),
        ("scheduleName", json!({"scheduleName": "nightly"})),
        ("includeClusterResources", json!({"includeClusterResources": true})),
        ("hooks", json!({ "hooks": hook })),
    ];
    all_refused(attack_cluster, "b5b", Kind::NonAdminRestore, attempts).await
}

/// B6: another spelling, or a short name, of a fenced resource
pub(crate) async fn b6_another_spelling_of_what_is_fenced_off(attack_cluster: &AttackCluster) -> Result<()> {
    let spellings =
        ["NonAdminBackups.oadp.openshift.io.", "nonadminbackups", "virtualmachineinstancemigrations"];
    let attempts =
        spellings.map(|name| ("includedResources", json!({"includedResources": ["configmaps", name]})));
    all_refused(attack_cluster, "b6", Kind::NonAdminBackup, attempts).await?;
    // A name that only the API server knows to be the same is not refused, and is left out by Velero all the same.
    let mallory = attack_cluster.attacker("b6").await?;
    let spec = json!({"spec": {"backupSpec": {"includedResources": ["configmaps", "nab", "vmim"]}}});
    mallory.create::<NonAdminBackup>("short", spec).await?;
    let name = mallory.backup_starts("short").await?;
    let excluded =
        attack_cluster.test_cluster.admin::<Backup>().await?.get(&name).await?.spec.excluded_resources;
    let excluded = excluded.unwrap_or_default();
    for left_out in ["nonadminbackups.oadp.openshift.io", "virtualmachineinstancemigrations.kubevirt.io"] {
        ensure!(excluded.iter().any(|name| name == left_out), "{left_out} is not in {excluded:?}");
    }
    Ok(())
}

/// B7: `ttl` and timeouts outside the policy's limits
pub(crate) async fn b7_more_than_the_policy_allows(attack_cluster: &AttackCluster) -> Result<()> {
    let attempts = [
        ("ttl", json!({"ttl": "876000h"})),
        ("ttl", json!({"ttl": "1s"})),
        ("ttl", json!({"ttl": "-1h"})),
        ("itemOperationTimeout", json!({"itemOperationTimeout": "-1s"})),
        ("itemOperationTimeout", json!({"itemOperationTimeout": "999h"})),
        ("csiSnapshotTimeout", json!({"csiSnapshotTimeout": "999h"})),
        ("parallelFilesUpload", json!({"uploaderConfig": {"parallelFilesUpload": 1_000_000}})),
        ("datamover", json!({"datamover": "somebody-elses", "snapshotMoveData": true})),
    ];
    all_refused(attack_cluster, "b7", Kind::NonAdminBackup, attempts).await
}
