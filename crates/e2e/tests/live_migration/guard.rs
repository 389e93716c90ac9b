//! The guard: tenants, even those who may migrate, stay out of what drains and upgrades depend on, and everybody else passes.

use anyhow::{Result, bail, ensure};
use bed::{Bed, eventually};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{DeleteParams, DynamicObject, EvictParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::ask::{
    Person, TIMEOUT, account, expect_writes, kubevirt, migration as vmim, migrations, review, user,
};
use crate::cluster::{a_user, bind, cluster, migration, people};

const DRAIN: &str = "kubevirt.io/evacuationMigration";

/// Whether the guard refused; a refusal by RBAC would prove nothing.
fn refused<T>(answer: kube::Result<T>) -> Result<bool> {
    match answer {
        Ok(_) => Ok(false),
        Err(kube::Error::Api(status))
            if status.message.contains("ValidatingAdmissionPolicy 'nacre-migration-") =>
        {
            ensure!(status.code == 403, "{status:?}");
            Ok(true)
        }
        Err(error) => bail!("not the guard's refusal: {error}"),
    }
}

fn controller() -> Person {
    account("kubevirt", "kubevirt-controller")
}

/// A guarded cluster: ann owns `shop` and was granted the right, eve was granted it everywhere.
async fn guarded() -> Result<Bed> {
    let bed = cluster().await?;
    // KubeVirt's own controller, with the rights KubeVirt gives it.
    bed.apply_yaml(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: kubevirt-controller}\nrules:\n\
         - {apiGroups: [kubevirt.io], resources: ['*'], verbs: [get, list, watch, create, update, patch, delete]}\n\
         - {apiGroups: [''], resources: [pods], verbs: [get, list, watch, create, update, patch, delete]}\n",
    )
    .await?;
    bind(
        &bed,
        None,
        "kubevirt-controller",
        "kubevirt-controller",
        crate::cluster::an_account("kubevirt", "kubevirt-controller"),
    )
    .await?;
    migration(&bed, &["install", "--guard", "deny"]).await?.with(0)?;
    people(&bed).await?;
    migration(&bed, &["grant", "--user", "ann", "-n", "shop"]).await?.with(0)?;
    migration(&bed, &["grant", "--user", "eve", "--cluster"]).await?.with(0)?;
    expect_writes(&bed, &user("ann"), "shop", true).await?;
    expect_writes(&bed, &user("eve"), "other", true).await?;
    wait_for_guard(&bed).await?;
    Ok(bed)
}

/// Policies come into force a moment after they are made.
async fn wait_for_guard(bed: &Bed) -> Result<()> {
    let ann = user("ann").client(bed).await?;
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let probes = [
        (
            ann.clone(),
            "VirtualMachineInstanceMigration",
            json!({ "metadata": { "name": "probe", "annotations": { DRAIN: "n" } }, "spec": {} }),
        ),
        (
            ann,
            "VirtualMachine",
            json!({ "metadata": { "name": "probe", "annotations": { "kubevirt.io/func-test-x": "" } }, "spec": {} }),
        ),
    ];
    for (client, kind, mut body) in probes {
        body["apiVersion"] = json!("kubevirt.io/v1");
        body["kind"] = json!(kind);
        let object: DynamicObject = serde_json::from_value(body)?;
        eventually("the guard to be in force", TIMEOUT, async || {
            ensure!(refused(kubevirt(&client, "shop", kind).create(&dry, &object).await)?);
            anyhow::Ok(())
        })
        .await?;
    }
    Ok(())
}

async fn drains(client: &Client, namespace: &str, name: &str) -> Result<()> {
    let mut drain = vmim(name, &json!({ DRAIN: "node-1" }));
    drain.data["spec"]["priority"] = json!("system-critical");
    drain.metadata.finalizers = Some(vec!["kubevirt.io/migrationJobFinalize".to_owned()]);
    migrations(client, namespace).create(&PostParams::default(), &drain).await?;
    Ok(())
}

fn merge(change: Value) -> Patch<Value> {
    Patch::Merge(change)
}

