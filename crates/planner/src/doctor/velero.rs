//! Velero's Deployment, version and settings.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Container;

use super::{Area, Finding, Observed};
use crate::dedicated::NO_CACHE;
use crate::location::import;
use crate::ownership::tenant_of;
use crate::policy::{Import, Policies, Reading};

const AREA: Area = Area::Velero;
/// By default Velero validates every location once a minute; a recent validation shows that it is running.
const LATELY: Duration = Duration::from_mins(5);

/// Controllers of Velero's without which tenants wait for ever, and what for.
const NEEDED: [(&str, &str); 9] = [
    ("backup", "backups"),
    ("backup-queue", "backups"),
    ("backup-operations", "backups with volume data"),
    ("backup-finalizer", "backups with volume data"),
    ("backup-deletion", "deleting backups with their data"),
    ("restore", "restores"),
    ("restore-operations", "restores with volume data"),
    ("restore-finalizer", "restores"),
    ("download-request", "logs and downloads"),
];

/// Those without which less is done, and what is not.
const USEFUL: [(&str, &str); 3] = [
    ("gc", "no backup is removed when its time is over"),
    ("backup-sync", "no backup is found in storage"),
    (
        "server-status-request",
        "nacre cannot ask for its version, and lets it import nothing from tenants' storage",
    ),
];

pub(super) fn examine(seen: &Observed, policies: Option<&Policies>) -> Vec<Finding> {
    let namespace = &seen.namespace;
    let may_not = format!("get deployments in namespace {namespace}");
    if let Some(unseen) = AREA.unseen(&seen.velero, "Deployment velero", &may_not) {
        return vec![unseen];
    }
    let Reading::Found(deployment) = &seen.velero else {
        return vec![AREA.problem(
            format!("there is no Deployment velero in namespace {namespace}"),
            "say where Velero is with --velero-namespace, or install it there (velero install)",
        )];
    };
    let container = container(deployment);
    let image = container.and_then(|container| container.image.as_deref()).unwrap_or_default();
    let mut findings = vec![running(seen, deployment), version(image, policies)];
    findings.extend(flags(namespace, &container.map(words).unwrap_or_default()));
    findings.extend(unlimited(seen, container));
    findings.extend(shared_credential(seen, &container.map(words).unwrap_or_default()));
    findings.extend(waits_for_kinds(seen, container));
    findings
}

/// Velero writes the credential of a location to the same file again for each backup. One that reads the file at that moment
/// finds it empty, and fails.
fn shared_credential(seen: &Observed, words: &[String]) -> Option<Finding> {
    let workers = values(words, "--concurrent-backups").last()?.parse::<u32>().ok()?;
    let Reading::Found(locations) = &seen.locations else { return None };
    let mut own = locations.iter().filter(|location| tenant_of(location).is_none());
    let location = own.find(|location| location.spec.credential.is_some()).filter(|_| workers > 1)?;
    let name = location.metadata.name.as_deref().unwrap_or_default();
    Some(AREA.warning(
        format!(
            "Velero works on {workers} backups at a time, and location {name} has spec.credential: now and then a backup fails, \
             since Velero rewrites the file with the credential while another backup reads it"
        ),
        format!(
            "let {name} use the credentials that Velero was installed with: kubectl patch backupstoragelocation {name} -n {} \
             --type=merge -p '{{\"spec\":{{\"credential\":null}}}}'",
            seen.namespace
        ),
    ))
}

/// What is in a tenant's storage, the tenant wrote: for an object in the folder of another kind Velero's cache waits for a
/// kind that does not exist, until Velero is restarted, and every restore with it.
fn waits_for_kinds(seen: &Observed, container: Option<&Container>) -> Option<Finding> {
    let words = words(container?);
    let without_cache = words.iter().any(|word| word == NO_CACHE || *word == format!("{NO_CACHE}=true"));
    if without_cache || !tenants_bring_storage(seen) {
        return None;
    }
    Some(AREA.warning(
        format!(
            "Velero runs without {NO_CACHE}: a backup that a tenant wrote into its own storage can make it wait for a kind that \
             does not exist, and everybody's restores with it, until it is restarted"
        ),
        format!("add {NO_CACHE}=true to its args: kubectl edit deployment velero -n {}", seen.namespace),
    ))
}

fn tenants_bring_storage(seen: &Observed) -> bool {
    matches!(&seen.locations, Reading::Found(locations) if locations.iter().any(|location| tenant_of(location).is_some()))
}

/// What is in a tenant's storage, the tenant wrote: of a backup of gigabytes of zeros Velero keeps a copy on disk while it
/// restores. Only the limits of its pod keep that from its node.
fn unlimited(seen: &Observed, container: Option<&Container>) -> Option<Finding> {
    let limits = container?.resources.as_ref().and_then(|resources| resources.limits.as_ref());
    let missing: Vec<&str> = ["memory", "ephemeral-storage"]
        .into_iter()
        .filter(|name| !limits.is_some_and(|limits| limits.contains_key(*name)))
        .collect();
    if missing.is_empty() || !tenants_bring_storage(seen) {
        return None;
    }
    Some(AREA.warning(
        format!(
            "Velero's pod has no limit of {}: a huge backup in a tenant's storage would take as much of its node as it can",
            missing.join(" and of ")
        ),
        format!(
            "kubectl set resources deployment velero -n {} --limits=memory=1Gi,ephemeral-storage=10Gi",
            seen.namespace
        ),
    ))
}

