//! Everybody who may make given requests, and by which path.

use std::collections::BTreeMap;

use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use kube::ResourceExt;
use serde::Serialize;

use super::aggregate::{self, Via};
use super::rules::{self, Reach, Request};
use super::subject::Who;

/// All of a cluster's RBAC, as it was read.
#[derive(Clone, Debug, Default)]
pub struct Rbac {
    /// Roles that can be bound anywhere.
    pub cluster_roles: Vec<ClusterRole>,
    /// Roles of single namespaces.
    pub roles: Vec<Role>,
    /// Who has a role everywhere.
    pub cluster_role_bindings: Vec<ClusterRoleBinding>,
    /// Who has a role in one namespace.
    pub role_bindings: Vec<RoleBinding>,
}

/// Where a right holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// In every namespace.
    Cluster,
    /// In this one.
    Namespace(String),
}

/// How a subject came to a right.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Path {
    /// The binding, as `kubectl get` takes it.
    pub binding: String,
    /// The role it names.
    pub role: String,
    /// The steps of aggregation from there to the role that holds the rule; none if the role itself does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<Via>,
    /// The rule, in short.
    pub rule: String,
    /// The only objects it is about, where the rule names them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
}

impl Scope {
    /// Whether something that holds here holds in that namespace.
    pub fn includes(&self, namespace: &str) -> bool {
        match self {
            Self::Cluster => true,
            Self::Namespace(own) => own == namespace,
        }
    }

    /// The namespace, if it is one.
    pub fn namespace(&self) -> Option<&str> {
        match self {
            Self::Cluster => None,
            Self::Namespace(own) => Some(own),
        }
    }
}

/// A subject that may make one of the requests asked about.
pub struct Holding {
    /// The subject.
    pub who: Who,
    /// Where it may.
    pub scope: Scope,
    /// Which of them, by position.
    pub request: usize,
    /// How it came to that permission.
    pub path: Path,
}

/// What one role gives: which request, from where, by which rule.
#[derive(Clone)]
struct Given {
    request: usize,
    via: Vec<Via>,
    rule: String,
    only: Vec<String>,
}

/// Everybody who may make one of these requests. Each role is read once, however many bindings name it.
pub fn holdings(rbac: &Rbac, requests: &[Request]) -> Vec<Holding> {
    let cluster: BTreeMap<String, Vec<Given>> =
        rbac.cluster_roles.iter().map(|role| (role.name_any(), given_by(role, rbac, requests))).collect();
    let local: BTreeMap<(String, String), Vec<Given>> = rbac
        .roles
        .iter()
        .map(|role| {
            let key = (role.namespace().unwrap_or_default(), role.name_any());
            (key, given_by_rules(role.rules.as_deref().unwrap_or_default(), &[], requests))
        })
        .collect();

    let mut found = Vec::new();
    for binding in &rbac.cluster_role_bindings {
        let given = cluster.get(&binding.role_ref.name).map(Vec::as_slice).unwrap_or_default();
        let name = format!("clusterrolebinding/{}", binding.name_any());
        collect(&mut found, &name, &binding.role_ref, binding.subjects.as_deref(), &Scope::Cluster, given);
    }
    for binding in &rbac.role_bindings {
        let namespace = binding.namespace().unwrap_or_default();
        let given = match binding.role_ref.kind.as_str() {
            "Role" => local.get(&(namespace.clone(), binding.role_ref.name.clone())),
            _ => cluster.get(&binding.role_ref.name),
        };
        let name = format!("rolebinding/{}", binding.name_any());
        let given = given.map(Vec::as_slice).unwrap_or_default();
        collect(
            &mut found,
            &name,
            &binding.role_ref,
            binding.subjects.as_deref(),
            &Scope::Namespace(namespace),
            given,
        );
    }
    found
}

fn collect(
    found: &mut Vec<Holding>,
    binding: &str,
    role: &RoleRef,
    subjects: Option<&[Subject]>,
    scope: &Scope,
    given: &[Given],
) {
    if given.is_empty() {
        return;
    }
    let role = format!("{}/{}", role.kind.to_lowercase(), role.name);
    for who in subjects
        .into_iter()
        .flatten()
        .filter_map(|subject| Who::of(subject, scope.namespace().unwrap_or_default()))
    {
        found.extend(given.iter().map(|given| Holding {
            who: who.clone(),
            scope: scope.clone(),
            request: given.request,
            path: Path {
                binding: binding.to_owned(),
                role: role.clone(),
                via: given.via.clone(),
                rule: given.rule.clone(),
                only: given.only.clone(),
            },
        }));
    }
}

/// What a role gives now. An aggregated role is judged by the rules it has, and each is traced to the roles it should
/// have them from; a rule that none of them contains is reported without a source, since the aggregation controller has
/// yet to take it away.
fn given_by(role: &ClusterRole, rbac: &Rbac, requests: &[Request]) -> Vec<Given> {
    let own = given_by_rules(role.rules.as_deref().unwrap_or_default(), &[], requests);
    if role.aggregation_rule.is_none() || own.is_empty() {
        return own;
    }
    let sourced: Vec<Given> = aggregate::sources(role, &rbac.cluster_roles)
        .iter()
        .flat_map(|source| {
            given_by_rules(source.role.rules.as_deref().unwrap_or_default(), &source.via, requests)
        })
        .filter(|given| own.iter().any(|had| had.request == given.request && had.only == given.only))
        .collect();
    let unsourced = own
        .iter()
        .filter(|had| !sourced.iter().any(|given| given.request == had.request && given.only == had.only));
    let unsourced: Vec<Given> = unsourced.cloned().collect();
    [sourced, unsourced].concat()
}

fn given_by_rules(rules: &[PolicyRule], via: &[Via], requests: &[Request]) -> Vec<Given> {
    let mut given = Vec::new();
    for rule in rules {
        for (position, request) in requests.iter().enumerate() {
            let Some(reach) = rules::reach(rule, request) else {
                continue;
            };
            let only = match reach {
                Reach::All => Vec::new(),
                Reach::Named(names) => names,
            };
            given.push(Given { request: position, via: via.to_vec(), rule: short(rule, request), only });
        }
    }
    given
}

/// A rule as far as it matters for this request: the words that matched it.
fn short(rule: &PolicyRule, request: &Request) -> String {
    let matched = |words: Option<&[String]>, wanted: &str| {
        let words = words.unwrap_or_default();
        if words.iter().any(|word| word == wanted) { wanted.to_owned() } else { "*".to_owned() }
    };
    let resource = match request.subresource {
        "" => request.resource.to_owned(),
        part => format!("{}/{part}", request.resource),
    };
    let everywhere = format!("*/{}", request.subresource);
    let resources = rule.resources.as_deref().unwrap_or_default();
    let resource = if resources.contains(&resource) {
        resource
    } else if resources.contains(&everywhere) {
        everywhere
    } else {
        "*".to_owned()
    };
    format!(
        "{} {}.{}",
        matched(Some(&rule.verbs), request.verb),
        resource,
        matched(rule.api_groups.as_deref(), request.group)
    )
}
