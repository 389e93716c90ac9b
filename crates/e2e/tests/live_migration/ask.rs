//! Asking the API server, by SubjectAccessReview and by real requests.

use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use bed::{Bed, eventually};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

pub(crate) const TIMEOUT: Duration = Duration::from_mins(2);

/// Everything that can be done about migrations, as verb and resource.
pub(crate) const WRITES: [(&str, &str); 6] = [
    ("create", "virtualmachineinstancemigrations"),
    ("update", "virtualmachineinstancemigrations"),
    ("patch", "virtualmachineinstancemigrations"),
    ("delete", "virtualmachineinstancemigrations"),
    ("deletecollection", "virtualmachineinstancemigrations"),
    ("update", "virtualmachines/migrate"),
];
pub(crate) const READS: [(&str, &str); 3] = [
    ("get", "virtualmachineinstancemigrations"),
    ("list", "virtualmachineinstancemigrations"),
    ("watch", "virtualmachineinstancemigrations"),
];

/// Somebody who asks.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    pub(crate) user: String,
    pub(crate) groups: Vec<String>,
}

pub(crate) fn user(name: &str) -> Person {
    Person { user: name.to_owned(), groups: vec!["system:authenticated".to_owned()] }
}

pub(crate) fn member(name: &str, group: &str) -> Person {
    Person { groups: vec![group.to_owned(), "system:authenticated".to_owned()], ..user(name) }
}

pub(crate) fn account(namespace: &str, name: &str) -> Person {
    Person {
        user: format!("system:serviceaccount:{namespace}:{name}"),
        groups: vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".to_owned(),
        ],
    }
}

impl Person {
    /// A client that acts as this person.
    pub(crate) async fn client(&self, bed: &Bed) -> Result<Client> {
        let groups: Vec<&str> = self.groups.iter().map(String::as_str).collect();
        bed.client_as(&self.user, &groups).await
    }
}

/// What RBAC says; an empty namespace asks about all of them.
pub(crate) async fn review(
    client: &Client,
    who: &Person,
    namespace: &str,
    verb: &str,
    resource: &str,
) -> Result<bool> {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let group = if subresource.is_empty() { "kubevirt.io" } else { "subresources.kubevirt.io" };
    review_in(client, who, namespace, verb, group, resource, subresource).await
}

/// The same for any group.
pub(crate) async fn review_in(
    client: &Client,
    who: &Person,
    namespace: &str,
    verb: &str,
    group: &str,
    resource: &str,
    subresource: &str,
) -> Result<bool> {
    let word = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(who.user.clone()),
            groups: Some(who.groups.clone()),
            resource_attributes: Some(ResourceAttributes {
                namespace: word(namespace),
                verb: word(verb),
                group: word(group),
                resource: word(resource),
                subresource: word(subresource),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let answer =
        Api::<SubjectAccessReview>::all(client.clone()).create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

pub(crate) fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("kubevirt.io", "v1", kind))
}

/// The API of one of KubeVirt's kinds.
pub(crate) fn kubevirt(client: &Client, namespace: &str, kind: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &resource(kind))
}

pub(crate) fn migrations(client: &Client, namespace: &str) -> Api<DynamicObject> {
    kubevirt(client, namespace, "VirtualMachineInstanceMigration")
}

/// A migration as a user writes it, with these annotations.
pub(crate) fn migration(name: &str, annotations: &Value) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceMigration",
        "metadata": { "name": name, "annotations": annotations },
        "spec": { "vmiName": "db" },
    }))
    .unwrap()
}

/// Whether a request went through the door; what lies behind it may still not be there.
pub(crate) fn let_in<T>(answer: kube::Result<T>) -> Result<bool> {
    match answer {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(false),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Really does one of [`WRITES`] or [`READS`], but for good: everything that can be is a dry run, and the rest is aimed at nothing.
pub(crate) async fn really(client: &Client, namespace: &str, verb: &str, resource: &str) -> Result<bool> {
    let api = migrations(client, namespace);
    match (verb, resource) {
        ("get", _) => let_in(api.get("nobody").await),
        ("list", _) => let_in(api.list(&kube::api::ListParams::default()).await),
        ("watch", _) => let_in(api.watch(&kube::api::WatchParams::default().timeout(1), "0").await.map(drop)),
        ("create", _) => let_in(
            api.create(
                &PostParams { dry_run: true, ..PostParams::default() },
                &migration("probe", &json!({})),
            )
            .await,
        ),
        ("update", "virtualmachines/migrate") => {
            let path = format!(
                "/apis/subresources.kubevirt.io/v1/namespaces/{namespace}/virtualmachines/db/migrate"
            );
            let request = http::Request::put(path).body(Vec::new())?;
            let_in(client.request_text(request).await)
        }
        ("update", _) => {
            let_in(api.replace("nobody", &PostParams::default(), &migration("nobody", &json!({}))).await)
        }
        ("patch", _) => let_in(api.patch("nobody", &PatchParams::default(), &Patch::Merge(&json!({}))).await),
        ("delete", _) => let_in(api.delete("nobody", &DeleteParams::default()).await),
        ("deletecollection", _) => {
            let nothing = kube::api::ListParams::default().labels("nobody=nothing");
            let_in(api.delete_collection(&DeleteParams::default(), &nothing).await)
        }
        other => Err(anyhow!("{other:?} is not known here")),
    }
}

/// Waits until a review gives this answer, and until a real request agrees.
pub(crate) async fn expect(
    bed: &Bed,
    who: &Person,
    namespace: &str,
    what: (&str, &str),
    allowed: bool,
) -> Result<()> {
    let (verb, resource) = what;
    let (admin, own) = (bed.client().await?, who.client(bed).await?);
    let words = if allowed { "may" } else { "may not" };
    let sentence = format!("{} {words} {verb} {resource} in {namespace}", who.user);
    eventually(&sentence, TIMEOUT, async || {
        let reviewed = review(&admin, who, namespace, verb, resource).await?;
        let done = really(&own, namespace, verb, resource).await?;
        ensure!(reviewed == allowed && done == allowed, "reviewed: {reviewed}, really: {done}");
        anyhow::Ok(())
    })
    .await
}

/// The same for every write.
pub(crate) async fn expect_writes(bed: &Bed, who: &Person, namespace: &str, allowed: bool) -> Result<()> {
    for what in WRITES {
        expect(bed, who, namespace, what, allowed).await?;
    }
    Ok(())
}
