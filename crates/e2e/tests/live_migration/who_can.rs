//! who-can compared with the API server: a SubjectAccessReview for every subject, namespace and permission.

use std::time::{Duration, Instant};

use anyhow::Result;
use bed::Bed;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::ask::{Person, WRITES, account, expect_writes, review, user};
use crate::cluster::{a_group, a_user, an_account, cluster, migration, people};

const NAMESPACES: [&str; 8] = ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"];
const BINDINGS: usize = 300;

/// A small generator of numbers: the same cluster every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

/// Somebody a binding names, as the binding, the answer and a review know them.
struct Subject {
    json: Value,
    person: Person,
}

fn subjects() -> Vec<Subject> {
    let users = (0..30).map(|number| {
        let name = format!("user-{number}");
        Subject { json: a_user(&name), person: Person { user: name, groups: Vec::new() } }
    });
    let groups = (0..10).map(|number| {
        let name = format!("group-{number}");
        Subject { json: a_group(&name), person: Person { user: "nobody".to_owned(), groups: vec![name] } }
    });
    let accounts = (0..12).map(|number| {
        let (namespace, name) = (NAMESPACES[number % 4], format!("robot-{number}"));
        Subject { json: an_account(namespace, &name), person: account(namespace, &name) }
    });
    // The group every account of a namespace is in, whether anybody thinks of it or not.
    let crowd = Subject {
        json: a_group("system:serviceaccounts:n1"),
        person: Person { user: "nobody".to_owned(), groups: vec!["system:serviceaccounts:n1".to_owned()] },
    };
    users.chain(groups).chain(accounts).chain([crowd]).collect()
}

/// Roles that give all, some or nothing, plainly or by wildcards and names.
fn roles() -> Vec<Value> {
    let vmim = "virtualmachineinstancemigrations";
    let cluster_role = |name: &str, group: &str, resource: &str, verbs: &[&str], names: &[&str]| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": name },
            "rules": [{ "apiGroups": [group], "resources": [resource], "verbs": verbs, "resourceNames": names }],
        })
    };
    let mut all = vec![
        cluster_role("wild", "*", "*", &["*"], &[]),
        cluster_role("kubevirt", "kubevirt.io", "*", &["*"], &[]),
        cluster_role("deleter", "kubevirt.io", vmim, &["delete", "deletecollection"], &[]),
        cluster_role("reader", "kubevirt.io", vmim, &["get", "list", "watch"], &[]),
        cluster_role("narrow", "kubevirt.io", vmim, &["delete"], &["one"]),
        cluster_role("any-migrate", "subresources.kubevirt.io", "*/migrate", &["update"], &[]),
        cluster_role("status-only", "kubevirt.io", &format!("{vmim}/status"), &["*"], &[]),
        cluster_role("elsewhere", "apps", "*", &["*"], &[]),
    ];
    for namespace in NAMESPACES {
        all.push(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": { "name": "own", "namespace": namespace },
            "rules": [{ "apiGroups": ["kubevirt.io"], "resources": [vmim], "verbs": ["create", "patch"] }],
        }));
    }
    all
}

async fn generate(bed: &Bed, subjects: &[Subject]) -> Result<()> {
    for namespace in NAMESPACES {
        bed.namespace(namespace).await?;
    }
    let mut objects = roles();
    let kinds = [
        "admin",
        "edit",
        "view",
        "kubevirt.io:migrate",
        "kubevirt.io:admin",
        "wild",
        "kubevirt",
        "deleter",
        "reader",
        "narrow",
        "any-migrate",
        "status-only",
        "elsewhere",
        "missing",
    ];
    let mut dice = Dice(8);
    for number in 0..BINDINGS {
        let role = kinds[dice.roll(kinds.len())];
        let everywhere = dice.roll(12) == 0;
        let (kind, role) =
            if !everywhere && dice.roll(6) == 0 { ("Role", "own") } else { ("ClusterRole", role) };
        let chosen: Vec<Value> =
            (0..=dice.roll(3)).map(|_| subjects[dice.roll(subjects.len())].json.clone()).collect();
        let mut binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": if everywhere { "ClusterRoleBinding" } else { "RoleBinding" },
            "metadata": { "name": format!("b{number}") },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role },
            "subjects": chosen,
        });
        if !everywhere {
            binding["metadata"]["namespace"] = json!(NAMESPACES[dice.roll(NAMESPACES.len())]);
        }
        objects.push(binding);
    }
    let objects: Vec<DynamicObject> =
        objects.into_iter().map(serde_json::from_value).collect::<Result<_, _>>()?;
    bed.apply(&objects).await
}

/// Whether the answer says that this subject has this right in this namespace (empty: in all), for every object.
fn listed(rights: &[Value], subject: &Subject, namespace: &str, power: &str) -> bool {
    rights.iter().any(|right| {
        let scope = &right["scope"];
        right["power"] == power
            && is_one_of(&right["who"], subject)
            && (scope == "cluster" || (!namespace.is_empty() && scope["namespace"] == namespace))
            && right["paths"].as_array().unwrap().iter().any(|path| path.get("only").is_none())
    })
}

fn is_one_of(who: &Value, subject: &Subject) -> bool {
    match who["kind"].as_str() {
        Some("Group") => subject.person.groups.iter().any(|group| who["name"] == *group),
        _ => {
            who["name"] == subject.json["name"]
                && who["kind"] == subject.json["kind"]
                && who.get("namespace") == subject.json.get("namespace")
        }
    }
}

