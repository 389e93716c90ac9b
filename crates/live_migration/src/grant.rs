//! Grants of the permission to migrate, and their revocation.
//!
//! One binding per subject, under a name that says whose it is: granting twice changes nothing, each grant ends on its
//! own, and the binding itself says when. Grants are labelled so that Velero leaves them out of backups: a restore
//! never brings back a revoked one.

use api::Kind;
use jiff::Timestamp;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding, RoleRef, Subject};
use kube::{ResourceExt, core::ObjectMeta};
use serde_json::{Value, json};

use super::{
    access,
    indirect::{Detour, roundabouts},
    roles::MIGRATE,
    who_can::{Right, rights},
};
use planner::plan::{Action, Object, Plan, Target};
use planner::rbac::{
    Path, Rbac, Scope,
    subject::{RBAC, Who},
};

/// On every binding nacre made; its value is `true`.
pub const GRANT: &str = "nacre.dev/migration-grant";
/// When a grant ends, in the words of RFC 3339.
pub const EXPIRES: &str = "nacre.dev/expires";
/// Velero's own label for what does not belong into a backup.
const NOT_IN_BACKUPS: &str = "velero.io/exclude-from-backup";

/// What is to be granted, and to whom.
#[derive(Clone, Debug)]
pub struct GrantRequest {
    /// The subjects.
    pub who: Vec<Who>,
    /// The scope.
    pub scope: Scope,
    /// Until when; for good if nothing is said.
    pub expires: Option<Timestamp>,
    /// Even to everybody.
    pub force: bool,
}

/// A binding of either kind, as far as grants go.
struct Binding<'a> {
    kind: Kind,
    metadata: &'a ObjectMeta,
    role: &'a RoleRef,
    subjects: &'a [Subject],
}

impl Binding<'_> {
    fn target(&self) -> Target {
        Target::of(self.kind, self.metadata)
    }

    fn grants(&self) -> bool {
        self.role.kind == "ClusterRole" && self.role.name == MIGRATE
    }

    fn ours(&self) -> bool {
        self.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(GRANT))
    }

    fn names(&self, who: &Who) -> bool {
        let namespace = self.metadata.namespace.as_deref().unwrap_or_default();
        self.subjects.iter().any(|subject| Who::of(subject, namespace).as_ref() == Some(who))
    }
}

/// Why a grant is refused; empty if it is allowed.
pub fn refusals(request: &GrantRequest, rbac: &Rbac, now: Timestamp) -> Vec<String> {
    let mut refusals = Vec::new();
    if request.expires.is_some_and(|end| end <= now) {
        refusals.push("the grant would end before it begins".to_owned());
    }
    let crowds = request.who.iter().filter(|who| !request.force && is_everybody(who));
    refusals.extend(crowds.map(|who| {
        format!("{who} is everybody, or nearly: whoever can log in could delay drains and upgrades (--force grants it all the same)")
    }));
    for who in &request.who {
        let name = binding_name(who);
        let taken = bindings(rbac, &request.scope)
            .into_iter()
            .find(|binding| binding.metadata.name.as_deref() == Some(&name));
        if taken.is_some_and(|binding| !binding.grants() && !binding.ours()) {
            refusals.push(format!("a binding {name} exists already, for another role, and is not nacre's"));
        }
    }
    refusals
}

/// Warnings about side effects of a grant.
pub fn warnings(request: &GrantRequest, rbac: &Rbac) -> Vec<String> {
    let after = with_grants(request, rbac);
    let detours = roundabouts(&after, &rights(&after));
    let mut warnings = Vec::new();
    let kept = rbac.cluster_role_bindings.iter().any(|binding| binding.name_any() == access::NAME);
    if request.expires.is_some() && !kept {
        warnings.push(
            "no controller is set up to end this grant: see `kubectl nacre migration install`".to_owned(),
        );
    }
    for who in &request.who {
        let Who::ServiceAccount { namespace, .. } = who else {
            continue;
        };
        let through =
            [Detour::ActAsServiceAccount, Detour::TokenOfServiceAccount, Detour::RunAsServiceAccount];
        let mut users: Vec<String> = detours
            .iter()
            .filter(|found| {
                through.contains(&found.detour) && found.scope == Scope::Namespace(namespace.clone())
            })
            .map(|found| found.who.to_string())
            .collect();
        users.dedup();
        if !users.is_empty() {
            warnings.push(format!(
                "{who} lives in a tenant's namespace: {} can act as it (impersonation, tokens, pods) and so can migrate too",
                users.join(", ")
            ));
        }
    }
    warnings
}

