//! Asking the API server itself, many questions at once.

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::{
    authentication::v1::SelfSubjectReview,
    authorization::v1::{
        ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
        SubjectAccessReviewSpec,
    },
};
use kube::{Api, Client, api::PostParams};
use planner::kubevirt::Power;
use planner::rbac::{rules::Request, subject::Identity};

/// Enough to keep an API server busy, and few enough not to be throttled.
const AT_ONCE: usize = 32;

/// One question.
pub(super) struct Question {
    pub(super) identity: Identity,
    /// Empty for all namespaces.
    pub(super) namespace: String,
    pub(super) request: Request,
    /// Of which object; empty for any.
    pub(super) name: String,
}

/// The answers, in the order of the questions.
pub(super) async fn allowed(client: &Client, questions: Vec<Question>) -> Result<Vec<bool>> {
    let reviews = Api::<SubjectAccessReview>::all(client.clone());
    stream::iter(questions)
        .map(|question| {
            let reviews = reviews.clone();
            async move {
                let review = SubjectAccessReview {
                    spec: SubjectAccessReviewSpec {
                        user: Some(question.identity.user.clone()),
                        groups: Some(question.identity.groups.clone()),
                        resource_attributes: Some(attributes(&question)),
                        ..SubjectAccessReviewSpec::default()
                    },
                    ..SubjectAccessReview::default()
                };
                let answer = reviews.create(&PostParams::default(), &review).await?;
                Ok(answer.status.is_some_and(|status| status.allowed))
            }
        })
        .buffered(AT_ONCE)
        .try_collect()
        .await
}

/// What the caller may do, without the right to ask about others.
pub(super) async fn allowed_to_me(
    client: &Client,
    namespace: &str,
    power: Power,
    name: &str,
) -> Result<bool> {
    let question = Question {
        identity: Identity { user: String::new(), groups: Vec::new() },
        namespace: namespace.to_owned(),
        request: power.request(),
        name: name.to_owned(),
    };
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes(&question)),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let answer = Api::all(client.clone()).create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// Who the caller is.
pub(super) async fn myself(client: &Client) -> Result<Identity> {
    let reviews = Api::<SelfSubjectReview>::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
    let user = answer.status.and_then(|status| status.user_info).unwrap_or_default();
    Ok(Identity { user: user.username.unwrap_or_default(), groups: user.groups.unwrap_or_default() })
}

fn attributes(question: &Question) -> ResourceAttributes {
    let request = &question.request;
    let word = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    ResourceAttributes {
        group: word(request.group),
        resource: word(request.resource),
        subresource: word(request.subresource),
        verb: word(request.verb),
        namespace: word(&question.namespace),
        name: word(&question.name),
        ..ResourceAttributes::default()
    }
}