fn running(seen: &Observed, deployment: &Deployment) -> Finding {
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let available =
        deployment.status.as_ref().and_then(|status| status.available_replicas).unwrap_or_default();
    let namespace = &seen.namespace;
    if available > 0 {
        return AREA.ok(format!("Deployment velero in {namespace}: {available} of {wanted} pods available"));
    }
    // Only a Velero that runs looks at its storage.
    if let Some(ago) = last_look(seen).filter(|ago| *ago < LATELY) {
        return AREA.ok(format!(
            "Velero runs, though not by its Deployment in {namespace}: it looked at its storage {}s ago",
            ago.as_secs()
        ));
    }
    let fix = if wanted == 0 {
        format!("kubectl scale deployment velero -n {namespace} --replicas=1")
    } else {
        format!("kubectl describe pods -n {namespace} -l component=velero")
    };
    AREA.problem(format!("Velero does not run: {available} of {wanted} pods available in {namespace}"), fix)
}

/// How long ago Velero looked at one of its locations.
fn last_look(seen: &Observed) -> Option<Duration> {
    let Reading::Found(locations) = &seen.locations else { return None };
    let times =
        locations.iter().filter_map(|location| location.status.as_ref()?.last_validation_time.as_ref());
    times.map(|time| seen.now.duration_since(time.0).unsigned_abs()).min()
}

fn version(image: &str, policies: Option<&Policies>) -> Finding {
    let import = policies.map(|policies| policies.base().storage_locations.import).unwrap_or_default();
    let tag = image.rsplit_once('@').map_or(image, |(named, _)| named);
    let tag = tag.rsplit_once('/').map_or(tag, |(_, last)| last);
    let tag = tag.split_once(':').map_or("", |(_, tag)| tag);
    let Some([major, minor, _]) = import::numbers(tag) else {
        let message = format!("Velero's version cannot be derived from its image {image:?}");
        return match import {
            Import::On => AREA.warning(
                format!("{message}, and storageLocations.import is on"),
                "run an image with a version as its tag, at least v1.18.3; or set storageLocations.import: auto",
            ),
            Import::Auto | Import::Off => {
                AREA.note(format!("{message}; nacre asks Velero itself before it lets it import"))
            }
        };
    };
    match (import::is_safe(tag), import) {
        (false, Import::On) => AREA.problem(
            format!(
                "Velero {tag} takes up work it finds described in a tenant's bucket, and storageLocations.import is on"
            ),
            "set storageLocations.import: auto in the policy, or upgrade Velero to v1.18.3 or later",
        ),
        (false, _) => AREA.warning(
            format!("Velero {tag} is older than v1.18.3: it does not look for backups in tenants' storage"),
            "upgrade Velero to v1.18.3 or later",
        ),
        (true, _) if [major, minor] > [1, 18] => {
            AREA.note(format!("Velero {tag} is newer than what nacre was tested with, which is v1.18"))
        }
        (true, _) => AREA.ok(format!("Velero {tag}")),
    }
}

/// What its command line switches off.
fn flags(namespace: &str, words: &[String]) -> Vec<Finding> {
    let edit = |what: String| format!("take {what}: kubectl edit deployment velero -n {namespace}");
    let mut findings = Vec::new();
    if values(words, "--restore-only").last().is_some_and(|value| *value != "false") {
        findings.push(AREA.problem(
            "Velero only restores (--restore-only): every backup waits for ever",
            edit("--restore-only out".to_owned()),
        ));
    }
    let disabled = values(words, "--disable-controllers");
    let disabled: Vec<&str> =
        disabled.into_iter().flat_map(|value| value.split(',')).map(str::trim).collect();
    let off = |name: &str| disabled.contains(&name);
    let mut missed: Vec<&str> = NEEDED.iter().filter(|(name, _)| off(name)).map(|(_, what)| *what).collect();
    missed.dedup();
    if !missed.is_empty() {
        let names: Vec<&str> = NEEDED.iter().map(|(name, _)| *name).filter(|name| off(name)).collect();
        findings.push(AREA.problem(
            format!(
                "Velero's controllers {} are switched off: {} wait for ever",
                names.join(", "),
                missed.join(", ")
            ),
            edit(format!("{} out of --disable-controllers", names.join(","))),
        ));
    }
    findings.extend(USEFUL.iter().filter(|(name, _)| off(name)).map(|(name, consequence)| {
        let message = format!("Velero's controller {name} is switched off: {consequence}");
        AREA.warning(message, edit(format!("{name} out of --disable-controllers")))
    }));
    if findings.is_empty() {
        findings.push(AREA.ok("nothing that tenants need of Velero is switched off"));
    }
    findings
}

fn container(deployment: &Deployment) -> Option<&Container> {
    let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
    pod.containers.iter().find(|container| container.name == "velero").or_else(|| pod.containers.first())
}

fn words(container: &Container) -> Vec<String> {
    container.command.iter().chain(&container.args).flatten().cloned().collect()
}

/// The values of a flag, written as `--flag=value`, `--flag value` or `--flag`, which is empty.
fn values<'a>(words: &'a [String], flag: &str) -> Vec<&'a str> {
    let value = |(at, word): (usize, &'a String)| {
        let rest = word.strip_prefix(flag)?;
        let next = || words.get(at + 1).map(String::as_str).filter(|next| !next.starts_with("--"));
        if rest.is_empty() { Some(next().unwrap_or_default()) } else { rest.strip_prefix('=') }
    };
    words.iter().enumerate().filter_map(value).collect()
}