/// The plan for a grant; empty if it exists already.
pub fn decide(request: &GrantRequest, rbac: &Rbac, now: Timestamp) -> Plan {
    if !refusals(request, rbac, now).is_empty() {
        return Plan::done();
    }
    request.who.iter().fold(Plan::done(), |plan, who| {
        let name = binding_name(who);
        let found = bindings(rbac, &request.scope)
            .into_iter()
            .find(|binding| binding.metadata.name.as_deref() == Some(&name));
        match found {
            None => plan.then(create(who, request)),
            // The roleRef of a binding cannot be changed, so it is re-created.
            Some(found) if !found.grants() => {
                plan.then(Action::Delete(found.target())).then(create(who, request))
            }
            Some(found) => plan.then_if(correct(&found, who, request)),
        }
    })
}

/// Decides how to take the right from these subjects in this place, whoever bound it: bindings that name nobody else are deleted,
/// others lose the subject.
pub fn revoke(who: &[Who], scope: &Scope, rbac: &Rbac) -> Plan {
    bindings(rbac, scope).into_iter().filter(Binding::grants).fold(Plan::done(), |plan, binding| {
        let namespace = binding.metadata.namespace.clone().unwrap_or_default();
        let stays =
            |subject: &&Subject| !Who::of(subject, &namespace).is_some_and(|named| who.contains(&named));
        let staying: Vec<&Subject> = binding.subjects.iter().filter(stays).collect();
        match staying.len() {
            count if count == binding.subjects.len() => plan,
            0 => plan.then(Action::Delete(binding.target())),
            _ => {
                let version = &binding.metadata.resource_version;
                let patch = json!({ "metadata": { "resourceVersion": version }, "subjects": staying });
                plan.then(Action::Patch(binding.target(), patch))
            }
        }
    })
}

/// The rights these subjects would still have in this place after [`revoke`], and how they come by them.
pub fn left_after_revoking(who: &[Who], scope: &Scope, rbac: &Rbac) -> Vec<Right> {
    let through_grant =
        |path: &Path, right: &Right| right.scope == *scope && path.role == format!("clusterrole/{MIGRATE}");
    let place = scope.namespace();
    rights(rbac)
        .into_iter()
        .filter(|right| who.iter().any(|who| right.who.includes(&who.identity())))
        .filter(|right| place.is_none_or(|namespace| right.scope.includes(namespace)))
        .map(|mut right| {
            let named = who.contains(&right.who);
            let judged = right.clone();
            right.paths.retain(|path| !(named && through_grant(path, &judged)));
            right
        })
        .filter(|right| !right.paths.is_empty())
        .collect()
}

/// The name of a subject's binding. Two subjects never share one: what a name cannot hold is escaped, and so is the escape.
pub fn binding_name(who: &Who) -> String {
    match who {
        Who::User(name) => format!("nacre:migrate:user:{}", escaped(name)),
        Who::Group(name) => format!("nacre:migrate:group:{}", escaped(name)),
        Who::ServiceAccount { namespace, name } => format!("nacre:migrate:serviceaccount:{namespace}:{name}"),
    }
}

fn escaped(name: &str) -> String {
    name.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b':' | b'@' => {
                char::from(byte).to_string()
            }
            other => format!("_{other:02x}"),
        })
        .collect()
}

fn is_everybody(who: &Who) -> bool {
    match who {
        Who::User(name) => name == "system:anonymous",
        Who::Group(name) => {
            matches!(
                name.as_str(),
                "system:authenticated" | "system:unauthenticated" | "system:authenticated:oauth"
            ) || name.starts_with("system:serviceaccounts")
        }
        Who::ServiceAccount { .. } => false,
    }
}