#[tokio::test]
async fn who_can_is_what_the_api_server_says_and_quick() -> Result<()> {
    let bed = cluster().await?;
    migration(&bed, &["install", "--guard", "off"]).await?.with(0)?;
    let subjects = subjects();
    generate(&bed, &subjects).await?;
    // The last binding counts, and the aggregation controller has done its work: then the truth stands still.
    bed.bind("n7", "last", "admin").await?;
    bed.wait_allowed("last", "n7", "create", "kubevirt.io", "virtualmachines").await?;

    let answer = migration(&bed, &["who-can", "-A", "-o", "json"]).await?.json(0)?;
    let mut fastest = Duration::MAX;
    for _ in 0..3 {
        let began = Instant::now();
        migration(&bed, &["who-can", "-A", "-o", "json"]).await?.json(0)?;
        fastest = fastest.min(began.elapsed());
    }
    let rights = answer["rights"].as_array().unwrap().clone();
    assert!(rights.iter().all(|right| right["confirmed"] == true), "every right is confirmed");
    let indirect = answer["indirect"].as_array().unwrap();
    assert!(
        !indirect.is_empty() && indirect.iter().all(|found| found["confirmed"] == true),
        "and every detour"
    );

    let admin = bed.client().await?;
    let places: Vec<&str> = NAMESPACES.into_iter().chain([""]).collect();
    let questions = subjects.iter().flat_map(|subject| {
        let places = places.clone();
        places.into_iter().flat_map(move |place| WRITES.map(|what| (subject, place, what)))
    });
    let asked: Vec<(String, bool, bool)> = stream::iter(questions)
        .map(|(subject, place, (verb, resource))| {
            let (admin, rights) = (admin.clone(), &rights);
            async move {
                let truth = review(&admin, &subject.person, place, verb, resource).await?;
                let power = if resource.contains('/') { "migrate" } else { verb };
                let said = listed(rights, subject, place, power);
                anyhow::Ok((format!("{} {power} in {place:?}", subject.json), truth, said))
            }
        })
        .buffer_unordered(32)
        .try_collect()
        .await?;
    let wrong: Vec<_> = asked.iter().filter(|(_, truth, said)| truth != said).collect();
    assert!(wrong.is_empty(), "{} of {} differ: {wrong:#?}", wrong.len(), asked.len());
    let allowed = asked.iter().filter(|(_, truth, _)| *truth).count();
    assert!(
        allowed > 500 && allowed < asked.len() - 500,
        "the cluster says neither always yes nor always no: {allowed}"
    );

    println!(
        "who-can: {} reviews by brute force, {allowed} allowed, {} rights listed in {fastest:?}",
        asked.len(),
        rights.len()
    );
    assert!(fastest < Duration::from_secs(2), "{fastest:?}");
    Ok(())
}

/// Explaining names the reason and a command, and the command works.
#[tokio::test]
async fn explain_says_why_and_its_command_helps() -> Result<()> {
    let bed = cluster().await?;
    migration(&bed, &["install", "--guard", "off"]).await?.with(0)?;
    people(&bed).await?;
    expect_writes(&bed, &user("ann"), "shop", false).await?;

    let answer =
        migration(&bed, &["explain", "--user", "ann", "-n", "shop", "db", "-o", "json"]).await?.json(3)?;
    assert_eq!(answer["can_migrate"], false);
    assert!(
        answer["because"][0].as_str().unwrap().contains("rolebinding/admin-ann gives admin"),
        "{answer:#}"
    );
    let command = answer["remedy"].as_str().unwrap().to_owned();
    let words: Vec<&str> = command.split(' ').collect();
    assert_eq!(words[..3], ["kubectl", "nacre", "migration"]);

    // A tenant may ask about itself, though it reads neither roles nor bindings.
    let own = migration(&bed, &["explain", "-n", "shop", "--as", "ed", "--as-group", "system:authenticated"])
        .await?;
    assert!(
        own.code == Some(3) && own.stdout.contains("kubectl nacre migration grant --user ed -n shop"),
        "{own:?}"
    );

    migration(&bed, &words[3..]).await?.with(0)?;
    expect_writes(&bed, &user("ann"), "shop", true).await?;
    let answer = migration(&bed, &["explain", "--user", "ann", "-n", "shop", "-o", "json"]).await?.json(0)?;
    assert_eq!(answer["verdicts"][0]["paths"][0]["binding"], "rolebinding/nacre:migrate:user:ann");
    let who = migration(&bed, &["who-can", "-n", "shop"]).await?.with(0)?;
    assert!(who.contains("user ann") && who.contains("~evict"), "{who}");

    // A KubeVirt operator is respected.
    let operator = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "virt-operator", "namespace": "kubevirt", "labels": { "kubevirt.io": "virt-operator" } },
        "spec": {
            "replicas": 1, "selector": { "matchLabels": { "a": "b" } },
            "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "a", "image": "a" }] } },
        },
    });
    bed.apply(&[serde_json::from_value(operator)?]).await?;
    bed.kubectl(&["delete", "clusterrole", "kubevirt.io:view"]).await?.ok()?;
    let answer = migration(&bed, &["install"]).await?;
    assert!(answer.stderr.contains("a virt-operator runs in namespace kubevirt"), "{answer:?}");
    assert!(!bed.kubectl(&["get", "clusterrole", "kubevirt.io:view"]).await?.success, "it stays away");
    Ok(())
}
