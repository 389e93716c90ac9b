//! On OADP: what its role leaves out of what nacre needs, what does not work without it, and how to get it.

use api::Kind;
use k8s_openapi::api::rbac::v1::{PolicyRule, RoleRef, Subject};
use kube::ResourceExt as _;

use super::{Area, Finding, Observed};
use crate::install::{CONTROLLER, Gap, Part, SERVICE_ACCOUNT, gaps};
use crate::policy::Reading;
use crate::rbac::Rbac;
use crate::rbac::subject::Who;

const AREA: Area = Area::Rights;

pub(super) fn examine(seen: &Observed) -> Option<Finding> {
    let Reading::Found(rbac) = &seen.rbac else { return None };
    if !seen.by_oadp() {
        return None;
    }
    let account = account(seen);
    let who = Who::account(&seen.namespace, &account);
    let missing: Vec<Gap> = gaps(&seen.namespace).into_iter().filter(|gap| !holds(rbac, &who, gap)).collect();
    let mut consequences: Vec<&str> = Vec::new();
    for gap in &missing {
        if !consequences.contains(&gap.without()) {
            consequences.push(gap.without());
        }
    }
    Some(if missing.is_empty() {
        AREA.ok(format!("{who} has every permission that nacre uses, by OADP's role and more"))
    } else {
        AREA.warning(
            format!(
                "OADP's role leaves out {} permissions of {who}: {}",
                missing.len(),
                consequences.join("; ")
            ),
            roles(seen, &account),
        )
    })
}

/// The one command that brings all that OADP does not: permissions, admission policies, and the record of who asks.
pub(super) fn installer(seen: &Observed) -> String {
    let account = account(seen);
    if account != SERVICE_ACCOUNT {
        return format!(
            "run nacre as the service account {SERVICE_ACCOUNT}, by which admission policies know it, instead of {account}"
        );
    }
    let older = seen.unserved.contains(&Kind::MutatingAdmissionPolicy);
    let recorder = if older { Part::RequesterWebhook } else { Part::Requester };
    render(seen, &[Part::Oadp, Part::Admission, recorder], "")
}

/// The command that brings somebody else's CRDs of tenants' requests up to date. Never that of the
/// DataProtectionApplication: OADP's own has far more fields.
pub(super) fn request_crds(seen: &Observed) -> String {
    let parts = render(seen, &[Part::RequestCrds], "");
    parts.replace("--server-side", "--server-side --force-conflicts")
}

/// The command that brings the roles of the Velero view.
pub(super) fn velero_view(seen: &Observed) -> String {
    render(seen, &[Part::VeleroView], "")
}

/// What [`installer`] brings where nacre runs as another account than OADP's: its permissions alone.
fn roles(seen: &Observed, account: &str) -> String {
    if account == SERVICE_ACCOUNT {
        installer(seen)
    } else {
        render(seen, &[Part::Oadp], &format!(" --service-account {account}"))
    }
}

fn render(seen: &Observed, parts: &[Part], account: &str) -> String {
    let parts = parts.iter().map(|part| part.name()).collect::<Vec<_>>().join(",");
    let namespace = &seen.namespace;
    format!("kubectl nacre render --only {parts} -n {namespace}{account} | kubectl apply --server-side -f -")
}

/// The account of nacre's pods in that installation.
fn account(seen: &Observed) -> String {
    let Reading::Found(controllers) = &seen.controllers else { return SERVICE_ACCOUNT.to_owned() };
    let own = controllers.iter().find(|one| {
        one.name_any() == CONTROLLER && one.namespace().as_deref() == Some(seen.namespace.as_str())
    });
    let pod = own.and_then(|own| own.spec.as_ref()?.template.spec.as_ref());
    pod.and_then(|pod| pod.service_account_name.clone()).unwrap_or_else(|| SERVICE_ACCOUNT.to_owned())
}

/// Whether somebody has this permission, whole.
fn holds(rbac: &Rbac, who: &Who, gap: &Gap) -> bool {
    let rules = rules_of(rbac, who, &gap.namespace);
    gap.verbs.iter().all(|verb| {
        let has = |name: Option<&String>| rules.iter().any(|rule| gives(rule, gap, verb, name));
        has(None) || !gap.names.is_empty() && gap.names.iter().all(|name| has(Some(name)))
    })
}

fn gives(rule: &PolicyRule, gap: &Gap, verb: &str, name: Option<&String>) -> bool {
    let among = |list: Option<&[String]>, word: &str| {
        list.unwrap_or_default().iter().any(|one| one == word || one == "*")
    };
    let names = rule.resource_names.as_deref().unwrap_or_default();
    among(Some(&rule.verbs), verb)
        && among(rule.api_groups.as_deref(), &gap.group)
        && among(rule.resources.as_deref(), &gap.resource)
        && (names.is_empty() || name.is_some_and(|name| names.contains(name)))
}

/// Every rule that counts for somebody in this namespace; empty for all namespaces.
fn rules_of<'a>(rbac: &'a Rbac, who: &Who, namespace: &str) -> Vec<&'a PolicyRule> {
    let identity = who.identity();
    let named = |subjects: Option<&[Subject]>, place: &str| {
        let subjects = subjects.unwrap_or_default().iter();
        subjects.filter_map(|subject| Who::of(subject, place)).any(|one| one.includes(&identity))
    };
    let cluster_role = |role: &RoleRef| {
        let found = rbac.cluster_roles.iter().find(|found| found.name_any() == role.name);
        found.and_then(|found| found.rules.as_deref()).unwrap_or_default()
    };
    let everywhere = rbac
        .cluster_role_bindings
        .iter()
        .filter(|binding| named(binding.subjects.as_deref(), ""))
        .flat_map(|binding| cluster_role(&binding.role_ref));
    let here = rbac
        .role_bindings
        .iter()
        .filter(|binding| binding.namespace().as_deref() == Some(namespace))
        .filter(|binding| named(binding.subjects.as_deref(), namespace))
        .flat_map(|binding| match binding.role_ref.kind.as_str() {
            "Role" => {
                let is_it = |role: &&k8s_openapi::api::rbac::v1::Role| {
                    role.name_any() == binding.role_ref.name && role.namespace().as_deref() == Some(namespace)
                };
                let found = rbac.roles.iter().find(is_it);
                found.and_then(|found| found.rules.as_deref()).unwrap_or_default()
            }
            _ => cluster_role(&binding.role_ref),
        });
    everywhere.chain(here).collect()
}
