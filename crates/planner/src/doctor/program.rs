//! The leader: the lease, nacre's Deployment, and whether another controller runs too.

use std::time::Duration;

use api::labels;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt as _;

use super::{Area, CheckStatus, Finding, Observed};
use crate::install::{CONTROLLER, LEASE, LEASE_NAMESPACE, LEASE_SECRET, VERSION};
use crate::policy::Reading;

const AREA: Area = Area::Nacre;
/// How far the clocks of this machine and the holder's may be apart before a lease is called old.
const SKEW: Duration = Duration::from_secs(30);

pub(super) fn examine(seen: &Observed) -> Vec<Finding> {
    let holder = holder(seen);
    let mut findings = deployments(seen, holder.as_deref().ok());
    findings.push(holder.map_or_else(|finding| finding, |holder| held(seen, &holder)));
    findings
}

/// Nobody holds the lease: nacre does not run, as far as the caller may see.
pub(super) fn is_down(seen: &Observed) -> bool {
    holder(seen).is_err_and(|finding| finding.verdict == CheckStatus::Problem)
}

/// The leader, or a finding if there is none. Where nacre may not use leases, as on OADP, its record is in a Secret.
fn holder(seen: &Observed) -> Result<String, Finding> {
    let namespace = &seen.namespace;
    let both = [
        (&seen.lease, format!("lease {LEASE} in {LEASE_NAMESPACE}")),
        (&seen.lease_in_secret, format!("lease in Secret {LEASE_SECRET} in {namespace}")),
    ];
    let mut leases = both.iter().filter_map(|(reading, name)| match reading {
        Reading::Found(lease) => Some((lease, name)),
        _ => None,
    });
    if let Some((lease, _)) = leases.clone().find(|(lease, _)| is_live(seen, lease)) {
        return Ok(named(lease));
    }
    let what = "which process is leader";
    let may_not = [
        format!("get lease {LEASE} in namespace {LEASE_NAMESPACE}"),
        format!("get secret {LEASE_SECRET} in namespace {namespace}"),
    ];
    let mut unseen = both.iter().zip(&may_not);
    if let Some(unseen) = unseen.find_map(|((reading, _), may_not)| AREA.unseen(reading, what, may_not)) {
        return Err(unseen);
    }
    let logs = format!("kubectl logs -n {namespace} deployment/{CONTROLLER}");
    let Some((lease, name)) = leases.next_back() else {
        let message = format!("nobody holds the lease {LEASE} in {LEASE_NAMESPACE}: nacre does not run");
        return Err(AREA.problem(message, logs));
    };
    let holder = named(lease);
    if holder.is_empty() {
        let message = format!("the {name} was handed back and nobody took it: nacre does not run");
        return Err(AREA.problem(message, logs));
    }
    let ago = age(seen, lease).map_or_else(|| "never".to_owned(), |age| format!("{} s ago", age.as_secs()));
    let message = format!("{holder} holds the lease and was last heard of {ago}: no process is leader");
    Err(AREA.problem(message, logs))
}

fn named(lease: &Lease) -> String {
    lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone()).unwrap_or_default()
}

fn is_live(seen: &Observed, lease: &Lease) -> bool {
    !named(lease).is_empty() && age(seen, lease).is_some_and(|age| age <= promised(lease) + SKEW)
}

fn age(seen: &Observed, lease: &Lease) -> Option<Duration> {
    let renewed = lease.spec.as_ref()?.renew_time.as_ref()?.0;
    // A clock that is ahead of ours is as good as one that is even.
    Some(Duration::try_from(seen.now.duration_since(renewed)).unwrap_or_default())
}

fn promised(lease: &Lease) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
    Duration::from_secs(u64::try_from(seconds.unwrap_or_default()).unwrap_or_default())
}

fn held(seen: &Observed, holder: &str) -> Finding {
    match holder.split_once('/') {
        Some((namespace, _)) if namespace != seen.namespace => AREA.problem(
            format!(
                "{holder} is leader, which belongs to Velero in namespace {namespace} and not in {}",
                seen.namespace
            ),
            format!(
                "look there with --velero-namespace {namespace}, or stop that one: there is one per cluster"
            ),
        ),
        _ => AREA.ok(format!("{holder} is leader, as its lease shows")),
    }
}

