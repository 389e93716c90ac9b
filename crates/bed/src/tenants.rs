//! Namespaces, and the people who own them.

use std::time::Duration;

use anyhow::{Result, anyhow};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use crate::Bed;
use crate::wait::{eventually, wait_until};

const TIMEOUT: Duration = Duration::from_mins(2);

impl Bed {
    /// Makes a namespace and waits for its default ServiceAccount, without which no pod can be made.
    pub async fn namespace(&self, name: &str) -> Result<()> {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        self.apply(&[serde_json::from_value(namespace)?]).await?;
        let accounts = Api::<ServiceAccount>::namespaced(self.client().await?, name);
        let what = format!("the default ServiceAccount of {name}");
        wait_until(&what, TIMEOUT, accounts, "default", |account| account.map(|_| ())).await
    }

    /// Gives a user one of `admin`, `edit` and `view` in a namespace, and waits until that counts.
    pub async fn bind(&self, namespace: &str, user: &str, role: &str) -> Result<()> {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": { "name": format!("{role}-{user}"), "namespace": namespace },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
        });
        self.apply(&[serde_json::from_value(binding)?]).await?;
        // What the role has and the next smaller one has not.
        let (verb, group, resource) = match role {
            "admin" => ("create", "rbac.authorization.k8s.io", "rolebindings"),
            "edit" => ("create", "", "configmaps"),
            _ => ("get", "", "configmaps"),
        };
        self.wait_allowed(user, namespace, verb, group, resource).await
    }

    /// Waits until a user may do something: roles are aggregated and cached, so a new rule counts a moment later.
    pub async fn wait_allowed(
        &self,
        user: &str,
        namespace: &str,
        verb: &str,
        group: &str,
        resource: &str,
    ) -> Result<()> {
        let what = format!("{user} to be allowed to {verb} {resource}.{group} in {namespace}");
        eventually(&what, TIMEOUT, async || {
            match self.allowed(user, namespace, verb, group, resource).await {
                Ok(true) => Ok(()),
                Ok(false) => Err(anyhow!("it is not allowed")),
                Err(error) => Err(error),
            }
        })
        .await
    }

    /// Whether RBAC lets a user do something.
    pub async fn allowed(
        &self,
        user: &str,
        namespace: &str,
        verb: &str,
        group: &str,
        resource: &str,
    ) -> Result<bool> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(user.to_owned()),
                groups: Some(vec!["system:authenticated".to_owned()]),
                resource_attributes: Some(ResourceAttributes {
                    namespace: Some(namespace.to_owned()),
                    verb: Some(verb.to_owned()),
                    group: Some(group.to_owned()),
                    resource: Some(resource.to_owned()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews = Api::<SubjectAccessReview>::all(self.client().await?);
        let reviewed = reviews.create(&PostParams::default(), &review).await?;
        Ok(reviewed.status.is_some_and(|status| status.allowed))
    }
}
