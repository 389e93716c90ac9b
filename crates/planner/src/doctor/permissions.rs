//! Who holds more than they should: by tenants' roles, in Velero's namespace, over migrations, and nacre itself.

use std::collections::{BTreeMap, BTreeSet};

use api::Kind;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::ResourceExt as _;

use super::{Area, Finding, Observed, some};
use crate::install::{EDIT, RECORD, SERVICE_ACCOUNT, TENANT_KINDS, UserRole, VIEW};
use crate::kubevirt::Power;
use crate::policy::Reading;
use crate::rbac::rules::{Request, allow};
use crate::rbac::subject::Who;
use crate::rbac::{Rbac, Scope, holdings};

const AREA: Area = Area::Rights;
const WRITES: [&str; 4] = ["create", "update", "patch", "delete"];
const READS: [&str; 3] = ["get", "list", "watch"];
/// The roles that owners of namespaces have.
const TENANTS: [&str; 3] = ["admin", "edit", "view"];
/// Groups that are everybody.
const EVERYBODY: [&str; 3] = ["system:authenticated", "system:unauthenticated", "system:serviceaccounts"];
/// Who may do everything is not listed for doing one thing.
const CLUSTER_ADMIN: &str = "clusterrole/cluster-admin";

pub(super) fn examine(seen: &Observed) -> Vec<Finding> {
    let may_not = "list roles and rolebindings of the whole cluster";
    if let Some(unseen) = AREA.unseen(&seen.rbac, "who has which permissions", may_not) {
        return vec![unseen];
    }
    let Reading::Found(rbac) = &seen.rbac else { return Vec::new() };
    let values = seen.values();
    let included = values.as_ref().ok().and_then(|values| values.get("aggregateTo"));
    let included = included.and_then(|roles| serde_json::from_value(roles.clone()).ok());
    let mut findings = tenants(seen, rbac, &included.unwrap_or_else(|| UserRole::ALL.to_vec()));
    findings.extend(
        values
            .err()
            .map(|why| AREA.warning(why, format!("kubectl edit configmap {RECORD} -n {}", seen.namespace))),
    );
    findings.push(in_velero_namespace(seen, rbac));
    findings.extend(nacre_itself(seen, rbac));
    findings.extend(migrations(seen, rbac));
    findings
}

/// What somebody with a tenant's role must not be able to do, by the role.
fn forbidden_to(role: &str) -> Vec<Request> {
    let about = |kind: Kind, subresource: &'static str, verb: &'static str| Request {
        group: kind.group(),
        resource: kind.plural(),
        subresource,
        verb,
    };
    let decisions = WRITES.map(|verb| about(Kind::NonAdminBackupStorageLocationRequest, "", verb));
    let statuses =
        TENANT_KINDS.into_iter().flat_map(|kind| ["update", "patch"].map(|verb| about(kind, "status", verb)));
    let application =
        ["create", "update", "patch"].map(|verb| about(Kind::DataProtectionApplication, "", verb));
    let mut all: Vec<Request> = decisions.into_iter().chain(statuses).chain(application).collect();
    if role == "view" {
        all.extend(TENANT_KINDS.into_iter().flat_map(|kind| WRITES.map(|verb| about(kind, "", verb))));
        // Their statuses hold links to everything that was backed up, Secrets included.
        let links = [Kind::NonAdminDownloadRequest, Kind::DownloadRequest];
        all.extend(links.into_iter().flat_map(|kind| READS.map(|verb| about(kind, "", verb))));
    }
    all
}