/// G2: deleting or changing the migrations of a node drain
/// planted: the guard is off
#[tokio::test]
async fn g2_a_granted_tenant_manages_its_own_migrations_and_no_drains() -> Result<()> {
    let bed = guarded().await?;
    let infra = controller().client(&bed).await?;
    let (ann, eve, root) =
        (user("ann").client(&bed).await?, user("eve").client(&bed).await?, bed.client().await?);
    let change = PatchParams::default();
    drains(&infra, "shop", "kubevirt-evacuation-1").await?;

    // Its own: made, labelled, deleted; and it is written down who asked.
    let own = migrations(&ann, "shop").create(&PostParams::default(), &vmim("own", &json!({}))).await?;
    assert_eq!(own.annotations()["nacre.dev/requested-by"], "ann");
    migrations(&ann, "shop")
        .patch("own", &change, &merge(json!({ "metadata": { "labels": { "a": "b" } } })))
        .await?;

    // RBAC would let them; eve even everywhere, which makes her no infrastructure.
    let attempts = [(&ann, "ann"), (&eve, "eve")];
    for (client, name) in attempts {
        assert!(review(&root, &user(name), "shop", "delete", "virtualmachineinstancemigrations").await?);
        let theirs = migrations(client, "shop");
        assert!(
            refused(theirs.delete("kubevirt-evacuation-1", &DeleteParams::default()).await)?,
            "{name} deletes"
        );
        let strips = [
            json!({ "metadata": { "annotations": { DRAIN: null } } }),
            json!({ "metadata": { "finalizers": null } }),
            json!({ "metadata": { "labels": { "kubevirt.io/vmi-name": "other" } } }),
            json!({ "spec": { "vmiName": "other" } }),
        ];
        for strip in strips {
            let answer = theirs.patch("kubevirt-evacuation-1", &change, &merge(strip.clone())).await;
            assert!(refused(answer)?, "{name} strips {strip}");
        }
        let all = theirs.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
        assert!(refused(all)?, "{name} deletes the collection");
        assert!(migrations(&root, "shop").get_opt("kubevirt-evacuation-1").await?.is_some());

        let fakes = [
            json!({ "metadata": { "name": "fake", "annotations": { DRAIN: "n" } } }),
            json!({ "metadata": { "name": "fake", "annotations": { "kubevirt.io/workloadUpdateMigration": "" } } }),
            json!({ "metadata": { "name": "fake", "annotations": { "kubevirt.io/func-test-migration-target-image-override": "x" } } }),
            json!({ "metadata": { "name": "kubevirt-workload-update-x" } }),
            json!({ "metadata": { "generateName": "kubevirt-evacuation-" } }),
            json!({ "metadata": { "name": "fake" }, "spec": { "vmiName": "db", "priority": "system-critical" } }),
        ];
        for mut fake in fakes {
            fake["apiVersion"] = json!("kubevirt.io/v1");
            fake["kind"] = json!("VirtualMachineInstanceMigration");
            let object: DynamicObject = serde_json::from_value(fake.clone())?;
            assert!(refused(theirs.create(&PostParams::default(), &object).await)?, "{name} fakes {fake}");
        }
        if theirs.get_opt("mine").await?.is_none() {
            theirs.create(&PostParams::default(), &vmim("mine", &json!({}))).await?;
        }
        let later = merge(json!({ "metadata": { "annotations": { DRAIN: "n" } } }));
        assert!(refused(theirs.patch("mine", &change, &later).await)?, "{name} fakes it later");
        let name_of_another =
            merge(json!({ "metadata": { "annotations": { "nacre.dev/requested-by": "root" } } }));
        assert!(refused(theirs.patch("mine", &change, &name_of_another).await)?, "{name} blames another");
    }

    // Infrastructure and administrators are not in the guard's way.
    let finalizers = merge(json!({ "metadata": { "finalizers": null } }));
    migrations(&infra, "shop").patch("kubevirt-evacuation-1", &change, &finalizers).await?;
    migrations(&infra, "shop").delete("kubevirt-evacuation-1", &DeleteParams::default()).await?;
    drains(&infra, "shop", "kubevirt-evacuation-2").await?;
    migrations(&root, "shop").patch("kubevirt-evacuation-2", &change, &finalizers).await?;
    migrations(&root, "shop").delete("kubevirt-evacuation-2", &DeleteParams::default()).await?;

    // The planted weakness: without the guard a granted tenant ends a drain.
    drains(&infra, "shop", "kubevirt-evacuation-3").await?;
    migration(&bed, &["install", "--guard", "off"]).await?.with(0)?;
    let theirs = migrations(&ann, "shop");
    eventually("the guard to be gone", TIMEOUT, async || {
        theirs.patch("kubevirt-evacuation-3", &change, &finalizers).await.map(drop)
    })
    .await?;
    theirs.delete("kubevirt-evacuation-3", &DeleteParams::default()).await?;
    assert!(migrations(&root, "shop").get_opt("kubevirt-evacuation-3").await?.is_none());
    Ok(())
}

