//! Whether a cluster is ready for nacre: from the observed state to findings, each with a fix.
//!
//! | file | what it looks at |
//! | --- | --- |
//! | `velero` | Velero's Deployment, version and settings |
//! | `storage` | the default location, and those of tenants |
//! | `program` | the leader: the lease, nacre's Deployment, and whether another controller runs too |
//! | `installed` | CRDs, roles and admission policies, compared with what an installation would create |
//! | `crds` | CRDs of somebody else, as OADP's: which fields they lack, and what is not seen for that |
//! | `oadp` | on OADP: what its role leaves out |
//! | `olm` | the roles that OLM makes for owners of namespaces |
//! | `fence` | whether the API server holds what Velero creates for tenants |
//! | `webhook` | whether the API server can ask nacre |
//! | `permissions` | who holds more than they should: tenants' roles, Velero's namespace, migrations |
//! | `tenants_storage` | what tenants who bring storage can have Velero read |
//! | `settings` | the policy: what is wrong with it, and what in it is risky |

mod crds;
mod fence;
mod installed;
mod oadp;
mod olm;
mod permissions;
mod program;
mod recorder;
mod settings;
mod storage;
mod tenants_storage;
mod velero;
mod webhook;

use api::Kind;
use api::velero::BackupStorageLocation;
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::ResourceExt as _;
use serde::Serialize;
use serde_json::{Map, Value};

pub use installed::wanted;

use crate::Object;
use crate::admission::certificate::Validity;
use crate::install::{self, VERSION, is_ours};
use crate::policy::{InForce, LastPolicy, Reading, Readings, in_force};
use crate::rbac::Rbac;

/// Everything that was seen.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Velero's namespace.
    pub namespace: String,
    /// The current time, given by the caller.
    pub now: Timestamp,
    /// The Deployment of this name there.
    pub velero: Reading<Deployment>,
    /// Every location there.
    pub locations: Reading<Vec<BackupStorageLocation>>,
    /// Names of the VolumeSnapshotLocations there.
    pub snapshot_locations: Reading<Vec<String>>,
    /// What limits whom pods there can talk to.
    pub network_policies: Reading<Vec<NetworkPolicy>>,
    /// Every Deployment of the controller's name, wherever it is.
    pub controllers: Reading<Vec<Deployment>>,
    /// The leader election lease.
    pub lease: Reading<Lease>,
    /// What takes its place in a Secret where nacre may not use leases.
    pub lease_in_secret: Reading<Lease>,
    /// For each of [`wanted`], what is there under its name.
    pub installed: Vec<(Object, Reading<Object>)>,
    /// The ConfigMap with the values nacre was installed with.
    pub record: Reading<Object>,
    /// Whom the API server asks.
    pub webhook: Reading<ValidatingWebhookConfiguration>,
    /// By whom the API server has it recorded who asks, where it cannot do that by itself.
    pub recorder: Reading<Object>,
    /// The ConfigMap with the extra fields of users that are recorded.
    pub requester_extra: Reading<ConfigMap>,
    /// How nacre shows itself to the API server.
    pub certificate: Reading<Certificate>,
    /// Both sources of the policy.
    pub policy: Readings,
    /// What nacre kept of what they last said.
    pub last_policy: LastPolicy,
    /// All roles and bindings.
    pub rbac: Reading<Rbac>,
    /// The kinds of an installation that this API server does not know.
    pub unserved: Vec<Kind>,
    /// Whether there are KubeVirt's migrations in the cluster.
    pub kubevirt: Reading<()>,
}