/// Whether owners of namespaces get their rights, as far as these roles are to include them, and none that are not theirs.
fn tenants(seen: &Observed, rbac: &Rbac, included: &[UserRole]) -> Vec<Finding> {
    let find = |name: &str| rbac.cluster_roles.iter().find(|role| role.name_any() == name);
    let rules = |role: &ClusterRole| role.rules.clone().unwrap_or_default();
    let ask = Request {
        group: Kind::NonAdminBackup.group(),
        resource: Kind::NonAdminBackup.plural(),
        subresource: "",
        verb: "create",
    };
    let look = Request { verb: "list", ..ask };
    let mut findings = Vec::new();
    let has = |name: &str, needed: &Request| find(name).is_some_and(|role| allow(&rules(role), needed));
    let degraded: Vec<String> = included
        .iter()
        .filter(|role| !has(role.name(), if **role == UserRole::View { &look } else { &ask }))
        .map(|role| role.name().to_owned())
        .collect();
    if !degraded.is_empty() {
        // On OADP there is no such way.
        let on_purpose = if seen.by_oadp() {
            ""
        } else {
            "; to leave roles out on purpose there is kubectl nacre install --aggregate-to"
        };
        findings.push(AREA.problem(
            format!(
                "the roles {} give nothing on nacre's kinds: owners of namespaces cannot ask{on_purpose}",
                some(&degraded)
            ),
            seen.installer(),
        ));
    }
    // What one of them includes, those above it include too.
    let left_out = |role: &&UserRole| included.iter().all(|one| *one < **role);
    let more: Vec<String> = UserRole::ALL
        .iter()
        .filter(|role| !included.contains(role))
        .filter(left_out)
        .filter(|role| has(role.name(), &ask) || has(role.name(), &look))
        .map(|role| role.name().to_owned())
        .collect();
    if !more.is_empty() {
        findings.push(AREA.warning(
            format!("aggregateTo leaves out {}, which can use nacre's kinds all the same", some(&more)),
            "remove the aggregate-to label of the other role that brings it; to find it: kubectl get clusterroles -o yaml",
        ));
    }
    // A rule that came by aggregation is reported at its source role.
    let mut wide: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for role in rbac.cluster_roles.iter().filter(|role| role.aggregation_rule.is_none()) {
        for name in TENANTS.into_iter().filter(|name| reaches(role, name)) {
            let has = |request: &Request| allow(&rules(role), request);
            let too_much = forbidden_to(name).into_iter().filter(has).map(words);
            wide.entry(role.name_any()).or_default().extend(too_much);
        }
    }
    for (role, what) in wide.into_iter().filter(|(_, what)| !what.is_empty()) {
        let what: Vec<String> = what.into_iter().collect();
        findings.push(AREA.problem(
            format!("clusterrole {role} lets owners of namespaces {}", some(&what)),
            format!("take these out: kubectl edit clusterrole {role}"),
        ));
    }
    if findings.is_empty() {
        findings.push(match included.len() {
            3 => AREA.ok(
                "owners of namespaces may ask, viewers may look, and neither may decide or write statuses",
            ),
            _ => AREA.note(format!(
                "aggregateTo is [{}]: everybody else needs a RoleBinding to {EDIT} or {VIEW}",
                included.iter().map(|role| role.name()).collect::<Vec<_>>().join(", ")
            )),
        });
    }
    findings
}

/// Whether whoever has this role of a tenant's has what that cluster role says.
fn reaches(role: &ClusterRole, tenants: &str) -> bool {
    let into = |name: &str| {
        role.labels()
            .get(&format!("rbac.authorization.k8s.io/aggregate-to-{name}"))
            .is_some_and(|value| value == "true")
    };
    // What editors have, admins have: edit is aggregated into admin, and view into edit.
    role.name_any() == tenants || into(tenants)
}

fn words(request: Request) -> String {
    let part =
        if request.subresource.is_empty() { String::new() } else { format!("/{}", request.subresource) };
    format!("{} {}{part}", request.verb, request.resource)
}

