//! A restore through Velero revives no revoked grant, although Velero may do anything.

use anyhow::Result;
use bed::Bed;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Api;
use serde_json::json;

use crate::ask::{expect_writes, user};
use crate::cluster::{MIGRATE, a_user, bind, furnished, migration, people};

#[tokio::test]
async fn a_restore_revives_no_revoked_grant() -> Result<()> {
    let bed = furnished(Bed::builder().with_velero()).await?;
    migration(&bed, &["install", "--guard", "deny"]).await?.with(0)?;
    people(&bed).await?;
    // A grant by nacre, one made by hand, one hidden in a role of the namespace's own, and a binding that has nothing to do with it.
    migration(&bed, &["grant", "--user", "ann", "-n", "shop"]).await?.with(0)?;
    bind(&bed, Some("shop"), "kvmigrate", MIGRATE, a_user("bob")).await?;
    bind(&bed, Some("shop"), "control", "view", a_user("control")).await?;
    let own = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": "own", "namespace": "shop" },
        "rules": [{ "apiGroups": ["kubevirt.io"], "resources": ["virtualmachineinstancemigrations"], "verbs": ["delete"] }],
    });
    bed.apply(&[serde_json::from_value(own)?]).await?;
    for name in ["ann", "bob"] {
        expect_writes(&bed, &user(name), "shop", true).await?;
    }
    bed.velero_cli(&["backup", "create", "b", "--include-namespaces=shop", "--wait"]).await?.ok()?;
    let saved = bed.velero_cli(&["backup", "describe", "b", "--details"]).await?.ok()?;
    assert!(saved.contains("shop/kvmigrate") && !saved.contains("nacre:migrate:user:ann"), "{saved}");

    migration(&bed, &["revoke", "--user", "ann", "--user", "bob", "-n", "shop"]).await?.with(0)?;
    bed.kubectl(&["delete", "rolebinding", "control", "-n", "shop"]).await?.ok()?;
    bed.kubectl(&["delete", "role", "own", "-n", "shop"]).await?.ok()?;
    for name in ["ann", "bob"] {
        expect_writes(&bed, &user(name), "shop", false).await?;
    }
    // Whether Velero calls it a partial failure is Velero's business.
    let restore = bed.velero_cli(&["restore", "create", "r", "--from-backup=b", "--wait"]).await?;
    let bindings = Api::<RoleBinding>::namespaced(bed.client().await?, "shop");
    assert!(
        bindings.get_opt("control").await?.is_some(),
        "the restore did bring something back: {restore:?}"
    );
    assert!(bindings.get_opt("nacre:migrate:user:ann").await?.is_none(), "{restore:?}");
    assert!(bindings.get_opt("kvmigrate").await?.is_none(), "{restore:?}");
    assert!(
        Api::<Role>::namespaced(bed.client().await?, "shop").get_opt("own").await?.is_none(),
        "{restore:?}"
    );
    for name in ["ann", "bob"] {
        expect_writes(&bed, &user(name), "shop", false).await?;
    }
    // Not because of missing permissions: RBAC allows Velero's service account everything.
    assert!(
        bed.allowed(
            "system:serviceaccount:velero:velero",
            "shop",
            "bind",
            "rbac.authorization.k8s.io",
            "clusterroles"
        )
        .await?
    );
    Ok(())
}