/// A migration into another cluster.
fn sent(name: &str, url: &str) -> DynamicObject {
    let mut sent = vmim(name, &json!({}));
    sent.data["spec"]["sendTo"] = json!({ "connectURL": url, "migrationID": "m" });
    sent
}

/// H11: G4 on a real API server, and the same steps without the guard
/// planted: the guard is off
#[tokio::test]
async fn g3_g4_h11_a_granted_tenant_sends_machines_only_where_the_administrators_allow() -> Result<()> {
    const PEER: &str = "peer.example.com:9185";
    const EVIL: &str = "evil.example.com:9185";
    let bed = guarded().await?;
    let (infra, own) = (controller().client(&bed).await?, user("ann").client(&bed).await?);
    let (infra, own) = (migrations(&infra, "shop"), migrations(&own, "shop"));
    let (real, dry) = (PostParams::default(), PostParams { dry_run: true, ..PostParams::default() });
    eventually("the guard over targets", TIMEOUT, async || {
        ensure!(refused(own.create(&dry, &sent("away", EVIL)).await)?);
        anyhow::Ok(())
    })
    .await?;
    assert!(refused(own.create(&real, &sent("away", PEER)).await)?, "none is allowed by default");
    own.create(&real, &vmim("plain", &json!({}))).await?;
    let turned = merge(json!({ "spec": { "sendTo": { "connectURL": EVIL } } }));
    assert!(refused(own.patch("plain", &PatchParams::default(), &turned).await)?);
    let mut chosen = vmim("chosen", &json!({}));
    chosen.data["spec"]["addedNodeSelector"] = json!({ "kubernetes.io/hostname": "n1" });
    assert!(refused(own.create(&real, &chosen).await)?);
    infra.create(&real, &sent("by-kubevirt", PEER)).await?;

    // The administrators allow one address.
    let settings = Api::<ConfigMap>::namespaced(bed.client().await?, "kube-system");
    let allowed = merge(json!({ "data": { "sendTo": PEER } }));
    settings.patch("nacre-migration", &PatchParams::default(), &allowed).await?;
    migration(&bed, &["install", "--guard", "deny"]).await?.with(0)?;
    eventually("the address to be allowed", TIMEOUT, async || {
        own.create(&dry, &sent("away", PEER)).await.map(drop)
    })
    .await?;
    assert!(refused(own.create(&real, &sent("away", EVIL)).await)?);

    // What administrators have who chose nothing: a guard that only warns. Nodes can be chosen then, and a machine is still
    // sent nowhere else.
    migration(&bed, &["install", "--guard", "warn"]).await?.with(0)?;
    eventually("the guard to warn only", TIMEOUT, async || own.create(&dry, &chosen).await.map(drop)).await?;
    assert!(refused(own.create(&real, &sent("away", EVIL)).await)?, "mode warn");
    own.create(&dry, &sent("away", PEER)).await?;

    // The planted weakness: without the guard nothing keeps her.
    migration(&bed, &["install", "--guard", "off"]).await?.with(0)?;
    eventually("the guard to be gone", TIMEOUT, async || {
        own.create(&dry, &sent("away", EVIL)).await.map(drop)
    })
    .await
}

