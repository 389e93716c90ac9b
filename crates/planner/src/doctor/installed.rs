//! What is installed, compared with what an installation would create: CRDs, roles, admission policies.

use api::Kind;
use serde_json::Value;

use super::{Area, Finding, Observed, crds, recorder, some};
use crate::Object;
use crate::admission::RESERVED_MARKS;
use crate::install::{UserRole, covers, is_ours, may_be_others, policies, request_definitions, roles};
use crate::policy::{Policies, Reading};

/// One sort of objects of an installation.
struct Sort {
    area: Area,
    kinds: &'static [Kind],
    what: &'static str,
    /// What it means if some are missing or say something else.
    otherwise: &'static str,
    /// Whether nacre works without, as it does with OADP's own role.
    optional: bool,
}

const SORTS: [Sort; 4] = [
    Sort {
        area: Area::Nacre,
        kinds: &[Kind::CustomResourceDefinition],
        what: "CRDs",
        otherwise: "requests of these kinds cannot be made",
        optional: false,
    },
    Sort {
        area: Area::Rights,
        kinds: &[
            Kind::ServiceAccount,
            Kind::ClusterRole,
            Kind::ClusterRoleBinding,
            Kind::Role,
            Kind::RoleBinding,
        ],
        what: "roles and bindings",
        otherwise: "tenants cannot ask, or nacre cannot act",
        optional: false,
    },
    Sort {
        area: Area::Admission,
        kinds: &[Kind::ValidatingAdmissionPolicy, Kind::ValidatingAdmissionPolicyBinding],
        what: "admission policies",
        otherwise: "what must hold even while nacre is down does not",
        optional: false,
    },
    Sort {
        area: Area::Admission,
        kinds: &[Kind::MutatingAdmissionPolicy, Kind::MutatingAdmissionPolicyBinding],
        what: "mutating admission policies",
        otherwise: "nobody records who asks, and requests are judged by their namespace alone \
                    (Kubernetes 1.36 and later have such policies; before, nacre's webhook does it)",
        optional: true,
    },
];

/// What there should be, with Velero in this namespace, whatever the program is like.
pub fn wanted(namespace: &str) -> Vec<Object> {
    // Only whoever switches nacre by a DataProtectionApplication needs that kind.
    let mut all = request_definitions();
    // Into which roles they are aggregated is looked at by `rights`.
    all.extend(roles(namespace, &UserRole::ALL));
    all.extend(policies(namespace));
    all
}

pub(super) fn examine(seen: &Observed, policies: Option<&Policies>) -> Vec<Finding> {
    SORTS.iter().flat_map(|sort| sort.examine(seen, policies)).collect()
}