fn bindings<'a>(rbac: &'a Rbac, scope: &Scope) -> Vec<Binding<'a>> {
    match scope {
        Scope::Cluster => rbac.cluster_role_bindings.iter().map(of_cluster).collect(),
        Scope::Namespace(name) => {
            let here = |binding: &&RoleBinding| binding.metadata.namespace.as_ref() == Some(name);
            rbac.role_bindings.iter().filter(here).map(of_namespace).collect()
        }
    }
}

fn of_cluster(binding: &ClusterRoleBinding) -> Binding<'_> {
    Binding {
        kind: Kind::ClusterRoleBinding,
        metadata: &binding.metadata,
        role: &binding.role_ref,
        subjects: binding.subjects.as_deref().unwrap_or_default(),
    }
}

fn of_namespace(binding: &RoleBinding) -> Binding<'_> {
    Binding {
        kind: Kind::RoleBinding,
        metadata: &binding.metadata,
        role: &binding.role_ref,
        subjects: binding.subjects.as_deref().unwrap_or_default(),
    }
}

fn create(who: &Who, request: &GrantRequest) -> Action {
    let metadata = ObjectMeta {
        name: Some(binding_name(who)),
        namespace: request.scope.namespace().map(str::to_owned),
        labels: Some([GRANT, NOT_IN_BACKUPS].map(|key| (key.to_owned(), "true".to_owned())).into()),
        annotations: request.expires.map(|end| [(EXPIRES.to_owned(), end.to_string())].into()),
        ..ObjectMeta::default()
    };
    let role_ref = RoleRef {
        api_group: Some(RBAC.to_owned()),
        kind: "ClusterRole".to_owned(),
        name: MIGRATE.to_owned(),
    };
    let subjects = Some(vec![who.subject()]);
    Action::Create(match request.scope {
        Scope::Cluster => {
            Object::of(Kind::ClusterRoleBinding, &ClusterRoleBinding { metadata, role_ref, subjects })
        }
        Scope::Namespace(_) => Object::of(Kind::RoleBinding, &RoleBinding { metadata, role_ref, subjects }),
    })
}

/// A grant that stands is extended, shortened or made permanent, as the newest request says.
fn correct(found: &Binding<'_>, who: &Who, request: &GrantRequest) -> Option<Action> {
    let label =
        |key: &str| found.metadata.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
    let end = found.metadata.annotations.as_ref().and_then(|annotations| annotations.get(EXPIRES));
    let wanted = request.expires.map(|end| end.to_string());
    let right = [GRANT, NOT_IN_BACKUPS].iter().all(|key| label(key) == Some("true"))
        && end == wanted.as_ref()
        && found.subjects.len() == 1
        && found.names(who);
    let patch = || {
        json!({
            "metadata": {
                "resourceVersion": found.metadata.resource_version,
                "labels": { GRANT: "true", NOT_IN_BACKUPS: "true" },
                "annotations": { EXPIRES: wanted.map_or(Value::Null, Value::from) },
            },
            "subjects": [who.subject()],
        })
    };
    (!right).then(|| Action::Patch(found.target(), patch()))
}

/// The cluster as if the grant existed.
fn with_grants(request: &GrantRequest, rbac: &Rbac) -> Rbac {
    let mut after = rbac.clone();
    let role_ref = RoleRef { kind: "ClusterRole".to_owned(), name: MIGRATE.to_owned(), api_group: None };
    let subjects = Some(request.who.iter().map(Who::subject).collect());
    match &request.scope {
        Scope::Cluster => after.cluster_role_bindings.push(ClusterRoleBinding {
            role_ref,
            subjects,
            ..ClusterRoleBinding::default()
        }),
        Scope::Namespace(namespace) => after.role_bindings.push(RoleBinding {
            metadata: ObjectMeta { namespace: Some(namespace.clone()), ..ObjectMeta::default() },
            role_ref,
            subjects,
        }),
    }
    if !after.cluster_roles.iter().any(|role| role.name_any() == MIGRATE) {
        after.cluster_roles.push(super::roles::Role::Migrate.object(super::roles::Era::Current));
    }
    after
}

#[cfg(test)]
mod tests;