/// Who could read every tenant's storage keys by a role in Velero's namespace.
fn in_velero_namespace(seen: &Observed, rbac: &Rbac) -> Finding {
    let namespace = &seen.namespace;
    let read = Request { group: "", resource: Kind::Secret.plural(), subresource: "", verb: "get" };
    let here = Scope::Namespace(namespace.clone());
    let who: BTreeSet<(String, String)> = holdings(rbac, &[read])
        .into_iter()
        .filter(|held| {
            held.scope == here && held.path.only.is_empty() && !is_part_of_the_cluster(&held.who, namespace)
        })
        .map(|held| (held.who.to_string(), held.path.binding))
        .collect();
    if who.is_empty() {
        return AREA
            .ok(format!("nobody has Secrets of {namespace}, where tenants' keys are, by a role there"));
    }
    let names: Vec<String> = who.iter().map(|(who, binding)| format!("{who} ({binding})")).collect();
    let bindings: BTreeSet<&str> = who.iter().map(|(_, binding)| binding.as_str()).collect();
    AREA.warning(
        format!(
            "these can read every tenant's storage keys in {namespace}, where a role that leaves Secrets out would do: {}",
            some(&names)
        ),
        format!("kubectl delete {} -n {namespace}", bindings.into_iter().collect::<Vec<_>>().join(" ")),
    )
}

/// Whether nacre was given more than it needs.
fn nacre_itself(seen: &Observed, rbac: &Rbac) -> Option<Finding> {
    let me = Who::account(&seen.namespace, SERVICE_ACCOUNT);
    let more = rbac.cluster_role_bindings.iter().filter(|binding| {
        let subjects = binding.subjects.iter().flatten();
        let mine = subjects.filter_map(|subject| Who::of(subject, "")).any(|who| who == me);
        mine && binding.role_ref.name == "cluster-admin"
    });
    let names: Vec<String> = more.map(kube::ResourceExt::name_any).collect();
    (!names.is_empty()).then(|| {
        AREA.warning(
            format!("nacre itself is cluster-admin, which it never needs: {}", some(&names)),
            format!("kubectl delete clusterrolebinding {}", names.join(" ")),
        )
    })
}

/// Who can migrate machines of everybody.
fn migrations(seen: &Observed, rbac: &Rbac) -> Vec<Finding> {
    match &seen.kubevirt {
        Reading::Absent => {
            return vec![
                AREA.ok("there is no KubeVirt, so there are no live-migration permissions to look at"),
            ];
        }
        Reading::Forbidden => {
            return vec![AREA.not_checked("whether KubeVirt is there", "get customresourcedefinitions")];
        }
        Reading::Found(()) | Reading::Unreadable(_) => {}
    }
    let mut broad: BTreeMap<Who, BTreeSet<String>> = BTreeMap::new();
    for held in holdings(rbac, &Power::ALL.map(Power::request)) {
        let everybody = matches!(&held.who, Who::Group(name) if EVERYBODY.contains(&name.as_str()));
        let wide = held.scope == Scope::Cluster && !is_part_of_the_cluster(&held.who, &seen.namespace);
        if (everybody || wide) && held.path.role != CLUSTER_ADMIN {
            broad.entry(held.who).or_default().insert(held.path.binding);
        }
    }
    if broad.is_empty() {
        return vec![AREA.ok("nobody but administrators can live-migrate machines of every namespace")];
    }
    broad
        .into_iter()
        .map(|(who, bindings)| {
            let bindings: Vec<String> = bindings.into_iter().collect();
            AREA.warning(
                format!("{who} can live-migrate machines of everybody ({})", some(&bindings)),
                format!(
                    "take that away (kubectl nacre migration revoke {0} --cluster, or delete {1}), and grant it where it is needed: \
                     kubectl nacre migration grant {0} -n NAMESPACE",
                    who.flag(),
                    bindings.join(" and ")
                ),
            )
        })
        .collect()
}

/// Parts of Kubernetes, of KubeVirt and of Velero have what they need, and are nobody's to borrow.
fn is_part_of_the_cluster(who: &Who, velero: &str) -> bool {
    let systems = |namespace: &str| {
        namespace == velero
            || namespace.starts_with("kube-")
            || namespace.starts_with("openshift-")
            || namespace == "kubevirt"
    };
    match who {
        Who::ServiceAccount { namespace, .. } => systems(namespace),
        Who::User(name) => name.starts_with("system:"),
        Who::Group(name) => name.starts_with("system:") && !EVERYBODY.contains(&name.as_str()),
    }
}
