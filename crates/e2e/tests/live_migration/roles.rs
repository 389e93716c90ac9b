//! The roles: the user stories of KubeVirt's proposal for live-migration roles, and the whole matrix of permissions.

use anyhow::Result;
use bed::Bed;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;

use crate::ask::{Person, READS, WRITES, account, expect, expect_writes, member, review, review_in, user};
use crate::cluster::{MIGRATE, a_group, a_user, an_account, bind, cluster, migration, people};

/// Who is who in the matrix, and what each may in `shop`: read, write.
fn matrix() -> Vec<(Person, bool, bool)> {
    vec![
        (user("root"), true, true),
        (user("ann"), true, false),
        (user("ed"), true, false),
        (user("vic"), true, false),
        (user("elsewhere"), false, false),
        (user("direct"), true, false),
        (user("granted"), true, true),
        (user("everywhere"), true, true),
        (member("somebody", "movers"), true, true),
        (account("other", "robot"), true, true),
        (user("stranger"), false, false),
    ]
}

async fn everybody(bed: &Bed) -> Result<()> {
    people(bed).await?;
    bed.bind("other", "elsewhere", "admin").await?;
    bind(bed, None, "root", "cluster-admin", a_user("root")).await?;
    bind(bed, Some("shop"), "direct", "kubevirt.io:admin", a_user("direct")).await?;
    bind(bed, Some("shop"), "granted", MIGRATE, a_user("granted")).await?;
    bind(bed, None, "everywhere", MIGRATE, a_user("everywhere")).await?;
    bind(bed, Some("shop"), "movers", MIGRATE, a_group("movers")).await?;
    bind(bed, Some("shop"), "robot", MIGRATE, an_account("other", "robot")).await
}

/// As a cluster-admin I may as before; as a namespace admin I may not by default; and so on through the matrix, before and after labelling.
#[tokio::test]
async fn the_whole_matrix_before_and_after_labelling() -> Result<()> {
    let bed = cluster().await?;
    migration(&bed, &["install"]).await?.with(0)?;
    everybody(&bed).await?;
    // The positive control of every denial: the aggregation controller works, and these people have their roles.
    for (person, verb) in [("ann", "create"), ("ed", "create"), ("vic", "get")] {
        bed.wait_allowed(person, "shop", verb, "kubevirt.io", "virtualmachines").await?;
    }
    bed.wait_allowed("elsewhere", "other", "create", "kubevirt.io", "virtualmachines").await?;
    for (person, reads, writes) in matrix() {
        for what in READS {
            expect(&bed, &person, "shop", what, reads).await?;
        }
        expect_writes(&bed, &person, "shop", writes).await?;
    }

    // A grant for one namespace is no grant for another, nor for all; one for all is.
    let admin = bed.client().await?;
    for (person, other, all) in [("granted", false, false), ("everywhere", true, true), ("root", true, true)]
    {
        for (verb, resource) in WRITES {
            assert_eq!(
                review(&admin, &user(person), "other", verb, resource).await?,
                other,
                "{person} {verb} {resource}"
            );
            assert_eq!(
                review(&admin, &user(person), "", verb, resource).await?,
                all,
                "{person} {verb} {resource}"
            );
        }
    }

    // Labels as in KubeVirt's proposal for live-migration roles, without its stray backtick.
    let label = |key: &str| format!("rbac.authorization.k8s.io/aggregate-to-{key}=true");
    let unlabel = |key: &str| format!("rbac.authorization.k8s.io/aggregate-to-{key}-");
    bed.kubectl(&["label", "--overwrite", "clusterrole", MIGRATE, &label("admin"), &label("edit")])
        .await?
        .ok()?;
    expect_writes(&bed, &user("ann"), "shop", true).await?;
    expect_writes(&bed, &user("ed"), "shop", true).await?;
    expect_writes(&bed, &user("vic"), "shop", false).await?;
    bed.kubectl(&["label", "clusterrole", MIGRATE, &unlabel("edit")]).await?.ok()?;
    expect_writes(&bed, &user("ed"), "shop", false).await?;
    expect_writes(&bed, &user("ann"), "shop", true).await?;
    bed.kubectl(&["label", "clusterrole", MIGRATE, &unlabel("admin"), &label("edit")]).await?.ok()?;
    expect_writes(&bed, &user("ed"), "shop", true).await?;
    // edit is part of admin: two hops of the aggregation controller.
    expect_writes(&bed, &user("ann"), "shop", true).await?;

    // nacre honours what an administrator chose, for ever, and says so.
    let answer = migration(&bed, &["install", "-o", "json"]).await?.json(0)?;
    assert!(
        answer["changes"]
            .as_array()
            .unwrap()
            .iter()
            .all(|change| change.as_str().unwrap().contains("configmap")),
        "{answer:#}"
    );
    assert_eq!(answer["opt_ins"][0]["role"], "edit");
    assert_eq!(answer["opt_ins"][0]["set_by"], "kubectl-label");
    let again = migration(&bed, &["install", "-o", "json"]).await?.json(0)?;
    assert_eq!(again["changes"], serde_json::json!([]), "settled");
    let role = Api::<ClusterRole>::all(admin.clone()).get(MIGRATE).await?;
    assert_eq!(role.metadata.labels.unwrap()["rbac.authorization.k8s.io/aggregate-to-edit"], "true");

    // Unlabelled, the default is back.
    bed.kubectl(&["label", "clusterrole", MIGRATE, &unlabel("edit")]).await?.ok()?;
    expect_writes(&bed, &user("ann"), "shop", false).await?;
    expect_writes(&bed, &user("ed"), "shop", false).await?;
    Ok(())
}

/// As a namespace admin I may still hotplug a device, although KubeVirt migrates to carry that out.
/// G7: hotplug of volumes without the permission to migrate
#[tokio::test]
async fn g7_hotplug_needs_no_right_to_migrate() -> Result<()> {
    let bed = cluster().await?;
    migration(&bed, &["install"]).await?.with(0)?;
    people(&bed).await?;
    let admin = bed.client().await?;
    for name in ["ann", "ed"] {
        bed.wait_allowed(name, "shop", "update", "kubevirt.io", "virtualmachines").await?;
        for machine in ["virtualmachines", "virtualmachineinstances"] {
            for action in ["addvolume", "removevolume"] {
                let allowed = review_in(
                    &admin,
                    &user(name),
                    "shop",
                    "update",
                    "subresources.kubevirt.io",
                    machine,
                    action,
                )
                .await?;
                assert!(allowed, "{name} {machine}/{action}");
                // Really: nobody answers behind the door, but it opens.
                let path = format!("/apis/subresources.kubevirt.io/v1/namespaces/shop/{machine}/db/{action}");
                let own = user(name).client(&bed).await?;
                let answer = own.request_text(http::Request::put(path).body(Vec::new())?).await;
                assert!(crate::ask::let_in(answer)?, "{name} {machine}/{action}");
            }
        }
        expect_writes(&bed, &user(name), "shop", false).await?;
    }
    assert!(
        !review_in(
            &admin,
            &user("vic"),
            "shop",
            "update",
            "subresources.kubevirt.io",
            "virtualmachines",
            "addvolume"
        )
        .await?
    );
    Ok(())
}
