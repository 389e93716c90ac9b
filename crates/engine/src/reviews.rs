//! Finds out what decisions ask for: by SubjectAccessReview what requesters are permitted, by discovery which resources
//! the cluster serves. Nothing is stored by either.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use http::Request;
use http::header::ACCEPT;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::PostParams;
use kube::{Api, Client};
use planner::requester::{Ask, Requester, Review};
use planner::served::{self, DISCOVERY, Served};
use serde::de::Error;
use serde_json::Value;
use tokio::time::sleep;
use tracing::debug;

use crate::cluster::Cluster;
use crate::degraded::is_missing_permission;
use crate::error::status;

/// How many at a time.
const AT_A_TIME: usize = 16;
/// Pause before a retry of what failed.
const AGAIN: Duration = Duration::from_secs(1);
/// Name of the missing permission.
const CREATE: &str =
    "permissions of requesters are not checked, since subjectaccessreviews may not be created";
/// By what OpenShift limits a token, among the extra fields of a user.
const SCOPES: &str = "scopes.authorization.openshift.io";

/// Answers what decisions ask, and enqueues whoever asked. Each review is counted.
pub async fn answer_asks(client: Client, cluster: Arc<Cluster>, count: impl Fn() + Send + Sync + 'static) {
    loop {
        let asks = cluster.asks().await;
        let answers = asks.into_iter().map(|ask| answer(&client, &cluster, &count, ask));
        let failed: Vec<_> =
            stream::iter(answers).buffer_unordered(AT_A_TIME).filter_map(async |ask| ask).collect().await;
        if !failed.is_empty() {
            sleep(AGAIN).await;
            cluster.change(|state| {
                for ask in failed {
                    state.give_back(ask);
                }
                Vec::new()
            });
        }
    }
}

/// Finds out what somebody else than a decision asks, once each, as far as that works.
pub async fn find_out(client: &Client, cluster: &Cluster, asks: Vec<Ask>) {
    let answers = asks.into_iter().map(|ask| answer(client, cluster, || {}, ask));
    stream::iter(answers).buffer_unordered(AT_A_TIME).for_each(async |_| ()).await;
}

/// Finds one thing out. Returns it if that failed.
async fn answer(client: &Client, cluster: &Cluster, count: impl Fn(), ask: Ask) -> Option<Ask> {
    let answered = match &ask {
        Ask::Served => {
            read_served(client).await.map(|served| cluster.change(|state| state.set_served(served)))
        }
        Ask::Review(review) => {
            count();
            match is_allowed(client, review).await {
                Err(error) if status(&error).is_some_and(is_missing_permission) => {
                    cluster.degraded().disable(CREATE, &error.to_string());
                    cluster.change(planner::State::forbid_reviews);
                    Ok(())
                }
                answer => answer.map(|allowed| {
                    cluster.degraded().enable(CREATE);
                    cluster.change(|state| state.set_review(review, allowed));
                }),
            }
        }
    };
    answered.inspect_err(|error| debug!(%error, "a review failed; retrying")).err().map(|_| ask)
}

/// The resources that the cluster serves.
pub async fn read_served(client: &Client) -> kube::Result<Vec<Served>> {
    let read = async |path: &str| {
        let request = Request::get(path).header(ACCEPT, DISCOVERY).body(Vec::new());
        let text = client.request_text(request.map_err(kube::Error::HttpError)?).await?;
        let list: Value = serde_json::from_str(&text).map_err(kube::Error::SerdeError)?;
        let other = || kube::Error::SerdeError(serde_json::Error::custom("it is not a list of API groups"));
        served::read(&list).ok_or_else(other)
    };
    let (core, groups) = tokio::try_join!(read("/api"), read("/apis"))?;
    Ok(core.into_iter().chain(groups).collect())
}

/// Whether the API server permits it.
pub async fn is_allowed(client: &Client, review: &Review) -> kube::Result<bool> {
    let Review { requester, namespace, attributes } = review;
    let Requester { user, uid, groups, scopes, extra } = &**requester;
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let scopes = (!scopes.is_empty()).then(|| (SCOPES.to_owned(), scopes.clone()));
    let extra: BTreeMap<_, _> = extra.clone().into_iter().chain(scopes).collect();
    let asked = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(user.clone()),
            uid: some(uid),
            groups: Some(groups.clone()),
            extra: (!extra.is_empty()).then_some(extra),
            resource_attributes: Some(ResourceAttributes {
                namespace: Some(namespace.clone()),
                verb: Some(attributes.verb.to_owned()),
                group: some(&attributes.group),
                resource: Some(attributes.resource.clone()),
                subresource: some(attributes.subresource),
                name: some(&attributes.name),
                ..ResourceAttributes::default()
            }),
            non_resource_attributes: None,
        },
        ..SubjectAccessReview::default()
    };
    let reviews = Api::<SubjectAccessReview>::all(client.clone());
    let reviewed = reviews.create(&PostParams::default(), &asked).await?;
    Ok(reviewed.status.is_some_and(|status| status.allowed))
}