/// G5: a grant extended, widened to another user, or copied into a Role of one's own
/// planted: the guard is off
#[tokio::test]
async fn g5_the_right_is_neither_handed_on_nor_hoarded_nor_prolonged() -> Result<()> {
    let bed = guarded().await?;
    migration(&bed, &["grant", "--user", "ann", "-n", "shop", "--expires", "1h"]).await?.with(0)?;
    let ann = user("ann").client(&bed).await?;
    let bindings = Api::<k8s_openapi::api::rbac::v1::RoleBinding>::namespaced(ann.clone(), "shop");
    let roles = Api::<k8s_openapi::api::rbac::v1::Role>::namespaced(ann.clone(), "shop");
    let binding = |role: &str| {
        serde_json::from_value(json!({
            "metadata": { "name": format!("for-bob-{}", role.replace(':', "-")) },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
            "subjects": [a_user("bob")],
        }))
    };
    let role = |name: &str, verbs: &[&str]| {
        serde_json::from_value(json!({
            "metadata": { "name": name },
            "rules": [{ "apiGroups": ["kubevirt.io"], "resources": ["virtualmachineinstancemigrations"], "verbs": verbs }],
        }))
    };
    // RBAC alone would let her, since she holds every verb of the role herself; and what is harmless she may.
    eventually("the guard over bindings", TIMEOUT, async || {
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        ensure!(refused(bindings.create(&dry, &binding("kubevirt.io:migrate")?).await)?);
        ensure!(refused(roles.create(&dry, &role("hoard", &["delete"])?).await)?);
        anyhow::Ok(())
    })
    .await?;
    bindings.create(&PostParams::default(), &binding("view")?).await?;
    roles.create(&PostParams::default(), &role("reader", &["get", "list"])?).await?;
    let widened =
        merge(json!({ "rules": [{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "delete"] }] }));
    // She does not hold all of that, so here RBAC speaks first; a rule she holds is the guard's to refuse.
    assert!(roles.patch("reader", &PatchParams::default(), &widened).await.is_err());
    let widened = merge(
        json!({ "rules": [{ "apiGroups": ["kubevirt.io"], "resources": ["virtualmachineinstancemigrations"], "verbs": ["delete"] }] }),
    );
    assert!(refused(roles.patch("reader", &PatchParams::default(), &widened).await)?);

    let grant = "nacre:migrate:user:ann";
    for change in [
        json!({ "metadata": { "annotations": { "nacre.dev/expires": "2999-01-01T00:00:00Z" } } }),
        json!({ "metadata": { "annotations": { "nacre.dev/expires": null } } }),
        json!({ "metadata": { "labels": { "nacre.dev/migration-grant": null } } }),
        json!({ "subjects": [a_user("ann"), a_user("bob")] }),
    ] {
        assert!(
            refused(bindings.patch(grant, &PatchParams::default(), &merge(change.clone())).await)?,
            "{change}"
        );
    }
    bindings
        .patch(
            grant,
            &PatchParams::default(),
            &merge(json!({ "metadata": { "labels": { "note": "mine" } } })),
        )
        .await?;
    // What was given from above can always be given up from below.
    bindings.delete(grant, &DeleteParams::default()).await?;
    expect_writes(&bed, &user("ann"), "shop", false).await?;

    // Without the guard, having the right was enough to hand it on: that is what the guard is for.
    migration(&bed, &["grant", "--user", "ann", "-n", "shop"]).await?.with(0)?;
    migration(&bed, &["install", "--guard", "off"]).await?.with(0)?;
    eventually("the guard to be gone", TIMEOUT, async || {
        bindings
            .create(&PostParams { dry_run: true, ..PostParams::default() }, &binding("kubevirt.io:migrate")?)
            .await?;
        anyhow::Ok(())
    })
    .await
}

fn pod(name: &str, labels: &Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": { "name": name, "labels": labels },
        "spec": { "containers": [{ "name": "compute", "image": "none" }], "terminationGracePeriodSeconds": 0 },
    }))
    .unwrap()
}