/// The certificate of the webhook, as far as it is for showing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The authorities by which nacre is known, in PEM.
    pub bundle: Vec<u8>,
    /// How good the certificate is for the names the API server calls.
    pub validity: Validity,
}

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckStatus {
    /// As it should be.
    Ok,
    /// Nothing is wrong, but it should be known.
    Note,
    /// The caller may not look.
    NotChecked,
    /// It works, and somebody should look at it.
    Warning,
    /// Something does not work, or defends nothing.
    Problem,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Area {
    /// Velero itself.
    Velero,
    /// Where backups are kept.
    Storage,
    /// nacre itself.
    Nacre,
    /// What is refused before it is stored.
    Admission,
    /// Who may do what.
    Rights,
    /// What the administrators allow.
    Policy,
}

/// One line of the diagnosis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about.
    pub area: Area,
    /// How it stands.
    pub verdict: CheckStatus,
    /// What was seen.
    pub message: String,
    /// A command, or a field to change; there is one for every warning and problem. If it begins with a command, it is one to
    /// its end, so that it can be pasted whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// Looks at everything.
pub fn examine(seen: &Observed) -> Vec<Finding> {
    let InForce { loaded, vanished, .. } = in_force(None, &seen.last_policy, &seen.policy, seen.now);
    let policies = loaded.policies.as_ref();
    let mut findings = velero::examine(seen, policies);
    findings.extend(storage::examine(seen, policies));
    findings.extend(program::examine(seen));
    findings.extend(installed::examine(seen, policies));
    findings.extend(recorder::extra(seen, policies));
    findings.extend(fence::examine(seen));
    findings.extend(webhook::examine(seen));
    findings.extend(permissions::examine(seen));
    findings.extend(oadp::examine(seen));
    findings.extend(settings::examine(seen, &loaded, &vanished));
    findings.sort_by_key(|finding| finding.area);
    findings
}

impl Area {
    fn ok(self, message: impl Into<String>) -> Finding {
        Finding { area: self, verdict: CheckStatus::Ok, message: message.into(), fix: None }
    }

    fn note(self, message: impl Into<String>) -> Finding {
        Finding { verdict: CheckStatus::Note, ..self.ok(message) }
    }

    fn warning(self, message: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { verdict: CheckStatus::Warning, fix: Some(fix.into()), ..self.ok(message) }
    }

    fn problem(self, message: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { verdict: CheckStatus::Problem, fix: Some(fix.into()), ..self.ok(message) }
    }

    /// What the caller may not look at.
    fn not_checked(self, what: &str, may_not: &str) -> Finding {
        Finding { verdict: CheckStatus::NotChecked, ..self.ok(format!("{what}: you may not {may_not}")) }
    }

    /// What there should be something to look at for, and is not.
    fn unseen<T>(self, reading: &Reading<T>, what: &str, may_not: &str) -> Option<Finding> {
        match reading {
            Reading::Found(_) | Reading::Absent => None,
            Reading::Forbidden => Some(self.not_checked(what, may_not)),
            Reading::Unreadable(why) => Some(self.warning(
                format!("{what} cannot be read: {why}"),
                "try again; if it stays, ask who keeps the API server",
            )),
        }
    }
}

impl Observed {
    /// Whether OADP's operator runs nacre, in the Go controller's place.
    fn by_oadp(&self) -> bool {
        let Reading::Found(controllers) = &self.controllers else { return false };
        let here =
            controllers.iter().filter(|one| one.metadata.namespace.as_deref() == Some(&self.namespace));
        here.flat_map(|one| one.metadata.owner_references.iter().flatten())
            .any(|owner| owner.kind == Kind::DataProtectionApplication.name())
    }
}

impl Observed {
    /// The values nacre is installed with, by the names of the chart's values.yaml, as far as they can be seen.
    fn values(&self) -> Result<Map<String, Value>, String> {
        let mut found = Vec::new();
        if let Reading::Found(controllers) = &self.controllers {
            found.extend(controllers.iter().map(|one| Object::of(Kind::Deployment, one)));
        }
        if let Reading::Found(rbac) = &self.rbac {
            found.extend(rbac.cluster_roles.iter().map(|one| Object::of(Kind::ClusterRole, one)));
        }
        if let Reading::Found(record) = &self.record {
            found.push(record.clone());
        }
        install::current(&found, &self.namespace)
    }

    /// The command that repairs the installation and changes nothing else.
    fn installer(&self) -> String {
        if self.by_oadp() {
            return oadp::installer(self);
        }
        let namespace = &self.namespace;
        let Reading::Found(controllers) = &self.controllers else {
            return format!(
                "see what this would change, then leave out --dry-run: kubectl nacre install -n {namespace} --dry-run"
            );
        };
        let own = controllers.iter().find(|one| {
            one.namespace().as_ref() == Some(namespace) && is_ours(&Object::of(Kind::Deployment, *one))
        });
        if let Some(release) = own.and_then(|one| one.annotations().get("meta.helm.sh/release-name")) {
            return format!("helm upgrade {release} deploy/chart -n {namespace} --reset-then-reuse-values");
        }
        let version = own.and_then(|one| one.labels().get(VERSION));
        let other = version.is_some_and(|version| version != env!("CARGO_PKG_VERSION"));
        let recorded = matches!(self.record, Reading::Found(_));
        // Without what it was installed with, and for another version, an image has to be named.
        let image = if other || (own.is_none() && !recorded) { " --image IMAGE" } else { "" };
        format!("kubectl nacre install{image} -n {namespace}")
    }
}

/// `1 location`, `2 locations`.
fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// The first few of them, and how many more there are.
fn some(names: &[String]) -> String {
    const ENOUGH: usize = 5;
    let shown = names.iter().take(ENOUGH).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > ENOUGH { format!("{shown} and {} more", names.len() - ENOUGH) } else { shown }
}

#[cfg(test)]
mod crds_tests;
#[cfg(test)]
mod oadp_tests;
#[cfg(test)]
mod olm_tests;
#[cfg(test)]
mod tests;
