//! How missing permissions are told, with the commands that an administrator would run.

use std::collections::{BTreeMap, BTreeSet};

use api::condition::{self, Finding};
use api::labels;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::ObjectMeta;

use super::access::{Access, Attributes};
use super::verdict::LeftOut;
use crate::ownership::annotation;
use crate::policy::RequesterPolicy;
use crate::{Event, Refusal};

/// The reason of a plan that waits for answers.
pub(crate) const NEEDS_REVIEW: &str = "waiting until the API server says what the requester is permitted";

/// How many resources a message names.
const MOST_NAMES: usize = 12;

/// How a permission's resource is named to people: `roles.rbac.authorization.k8s.io`, `pods/exec`, `secrets/keys`.
pub(super) fn named(attributes: &Attributes) -> String {
    let Attributes { group, resource, subresource, name, .. } = attributes;
    let below = if subresource.is_empty() { name.as_str() } else { subresource };
    let dot = if group.is_empty() { "" } else { "." };
    let slash = if below.is_empty() { "" } else { "/" };
    format!("{resource}{dot}{group}{slash}{below}")
}

/// The first names, and how many more there are.
fn some<'a>(names: impl Iterator<Item = &'a str> + Clone) -> String {
    let more = names.clone().count().saturating_sub(MOST_NAMES);
    let shown: Vec<_> = names.take(MOST_NAMES).collect();
    let shown = shown.join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

/// Refuses for permissions that are missing.
pub(crate) fn refusal(access: &Access, field: &str, lacking: &[Attributes]) -> Refusal {
    let user = access.identity.user().unwrap_or("whoever asked");
    let verbs: BTreeSet<&str> = lacking.iter().map(|one| one.verb).collect();
    let verbs: Vec<_> = verbs.into_iter().collect();
    let names: BTreeSet<String> = lacking.iter().map(named).collect();
    let names = some(names.iter().map(String::as_str));
    let lines = create_role(access, lacking).join(" && ");
    let message = format!(
        "{user:?} may not {} {names} in this namespace; an administrator can permit it: {lines}",
        verbs.join(" and "),
    );
    Refusal::new(field, message)
}

/// Refuses a request whose requester was recorded too long ago.
pub(super) fn outdated(policy: &RequesterPolicy) -> Refusal {
    let message = format!(
        "who asked was recorded more than {} ago, and permissions may have changed since; create the request again",
        policy.max_age
    );
    Refusal::new("metadata.creationTimestamp", message)
}

/// The commands by which an administrator would permit this.
pub fn create_role(access: &Access, lacking: &[Attributes]) -> Vec<String> {
    let Some(user) = access.identity.user() else { return Vec::new() };
    permission_lines(user, &access.namespace, lacking)
}

/// The same for a user in a namespace: one role for each set of verbs, and its binding.
pub fn permission_lines(user: &str, namespace: &str, lacking: &[Attributes]) -> Vec<String> {
    let mut verbs_of: BTreeMap<(String, String), BTreeSet<&str>> = BTreeMap::new();
    for one in lacking {
        let resource = named(&Attributes { name: String::new(), ..one.clone() });
        verbs_of.entry((resource, one.name.clone())).or_default().insert(one.verb);
    }
    let mut roles: BTreeMap<(Vec<&str>, String), Vec<String>> = BTreeMap::new();
    for ((resource, name), verbs) in verbs_of {
        roles.entry((verbs.into_iter().collect(), name)).or_default().push(resource);
    }
    let subject =
        match user.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':')) {
            Some((namespace, name)) => format!("--serviceaccount={namespace}:{name}"),
            None => format!("--user={}", quoted(user)),
        };
    let lines = roles.iter().enumerate().flat_map(|(at, ((verbs, name), resources))| {
        let role = if at == 0 { "nacre-requester".to_owned() } else { format!("nacre-requester-{}", at + 1) };
        let only = if name.is_empty() { String::new() } else { format!(" --resource-name={}", quoted(name)) };
        [
            format!(
                "kubectl create role {role} -n {namespace} --verb={} --resource={}{only}",
                verbs.join(","),
                resources.join(",")
            ),
            format!("kubectl create rolebinding {role} -n {namespace} --role={role} {subject}"),
        ]
    });
    lines.collect()
}

/// What is said where nobody recorded who asked, and the policy warns of that.
const UNRECORDED: &str = "it was not recorded who asked, so no permissions were checked";

/// What is said in advance about what a request would not get.
pub(crate) fn warnings(access: &Access, left_out: &LeftOut) -> Vec<String> {
    if left_out.unrecorded {
        return vec![UNRECORDED.to_owned()];
    }
    if left_out.resources.is_empty() {
        return Vec::new();
    }
    let user = access.identity.user().unwrap_or("whoever asked");
    let what = if left_out.enforced { "is left out" } else { "would be left out if the policy enforced it" };
    let names = some(left_out.resources.iter().map(String::as_str));
    let mut warnings =
        vec![format!("{user:?} does not have the permissions for all of it; this {what}: {names}")];
    let lines = create_role(access, &left_out.lacking);
    warnings.extend(lines.into_iter().map(|line| format!("an administrator can permit it: {line}")));
    warnings
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.@:/".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// Sets the condition about what was left out when Velero was given the request, by what its Velero object says.
pub(crate) fn fill_condition(
    velero: &ObjectMeta,
    conditions: &mut Vec<Condition>,
    generation: Option<i64>,
    now: Timestamp,
) {
    let Some((reason, message)) = left_out(velero) else {
        return condition::remove(conditions, condition::REQUESTER_PERMITTED);
    };
    let type_ = condition::REQUESTER_PERMITTED;
    let finding = Finding { type_, status: false.into(), reason, message: &message };
    condition::set(conditions, finding, generation, now);
}

/// The Event for what was left out, when that is published.
pub(crate) fn news(before: &[Condition], after: &[Condition]) -> Option<Event> {
    let of = |conditions: &[Condition]| condition::get(conditions, condition::REQUESTER_PERMITTED).cloned();
    let found = of(after).filter(|_| of(before).is_none())?;
    let reasons = [condition::RESOURCES_LEFT_OUT, condition::NOT_ENFORCED, condition::REQUESTER_NOT_RECORDED];
    let reason = reasons.into_iter().find(|reason| *reason == found.reason)?;
    Some(Event::warning(reason, found.message))
}

fn left_out(velero: &ObjectMeta) -> Option<(&'static str, String)> {
    let user = annotation(velero, labels::REQUESTER).unwrap_or("whoever asked");
    let some = |names: &str| some(names.split(',').collect::<Vec<_>>().into_iter());
    if let Some(names) = annotation(velero, labels::LEFT_OUT) {
        let message =
            format!("left out, since {user:?} does not have the permissions for it: {}", some(names));
        return Some((condition::RESOURCES_LEFT_OUT, message));
    }
    if annotation(velero, labels::NOT_RECORDED).is_some() {
        return Some((condition::REQUESTER_NOT_RECORDED, UNRECORDED.to_owned()));
    }
    let names = annotation(velero, labels::NOT_PERMITTED)?;
    let message = format!(
        "{user:?} does not have the permissions for all of it, and the policy only warns of that: {}",
        some(names)
    );
    Some((condition::NOT_ENFORCED, message))
}