#[tokio::test]
async fn machines_pods_are_evicted_and_killed_by_infrastructure_alone() -> Result<()> {
    let bed = guarded().await?;
    bed.apply_yaml(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: drainer}\nrules:\n\
         - {apiGroups: [''], resources: [pods/eviction], verbs: [create]}\n\
         - {apiGroups: [''], resources: [pods], verbs: [get, list, delete]}\n",
    )
    .await?;
    bind(&bed, None, "drainer", "drainer", a_user("drainer")).await?;
    let pods = |client: &Client| Api::<Pod>::namespaced(client.clone(), "shop");
    let (root, ann, drainer) = (
        pods(&bed.client().await?),
        pods(&user("ann").client(&bed).await?),
        pods(&user("drainer").client(&bed).await?),
    );
    let target = json!({ "kubevirt.io/migrationJobUID": "1" });
    for (name, labels) in [
        ("virt-launcher-db-1", json!({})),
        ("web-0", json!({})),
        ("web-1", json!({})),
        ("virt-launcher-db-2", target),
    ] {
        root.create(&PostParams::default(), &pod(name, &labels)).await?;
    }
    bed.wait_allowed("ann", "shop", "delete", "", "pods").await?;
    eventually("the guard over evictions", TIMEOUT, async || {
        let dry = EvictParams {
            post_options: PostParams { dry_run: true, ..PostParams::default() },
            ..EvictParams::default()
        };
        ensure!(refused(ann.evict("virt-launcher-db-1", &dry).await)?);
        anyhow::Ok(())
    })
    .await?;
    ann.evict("web-0", &EvictParams::default()).await?;
    bed.wait_allowed("drainer", "shop", "delete", "", "pods").await?;
    drainer.evict("virt-launcher-db-1", &EvictParams::default()).await?;

    assert!(refused(ann.delete("virt-launcher-db-2", &DeleteParams::default()).await)?);
    let strip = merge(json!({ "metadata": { "labels": { "kubevirt.io/migrationJobUID": null } } }));
    assert!(refused(ann.patch("virt-launcher-db-2", &PatchParams::default(), &strip).await)?);
    ann.patch(
        "virt-launcher-db-2",
        &PatchParams::default(),
        &merge(json!({ "metadata": { "labels": { "a": "b" } } })),
    )
    .await?;
    ann.delete("web-1", &DeleteParams::default()).await?;
    drainer.delete("virt-launcher-db-2", &DeleteParams::default()).await?;
    Ok(())
}

#[tokio::test]
async fn machines_that_sabotage_migrations_are_refused_and_odd_ones_warned_about() -> Result<()> {
    let bed = guarded().await?;
    let machine = |name: &str, annotation: &str, place: &str| {
        let mut machine = json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": { "name": name },
            "spec": { "template": { "metadata": {}, "spec": {} } },
        });
        let annotations = json!({ annotation: "x" });
        match place {
            "machine" => machine["metadata"]["annotations"] = annotations,
            _ => machine["spec"]["template"]["metadata"]["annotations"] = annotations,
        }
        serde_json::from_value::<DynamicObject>(machine)
    };
    let (ann, infra) = (user("ann").client(&bed).await?, controller().client(&bed).await?);
    let mine = kubevirt(&ann, "shop", "VirtualMachine");
    mine.create(&PostParams::default(), &machine("good", "note", "template")?).await?;
    for mark in [
        "kubevirt.io/func-test-force-launcher-migration-failure",
        "kubevirt.io/eviction-source",
        "kubevirt.io/testWorkloadUpdateMigrationAbortion",
    ] {
        for place in ["machine", "template"] {
            assert!(
                refused(mine.create(&PostParams::default(), &machine("bad", mark, place)?).await)?,
                "{mark} {place}"
            );
        }
        let later = merge(json!({ "metadata": { "annotations": { mark: "x" } } }));
        assert!(refused(mine.patch("good", &PatchParams::default(), &later).await)?, "{mark}");
        let instance =
            merge(json!({ "spec": { "template": { "metadata": { "annotations": { mark: "x" } } } } }));
        assert!(refused(mine.patch("good", &PatchParams::default(), &instance).await)?, "{mark}");
    }
    // KubeVirt marks machines itself, and a tenant may still edit a machine that is marked.
    let mark =
        merge(json!({ "metadata": { "annotations": { "kubevirt.io/eviction-source": "descheduler" } } }));
    kubevirt(&infra, "shop", "VirtualMachine").patch("good", &PatchParams::default(), &mark).await?;
    mine.patch("good", &PatchParams::default(), &merge(json!({ "spec": { "running": true } }))).await?;

    let external = bed.folder().join("external.yaml");
    std::fs::write(
        &external,
        "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: external}\n\
         spec: {template: {spec: {evictionStrategy: External}}}\n",
    )?;
    let file = external.display().to_string();
    eventually("a warning", TIMEOUT, async || {
        let made =
            bed.kubectl(&["create", "--dry-run=server", "-n", "shop", "--as=ann", "-f", &file]).await?;
        ensure!(made.success && made.stderr.contains("evictionStrategy External"), "{made:?}");
        anyhow::Ok(())
    })
    .await
}

