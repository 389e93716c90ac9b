//! How missing permissions are told, with the commands that an administrator would run.

use std::collections::{BTreeMap, BTreeSet};

use api::condition::{self, Finding};
use api::labels;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::ObjectMeta;
use ring::digest::{SHA256, digest};

use super::access::{Access, Attributes};
use super::verdict::LeftOut;
use crate::ownership::annotation;
use crate::policy::RequesterPolicy;
use crate::{Event, Refusal, hex};

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
pub(crate) fn refusal(access: &Access, field: &str, denied: &[Attributes]) -> Refusal {
    let user = access.identity.user().unwrap_or("whoever asked");
    let verbs: BTreeSet<&str> = denied.iter().map(|one| one.verb).collect();
    let verbs: Vec<_> = verbs.into_iter().collect();
    let names: BTreeSet<String> = denied.iter().map(named).collect();
    let names = some(names.iter().map(String::as_str));
    let lines = create_role(access, denied).join(" && ");
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
pub fn create_role(access: &Access, denied: &[Attributes]) -> Vec<String> {
    let Some(user) = access.identity.user() else { return Vec::new() };
    permission_lines(user, &access.namespace, denied)
}

/// The same for a user in a namespace: one role for each set of verbs, and its binding.
pub fn permission_lines(user: &str, namespace: &str, denied: &[Attributes]) -> Vec<String> {
    let mut verbs_of: BTreeMap<(String, String), BTreeSet<&str>> = BTreeMap::new();
    for one in denied {
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
    let lines = roles.iter().flat_map(|((verbs, name), resources)| {
        let role = role_name(&[user, &verbs.join(","), name, &resources.join(",")]);
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

/// A name for a role that permits just this: another user's, or one for something else, must not be in its way.
fn role_name(of: &[&str]) -> String {
    let digest = digest(&SHA256, of.join("\n").as_bytes());
    format!("nacre-requester-{}", hex(&digest.as_ref()[..4]))
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
    // One line, ready to be typed: a warning each would hide what was said first.
    let lines = create_role(access, &left_out.denied);
    if !lines.is_empty() {
        warnings.push(format!("an administrator can permit it: {}", lines.join(" && ")));
    }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::requester::{Identity, Requester};

    /// Two warnings, however many roles it takes: what is left out, and the line an administrator would type.
    #[test]
    fn what_is_left_out_is_said_first_and_the_remedy_is_one_line() {
        let ada = Requester { user: "ada".to_owned(), ..Requester::default() };
        let access = Access {
            identity: Identity::Known(Arc::new(ada)),
            namespace: "shop".to_owned(),
            ..Access::default()
        };
        let roles = "rbac.authorization.k8s.io";
        let left_out = LeftOut {
            resources: vec![format!("roles.{roles}"), "secrets".to_owned()],
            enforced: true,
            denied: vec![Attributes::on("escalate", roles, "roles"), Attributes::on("create", "", "secrets")],
            unrecorded: false,
        };
        let [left_out, remedy] = warnings(&access, &left_out).try_into().unwrap();
        assert_eq!(
            left_out,
            "\"ada\" does not have the permissions for all of it; this is left out: \
             roles.rbac.authorization.k8s.io, secrets"
        );
        let commands: Vec<&str> =
            remedy.strip_prefix("an administrator can permit it: ").unwrap().split(" && ").collect();
        let (secrets, roles) = (role_of(commands[0]), role_of(commands[2]));
        assert_ne!(secrets, roles);
        assert_eq!(
            commands,
            [
                format!("kubectl create role {secrets} -n shop --verb=create --resource=secrets"),
                format!("kubectl create rolebinding {secrets} -n shop --role={secrets} --user=ada"),
                format!(
                    "kubectl create role {roles} -n shop --verb=escalate --resource=roles.rbac.authorization.k8s.io"
                ),
                format!("kubectl create rolebinding {roles} -n shop --role={roles} --user=ada"),
            ]
        );
    }

    /// kubectl creates nothing where the name is taken, and the line would end there.
    #[test]
    fn the_roles_of_two_people_have_two_names() {
        let needed = [Attributes::on("create", "", "secrets")];
        let of = |user: &str| role_of(&permission_lines(user, "shop", &needed)[0]).to_owned();
        assert_eq!(of("ada"), of("ada"));
        assert_ne!(of("ada"), of("bob"));
        let account = permission_lines("system:serviceaccount:ci:robot", "shop", &needed);
        assert!(account[1].ends_with(" --serviceaccount=ci:robot"), "{account:?}");
    }

    fn role_of(command: &str) -> &str {
        command.split(' ').nth(3).unwrap()
    }
}
