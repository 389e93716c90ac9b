//! Granted permissions compared with used ones: the rules of a program's roles, and the API server's audit log.

use std::fmt;

use anyhow::{Context, Result};
use bed::{Request, Requests};
use kube::api::DynamicObject;
use serde_json::Value;

use crate::deploy;

/// One right: this verb on this resource, here or everywhere, on any object or on one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    /// The role that gives it.
    pub role: String,
    /// Where it holds; none for everywhere.
    pub namespace: Option<String>,
    /// The API group.
    pub group: String,
    /// The plural, followed by the subresource if there is one.
    pub resource: String,
    /// What may be done.
    pub verb: String,
    /// On which object; none for any.
    pub name: Option<String>,
}

/// Everything one account may do by some roles.
#[derive(Clone, Debug)]
pub struct Rights(Vec<Right>);

impl Rights {
    /// What these files of the `deploy` folder give this account.
    pub fn shipped(files: &[&str], account: &str) -> Result<Self> {
        let objects: Result<Vec<_>> = files.iter().map(|file| bed::read_manifests(&deploy(file))).collect();
        Self::read(&objects?.concat(), account)
    }

    /// These too.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// What these roles and bindings give this account.
    pub fn read(objects: &[DynamicObject], account: &str) -> Result<Self> {
        let kind = |object: &DynamicObject| object.types.as_ref().map(|types| types.kind.clone());
        let mut rights = Vec::new();
        let bindings =
            objects.iter().filter(|object| kind(object).is_some_and(|kind| kind.ends_with("RoleBinding")));
        for binding in bindings {
            let subjects = binding.data["subjects"].as_array().into_iter().flatten();
            if !subjects.into_iter().any(|subject| subject["name"] == account) {
                continue;
            }
            let of = &binding.data["roleRef"];
            let meant = |object: &&DynamicObject| {
                kind(object).as_deref() == of["kind"].as_str()
                    && object.metadata.name.as_deref() == of["name"].as_str()
                    && (of["kind"] == "ClusterRole"
                        || object.metadata.namespace == binding.metadata.namespace)
            };
            let role = objects.iter().find(meant).with_context(|| format!("no role for {binding:?}"))?;
            rights.extend(single(role, binding.metadata.namespace.as_deref()));
        }
        Ok(Self(rights))
    }

    /// Those that no request needed. One that holds everywhere is used by a request wherever that was; one that holds in a
    /// namespace only by a request that nothing else allows, since otherwise it could be left out.
    pub fn unused(&self, requests: &Requests) -> Vec<&Right> {
        let needed = |right: &&Right| {
            requests.as_slice().iter().any(|request| {
                let allow = self.0.iter().filter(|right| right.allows(request));
                right.allows(request)
                    && (right.namespace.is_none() || allow.into_iter().all(|other| other.namespace.is_some()))
            })
        };
        self.0.iter().filter(|right| !needed(right)).collect()
    }

    /// The requests that none of these allows.
    pub fn beyond(&self, requests: &Requests) -> Requests {
        requests.only(|request| !self.0.iter().any(|right| right.allows(request)))
    }

    /// All of them.
    pub fn all(&self) -> &[Right] {
        &self.0
    }
}

fn single(role: &DynamicObject, namespace: Option<&str>) -> Vec<Right> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut rights = Vec::new();
    for rule in role.data["rules"].as_array().into_iter().flatten() {
        let names = texts(&rule["resourceNames"]);
        let names: Vec<_> = if names.is_empty() { vec![None] } else { names.into_iter().map(Some).collect() };
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    rights.extend(names.iter().map(|name| Right {
                        role: role.metadata.name.clone().unwrap_or_default(),
                        namespace: namespace.map(str::to_owned),
                        group: group.clone(),
                        resource: resource.clone(),
                        verb: verb.clone(),
                        name: name.clone(),
                    }));
                }
            }
        }
    }
    rights
}

impl Right {
    /// Whether it allows this request, or was asked for on its account.
    pub fn allows(&self, request: &Request) -> bool {
        let resource = match self.verb.as_str() {
            // To bind a role takes that right on the role; nacre's roles and their bindings go by one name.
            "bind" if self.resource == "clusterroles" => "clusterrolebindings",
            _ => &self.resource,
        };
        if self.verb == "administer" {
            // The role that gives this verb takes holding it.
            let applied = request.verb == "patch" && request.code < 300;
            return applied
                && request.resource == "clusterroles"
                && request.name == "nacre:migration-infrastructure";
        }
        self.covers(request)
            && self.group == request.group
            && resource == request.resource
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == request.namespace)
            && self.name.as_ref().is_none_or(|name| *name == request.name)
    }

    /// What is applied where there is nothing takes the right to create it; a role that says more than its writer holds, the
    /// right to escalate it; and a binding to such a role, the right to bind it.
    fn covers(&self, request: &Request) -> bool {
        let applied = request.verb == "patch" && request.code < 300;
        match self.verb.as_str() {
            verb if verb == request.verb => true,
            "create" => applied && request.code == 201,
            "escalate" | "bind" => applied,
            _ => false,
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.namespace.as_deref().unwrap_or("every namespace");
        write!(f, "{} {}.{}", self.verb, self.resource, self.group)?;
        if let Some(name) = &self.name {
            write!(f, "/{name}")?;
        }
        write!(f, " in {place} (role {})", self.role)
    }
}

#[cfg(test)]
mod tests {
    use super::Rights;

    const ROLES: &str = "
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all}, rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: all}, roleRef: {kind: ClusterRole, name: all}, subjects: [{name: me}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: others}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: here, namespace: velero}, rules: [{apiGroups: [''], resources: [secrets], resourceNames: [a, b], verbs: [get, patch]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: here, namespace: velero}, roleRef: {kind: Role, name: here}, subjects: [{name: me}]}
";

    #[test]
    fn rights_are_those_of_the_account_one_by_one() {
        let rights = Rights::read(&bed::parse_manifests(ROLES).unwrap(), "me").unwrap();
        let shown: Vec<_> = rights.all().iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "get secrets. in every namespace (role all)",
                "get secrets./a in velero (role here)",
                "get secrets./b in velero (role here)",
                "patch secrets./a in velero (role here)",
                "patch secrets./b in velero (role here)",
            ]
        );
    }
}