/// Namespaces go, garbage is collected, and the roll-out warns before it denies.
#[tokio::test]
async fn the_guard_is_in_nobodys_way() -> Result<()> {
    let bed = guarded().await?;
    let (root, infra) = (bed.client().await?, controller().client(&bed).await?);
    for policy in Api::<ValidatingAdmissionPolicy>::all(root.clone()).list(&ListParams::default()).await? {
        let name = policy.name_any();
        let checked = eventually("the policy to be type-checked", TIMEOUT, async || {
            let policy = Api::<ValidatingAdmissionPolicy>::all(root.clone()).get(&name).await?;
            policy.status.and_then(|status| status.type_checking).ok_or_else(|| anyhow::anyhow!("not yet"))
        })
        .await?;
        assert_eq!(checked.expression_warnings.unwrap_or_default(), [], "{name}");
    }

    // A namespace with a drain under way and a pod it goes to.
    bed.namespace("doomed").await?;
    let mut drain = vmim("kubevirt-evacuation-9", &json!({ DRAIN: "node-1" }));
    drain.data["spec"]["priority"] = json!("system-critical");
    migrations(&infra, "doomed").create(&PostParams::default(), &drain).await?;
    let doomed = Api::<Pod>::namespaced(root.clone(), "doomed");
    doomed
        .create(
            &PostParams::default(),
            &pod("virt-launcher-x", &json!({ "kubevirt.io/migrationJobUID": "1" })),
        )
        .await?;
    Api::<Namespace>::all(root.clone()).delete("doomed", &DeleteParams::default()).await?;
    bed::wait_until("the namespace to go", TIMEOUT, Api::<Namespace>::all(root.clone()), "doomed", |found| {
        found.is_none().then_some(())
    })
    .await?;

    // The garbage collector takes a drain whose machine is gone.
    let owner: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": { "name": "db" }, "spec": {},
    }))?;
    let owner =
        kubevirt(&root, "shop", "VirtualMachineInstance").create(&PostParams::default(), &owner).await?;
    let mut orphan = vmim("kubevirt-evacuation-10", &json!({ DRAIN: "node-1" }));
    orphan.metadata.owner_references = Some(vec![serde_json::from_value(json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "db", "uid": owner.uid().unwrap(),
    }))?]);
    migrations(&infra, "shop").create(&PostParams::default(), &orphan).await?;
    kubevirt(&root, "shop", "VirtualMachineInstance").delete("db", &DeleteParams::default()).await?;
    eventually("the garbage collector", TIMEOUT, async || {
        let left = migrations(&root, "shop").get_opt("kubevirt-evacuation-10").await?;
        ensure!(left.is_none(), "it is still there");
        anyhow::Ok(())
    })
    .await?;

    // Warning only: the request passes and says what would have been refused.
    drains(&infra, "shop", "kubevirt-evacuation-11").await?;
    let delete = ["delete", "vmim", "kubevirt-evacuation-11", "-n", "shop", "--as=ann", "--dry-run=server"];
    let denied = bed.kubectl(&delete).await?;
    assert!(!denied.success && denied.stderr.contains("only infrastructure may delete it"), "{denied:?}");
    migration(&bed, &["install", "--guard", "warn"]).await?.with(0)?;
    eventually("the guard to warn only", TIMEOUT, async || {
        let warned = bed.kubectl(&delete).await?;
        ensure!(warned.success && warned.stderr.contains("only infrastructure may delete it"), "{warned:?}");
        anyhow::Ok(())
    })
    .await
}
