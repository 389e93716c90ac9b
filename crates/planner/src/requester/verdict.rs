//! What a check of permissions means for a request.

use std::collections::{BTreeMap, BTreeSet};

use super::access::{Access, Ask, Attributes};
use super::identity::Identity;
use super::kinds::without;
use super::message;
use crate::Refusal;
use crate::policy::{NotPermitted, RequesterMode, RequesterPolicy};

/// What a check of permissions means for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The requester may have this much of it.
    Permitted(LeftOut),
    /// This has to be asked first.
    Ask(Vec<Ask>),
    /// The request is refused until the requester has the permission.
    Refused(Refusal),
}

/// What the requester may not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// As group-resources.
    pub(crate) resources: Vec<String>,
    /// Whether it is really left out; otherwise the policy only warns.
    pub(crate) enforced: bool,
    /// The permissions that are missing.
    pub(crate) denied: Vec<Attributes>,
    /// Whether nobody recorded who asked, and the policy warns of that.
    pub(crate) unrecorded: bool,
}

impl LeftOut {
    /// What Velero is not given.
    pub(crate) fn withheld(&self) -> &[String] {
        if self.enforced { &self.resources } else { &[] }
    }
}

impl Verdict {
    /// All of it is permitted, or nothing is checked.
    pub(crate) fn all() -> Self {
        Self::Permitted(LeftOut::default())
    }
}

/// Concludes from the permissions that each kind needs, and from one without which the whole request is refused.
pub(super) fn conclude(
    access: &Access,
    policy: &RequesterPolicy,
    needed: &BTreeMap<String, BTreeSet<Attributes>>,
    essential: Option<(&str, Attributes)>,
) -> Verdict {
    let needs_nothing = essential.is_none() && needed.values().all(BTreeSet::is_empty);
    if needs_nothing || !access.applies(policy) {
        return Verdict::all();
    }
    let enforced = access.mode(policy) == RequesterMode::Enforce;
    if enforced && let Some(refusal) = nobody(access, policy) {
        return Verdict::Refused(refusal);
    }
    if access.identity == Identity::Unrecorded {
        // Of nobody it cannot be asked what they are permitted.
        return Verdict::Permitted(LeftOut { unrecorded: true, ..LeftOut::default() });
    }
    let mut all: BTreeSet<Attributes> = needed.values().flatten().cloned().collect();
    all.extend(essential.iter().map(|(_, attributes)| attributes.clone()));
    let permits = access.check(&all);
    if !permits.asks.is_empty() {
        return Verdict::Ask(permits.asks);
    }
    let denied = permits.denied;
    let mut resources: Vec<String> = without(needed, &denied).into_iter().map(str::to_owned).collect();
    if let Some((field, attributes)) = essential.filter(|(_, attributes)| denied.contains(attributes)) {
        if enforced {
            return Verdict::Refused(message::refusal(access, field, &[attributes]));
        }
        resources.push(message::named(&attributes));
    }
    if enforced && policy.not_permitted == NotPermitted::Refuse && !resources.is_empty() {
        return Verdict::Refused(message::refusal(access, "spec", &denied));
    }
    Verdict::Permitted(LeftOut { resources, enforced, denied, unrecorded: false })
}

/// Refuses a record that cannot be gone by.
pub(super) fn nobody(access: &Access, policy: &RequesterPolicy) -> Option<Refusal> {
    if access.identity == Identity::Unrecorded {
        let message = "it was not recorded who asked, and the administrators' policy requires that; create the request again";
        return Some(Refusal::new("metadata.annotations", message));
    }
    if access.identity == Identity::Unreadable {
        let message = "it was recorded in a form that cannot be read who asked; create the request again";
        return Some(Refusal::new("metadata.annotations", message));
    }
    access.is_outdated(policy).then(|| message::outdated(policy))
}
