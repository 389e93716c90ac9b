//! Who holds more than they should: by tenants' roles, in Velero's namespace, over migrations, and nacre itself.

use std::collections::{BTreeMap, BTreeSet};

use api::Kind;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::ResourceExt as _;

use super::{Area, Finding, Observed, olm, some};
use crate::install::{EDIT, RECORD, SERVICE_ACCOUNT, TENANT_KINDS, UserRole, VIEW};
use crate::kubevirt::Power;
use crate::policy::Reading;
use crate::rbac::aggregate::sources;
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

fn about(kind: Kind, subresource: &'static str, verb: &'static str) -> Request {
    Request { group: kind.group(), resource: kind.plural(), subresource, verb }
}

/// What somebody with a tenant's role must not be able to do, by the role.
fn forbidden_to(role: &str) -> Vec<Request> {
    let statuses =
        TENANT_KINDS.into_iter().flat_map(|kind| ["update", "patch"].map(|verb| about(kind, "status", verb)));
    let mut all: Vec<Request> = decisions().into_iter().chain(statuses).collect();
    if role == "view" {
        all.extend(TENANT_KINDS.into_iter().flat_map(|kind| WRITES.map(|verb| about(kind, "", verb))));
        all.extend(links());
    }
    all
}

/// What administrators decide by. Only objects in Velero's namespace count.
fn decisions() -> Vec<Request> {
    let requests = WRITES.map(|verb| about(Kind::NonAdminBackupStorageLocationRequest, "", verb));
    let application =
        ["create", "update", "patch"].map(|verb| about(Kind::DataProtectionApplication, "", verb));
    requests.into_iter().chain(application).collect()
}

/// Reading what has links in its status to everything that was backed up, Secrets included.
fn links() -> Vec<Request> {
    let kinds = [Kind::NonAdminDownloadRequest, Kind::DownloadRequest];
    kinds.into_iter().flat_map(|kind| READS.map(|verb| about(kind, "", verb))).collect()
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
    findings.extend(too_much(rbac));
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

/// What tenants' roles include and must not. A rule that came by aggregation is reported at its source role.
fn too_much(rbac: &Rbac) -> Vec<Finding> {
    let all = &rbac.cluster_roles;
    let mut wide: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut findings = Vec::new();
    for tenants in all.iter().filter(|role| TENANTS.contains(&&*role.name_any())) {
        let mut links_by_olm = Vec::new();
        for role in parts(tenants, all) {
            let rules = role.rules.as_deref().unwrap_or_default();
            let mut found = forbidden_to(&tenants.name_any());
            found.retain(|request| allow(rules, request));
            if olm::label(role).is_some() {
                // OLM gives owners every kind that an operator brings. In their namespaces nothing is decided by these.
                let links = links();
                found.retain(|request| !decisions().contains(request));
                if found.iter().any(|request| links.contains(request)) {
                    links_by_olm.push(role);
                }
                found.retain(|request| !links.contains(request));
            }
            wide.entry(role.name_any()).or_default().extend(found.into_iter().map(words));
        }
        if !links_by_olm.is_empty() {
            findings.push(links_to_viewers(tenants, &links_by_olm, all));
        }
    }
    for (role, what) in wide.into_iter().filter(|(_, what)| !what.is_empty()) {
        let what: Vec<String> = what.into_iter().collect();
        findings.push(AREA.problem(
            format!("clusterrole {role} lets owners of namespaces {}", some(&what)),
            format!("take these out: kubectl edit clusterrole {role}"),
        ));
    }
    findings
}

/// The roles in which the rules of a tenant's role are written.
fn parts<'a>(role: &'a ClusterRole, all: &'a [ClusterRole]) -> Vec<&'a ClusterRole> {
    match role.aggregation_rule {
        None => vec![role],
        Some(_) => sources(role, all).into_iter().map(|source| source.role).collect(),
    }
}

/// OLM gives them what they read links by, and would do so again.
fn links_to_viewers(view: &ClusterRole, by: &[&ClusterRole], all: &[ClusterRole]) -> Finding {
    let names: Vec<String> = by.iter().map(|role| role.name_any()).collect();
    let reading = about(Kind::NonAdminDownloadRequest, "", "get");
    let edit = all.iter().find(|role| role.name_any() == "edit");
    let mut others = edit.map(|edit| parts(edit, all)).unwrap_or_default();
    others.retain(|role| !names.contains(&role.name_any()));
    let kept = others.iter().any(|role| allow(role.rules.as_deref().unwrap_or_default(), &reading));
    let editors = if kept { String::new() } else { format!("; editors then need {EDIT} to read them") };
    AREA.problem(
        format!(
            "viewers can read download links, and by them all that was backed up, Secrets included: OLM makes {} part of \
             {}, and would make it so again{editors}",
            some(&names),
            view.name_any()
        ),
        olm::leave_out(view, by),
    )
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