fn deployments(seen: &Observed, holder: Option<&str>) -> Vec<Finding> {
    if let Some(unseen) = AREA.unseen(&seen.controllers, "the program", "list deployments in all namespaces")
    {
        return vec![unseen];
    }
    let Reading::Found(controllers) = &seen.controllers else { return Vec::new() };
    let (nacre, others): (Vec<&Deployment>, Vec<_>) =
        controllers.iter().partition(|found| is_nacre(found, holder));
    let (own, elsewhere): (Vec<&Deployment>, Vec<_>) =
        nacre.into_iter().partition(|found| found.namespace().as_deref() == Some(&seen.namespace));
    let mut findings: Vec<Finding> = own.iter().map(|own| program(own, holder)).collect();
    if own.is_empty() {
        let missing = format!("there is no Deployment {CONTROLLER} of nacre in {}", seen.namespace);
        findings.push(match (holder, elsewhere.first()) {
            (_, Some(other)) => {
                let place = other.namespace().unwrap_or_default();
                AREA.problem(
                    format!("{missing}, but one in {place}, and there is one per cluster"),
                    format!("look there: kubectl nacre doctor -n {place}"),
                )
            }
            (Some(holder), None) => AREA.note(format!("{missing}; {holder} runs elsewhere")),
            (None, None) => AREA.problem(missing, seen.installer()),
        });
    }
    findings.extend(others.into_iter().filter(|other| wanted(other) > 0).map(other_controller));
    findings
}

/// Whether a Deployment of this name runs nacre: an installer of nacre made it, its image says so, or its pod is
/// leader.
fn is_nacre(found: &Deployment, holder: Option<&str>) -> bool {
    let acts = holder.is_some_and(|holder| {
        holder.starts_with(&format!("{}/{CONTROLLER}-", found.namespace().unwrap_or_default()))
    });
    let ours = found.labels().get(labels::PART_OF).is_some_and(|value| value == labels::PART_OF_VALUE);
    let named = image(found).rsplit('/').next().is_some_and(|last| last.contains("nacre"));
    ours || named || acts
}

fn program(own: &Deployment, holder: Option<&str>) -> Finding {
    let (wanted, available) = (wanted(own), available(own));
    let namespace = own.namespace().unwrap_or_default();
    let place = format!("Deployment {CONTROLLER} in {namespace}");
    let version = own.labels().get(VERSION);
    let look = format!("kubectl describe pods -n {namespace} -l control-plane={CONTROLLER}");
    match version {
        _ if wanted == 0 => AREA.problem(
            format!("{place} is scaled to 0: nothing happens to requests"),
            format!("kubectl scale deployment {CONTROLLER} -n {namespace} --replicas=2"),
        ),
        _ if available == 0 => match holder {
            // It was alive a moment ago, or somebody else is.
            Some(holder) => AREA.warning(
                format!("{place}: none of {wanted} pods is available, but {holder} is leader"),
                look,
            ),
            None => AREA.problem(format!("{place}: none of {wanted} pods is available"), look),
        },
        _ if available < wanted => {
            AREA.warning(format!("{place}: {available} of {wanted} pods available"), look)
        }
        Some(version) if version != env!("CARGO_PKG_VERSION") => AREA.warning(
            format!(
                "{place} is of version {version}, and this program of {}. Bring both to one version: use the program of that \
                 version, or install this one",
                env!("CARGO_PKG_VERSION")
            ),
            format!("kubectl nacre install --image IMAGE -n {namespace}"),
        ),
        _ => AREA.ok(format!("{place}: {available} of {wanted} pods available")),
    }
}

/// Two controllers would both act on the same requests.
fn other_controller(other: &Deployment) -> Finding {
    let namespace = other.namespace().unwrap_or_default();
    let owners = other.metadata.owner_references.iter().flatten();
    let by_oadp = owners.into_iter().any(|owner| owner.kind == "DataProtectionApplication");
    let fix = if by_oadp {
        "set spec.nonAdmin.enable: false in that DataProtectionApplication, or point \
         spec.unsupportedOverrides.nonAdminControllerImageFqin at nacre's image"
            .to_owned()
    } else {
        format!("kubectl scale deployment {CONTROLLER} -n {namespace} --replicas=0")
    };
    AREA.problem(
        format!(
            "another non-admin controller runs in {namespace} ({}): both would act on the same requests",
            image(other)
        ),
        fix,
    )
}

fn wanted(found: &Deployment) -> i32 {
    found.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

fn available(found: &Deployment) -> i32 {
    found.status.as_ref().and_then(|status| status.available_replicas).unwrap_or_default()
}

fn image(found: &Deployment) -> &str {
    let pod = found.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    pod.and_then(|pod| pod.containers.first()?.image.as_deref()).unwrap_or("no image")
}