impl Sort {
    fn examine(&self, seen: &Observed, policies: Option<&Policies>) -> Vec<Finding> {
        // On OADP its role takes the place of these: see `oadp`.
        let theirs =
            |wanted: &Object| seen.by_oadp() && self.area == Area::Rights && wanted.name() == "nacre";
        let parts: Vec<_> = seen
            .installed
            .iter()
            .filter(|(wanted, _)| self.kinds.contains(&wanted.kind) && !theirs(wanted))
            .collect();
        let names = |which: &dyn Fn(&Object, &Reading<Object>) -> bool| -> Vec<String> {
            let those = parts.iter().filter(|(wanted, found)| which(wanted, found));
            those.map(|(wanted, _)| short(wanted)).collect()
        };
        let missing = names(&|_, found| matches!(found, Reading::Absent));
        let changed = names(&|wanted, found| !is_other(wanted, found) && differs(wanted, found));
        let unserved =
            names(&|wanted, found| matches!(found, Reading::Found(found) if !served(wanted, found)));
        let unseen = names(&|_, found| matches!(found, Reading::Forbidden));
        let unread = names(&|_, found| matches!(found, Reading::Unreadable(_)));
        let install = seen.installer();
        let (area, what) = (self.area, self.what);
        let mut findings = Vec::new();
        let by_webhook = match &seen.recorder {
            Reading::Found(found) if self.optional && missing.len() == parts.len() => Some(found),
            _ => None,
        };
        if let Some(found) = by_webhook {
            findings.push(recorder::examine(seen, found));
        } else if !missing.is_empty() {
            // nacre believes this annotation.
            let is_open = missing.iter().any(|name| name.starts_with(RESERVED_MARKS));
            let open = if is_open {
                ", and any tenant can move to the front by the annotation nacre.dev/queue"
            } else {
                ""
            };
            let message = format!("{what} are missing, so {}{open}: {}", self.otherwise, some(&missing));
            // OADP's own role does for what the Go controller did; what needs more is switched off.
            let finding = if self.optional || seen.by_oadp() { Area::warning } else { Area::problem };
            findings.push(finding(area, message, install.clone()));
        }
        if !unserved.is_empty() {
            let message =
                format!("{what} are there and not served, their conditions say why: {}", some(&unserved));
            let group = Kind::NonAdminBackup.group();
            findings.push(area.problem(message, format!("kubectl describe crd {}.{group}", unserved[0])));
        }
        if !changed.is_empty() {
            let message = format!("{what} differ from what this version installs: {}", some(&changed));
            findings.push(area.warning(message, install.clone()));
        }
        if self.kinds.contains(&Kind::CustomResourceDefinition) {
            findings.extend(crds::foreign(seen, policies));
        }
        if !unread.is_empty() {
            let message = format!("{what} cannot be read: {}", some(&unread));
            findings.push(area.warning(message, "try again; if it stays, ask who keeps the API server"));
        }
        if !unseen.is_empty() {
            let kinds: Vec<&str> = self.kinds.iter().map(|kind| kind.plural()).collect();
            findings.push(
                area.not_checked(
                    &format!("{what} ({})", some(&unseen)),
                    &format!("get {}", kinds.join(", ")),
                ),
            );
        }
        if findings.is_empty() {
            findings.push(area.ok(format!("all {} {what} are there and current", parts.len())));
        }
        findings
    }
}

fn short(object: &Object) -> String {
    let kind = object.kind.name().to_lowercase();
    match (object.kind, object.namespace()) {
        (Kind::CustomResourceDefinition, _) => object.name().split('.').next().unwrap_or_default().to_owned(),
        (Kind::ValidatingAdmissionPolicy | Kind::MutatingAdmissionPolicy, _) => object.name().to_owned(),
        (Kind::ValidatingAdmissionPolicyBinding | Kind::MutatingAdmissionPolicyBinding, _) => {
            format!("{}'s binding", object.name())
        }
        (_, "") => format!("{kind}/{}", object.name()),
        (_, namespace) => format!("{kind}/{} in {namespace}", object.name()),
    }
}

/// Whether what is there says what it should; by whom it was labelled, and as which version, does not matter.
pub(super) fn same(wanted: &Object, found: &Object) -> bool {
    let rest = |body: &Value| {
        let mut body = body.clone();
        if let Some(body) = body.as_object_mut() {
            body.remove("metadata");
        }
        body
    };
    covers(&found.body, &rest(&wanted.body))
}

fn differs(wanted: &Object, found: &Reading<Object>) -> bool {
    matches!(found, Reading::Found(found) if !same(wanted, found))
}

/// Whether somebody else made it, as OADP does: CRDs, a service account, the role that was once written by hand.
fn is_other(wanted: &Object, found: &Reading<Object>) -> bool {
    matches!(found, Reading::Found(found) if !is_ours(found)) && may_be_others(wanted)
}

/// Whether the API server serves a definition in the version nacre speaks.
fn served(wanted: &Object, found: &Object) -> bool {
    if wanted.kind != Kind::CustomResourceDefinition {
        return true;
    }
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let established = list(&found.body["status"]["conditions"])
        .iter()
        .any(|one| one["type"] == "Established" && one["status"] == "True");
    let version = Kind::NonAdminBackup.version();
    established
        && list(&found.body["spec"]["versions"])
            .iter()
            .any(|one| one["name"] == version && one["served"] == true)
}
