//! Grants: by kubectl and by nacre, with warnings, and never by tenants themselves.

use anyhow::Result;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use crate::ask::{account, expect_writes, member, user};
use crate::cluster::{a_user, cluster, migration, people};

/// The commands of KubeVirt's proposal for live-migration roles, without its stray backticks.
#[tokio::test]
async fn the_commands_of_the_proposal_work() -> Result<()> {
    let bed = cluster().await?;
    migration(&bed, &["install", "--guard", "deny"]).await?.with(0)?;
    let to = ["--clusterrole=kubevirt.io:migrate", "--user=user1", "--user=user2", "--group=group1"];
    bed.kubectl(&[&["create", "-n", "shop", "rolebinding", "kvmigrate"], &to[..]].concat()).await?.ok()?;
    for person in [user("user1"), user("user2"), member("somebody", "group1")] {
        expect_writes(&bed, &person, "shop", true).await?;
        expect_writes(&bed, &person, "other", false).await?;
    }
    bed.kubectl(&[&["create", "clusterrolebinding", "kvmigrate"], &to[..]].concat()).await?.ok()?;
    expect_writes(&bed, &user("user2"), "other", true).await
}

#[tokio::test]
async fn grants_are_made_once_shown_before_and_taken_back() -> Result<()> {
    let bed = cluster().await?;
    migration(&bed, &["install", "--guard", "off"]).await?.with(0)?;
    people(&bed).await?;
    let grant =
        ["grant", "--user", "ann", "--group", "movers", "--serviceaccount", "other:robot", "-n", "shop"];

    let shown = migration(&bed, &[&grant[..], &["--dry-run", "-o", "yaml"]].concat()).await?.with(0)?;
    assert!(
        shown.contains("nacre:migrate:group:movers") && shown.contains("velero.io/exclude-from-backup"),
        "{shown}"
    );
    let file = bed.folder().join("grants.yaml");
    std::fs::write(&file, shown)?;
    bed.kubectl(&["apply", "--dry-run=server", "-f", &file.display().to_string()]).await?.ok()?;
    expect_writes(&bed, &user("ann"), "shop", false).await?;

    let made = migration(&bed, &[&grant[..], &["-o", "name"]].concat()).await?.with(0)?;
    assert_eq!(made.lines().count(), 3);
    for person in [user("ann"), member("somebody", "movers"), account("other", "robot")] {
        expect_writes(&bed, &person, "shop", true).await?;
        expect_writes(&bed, &person, "other", false).await?;
    }
    assert_eq!(migration(&bed, &grant).await?.with(0)?, "nothing to do\n");

    // Everybody is nobody to grant it to, unless somebody insists.
    let everybody = ["grant", "--group", "system:authenticated", "-n", "shop"];
    let refusal = migration(&bed, &everybody).await?;
    assert!(refusal.code == Some(1) && refusal.stderr.contains("everybody"), "{refusal:?}");
    expect_writes(&bed, &user("vic"), "shop", false).await?;
    migration(&bed, &[&everybody[..], &["--force"]].concat()).await?.with(0)?;
    expect_writes(&bed, &user("vic"), "shop", true).await?;
    migration(&bed, &["revoke", "--group", "system:authenticated", "-n", "shop"]).await?.with(0)?;
    expect_writes(&bed, &user("vic"), "shop", false).await?;

    // A service account where tenants are: whoever can act as it could migrate too.
    let warned = migration(&bed, &["grant", "--serviceaccount", "shop:default", "-n", "shop"]).await?;
    assert!(
        warned.stderr.contains("user ann") && warned.stderr.contains("user ed can act as it"),
        "{warned:?}"
    );

    // Revoked, and the output shows what is left.
    bed.kubectl(&["create", "clusterrolebinding", "ann-too", "--clusterrole=cluster-admin", "--user=ann"])
        .await?
        .ok()?;
    let left = migration(&bed, &["revoke", "--user", "ann", "-n", "shop"]).await?;
    assert!(left.code == Some(3) && left.stderr.contains("clusterrolebinding/ann-too"), "{left:?}");
    bed.kubectl(&["delete", "clusterrolebinding", "ann-too"]).await?.ok()?;
    expect_writes(&bed, &user("ann"), "shop", false).await?;
    migration(&bed, &["revoke", "--group", "movers", "-n", "shop"]).await?.with(0)?;
    expect_writes(&bed, &member("somebody", "movers"), "shop", false).await
}

/// What RBAC itself forbids: a tenant does not grant what it does not have.
#[tokio::test]
async fn a_namespace_admin_cannot_help_itself() -> Result<()> {
    let bed = cluster().await?;
    migration(&bed, &["install", "--guard", "off"]).await?.with(0)?;
    people(&bed).await?;
    let ann = user("ann").client(&bed).await?;
    let bindings = Api::<k8s_openapi::api::rbac::v1::RoleBinding>::namespaced(ann.clone(), "shop");
    let roles = Api::<k8s_openapi::api::rbac::v1::Role>::namespaced(ann, "shop");
    let binding = |role: &str| {
        serde_json::from_value(json!({
            "metadata": { "name": role.replace(':', "-") },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
            "subjects": [a_user("ann")],
        }))
    };
    bindings.create(&PostParams::default(), &binding("kubevirt.io:view")?).await?;
    let refusal =
        bindings.create(&PostParams::default(), &binding("kubevirt.io:migrate")?).await.unwrap_err();
    assert!(
        refusal.to_string().contains("attempting to grant RBAC permissions not currently held"),
        "{refusal}"
    );
    let role = serde_json::from_value(json!({
        "metadata": { "name": "hoard" },
        "rules": [{ "apiGroups": ["kubevirt.io"], "resources": ["virtualmachineinstancemigrations"], "verbs": ["delete"] }],
    }))?;
    assert!(roles.create(&PostParams::default(), &role).await.is_err());
    migration(&bed, &["grant", "--group", "movers", "-n", "shop"]).await?.with(0)?;
    let join = Patch::Merge(json!({ "subjects": [a_user("ann")] }));
    assert!(bindings.patch("nacre:migrate:group:movers", &PatchParams::default(), &join).await.is_err());
    expect_writes(&bed, &user("ann"), "shop", false).await
}
