//! Reads an installation of nacre, and tries changes with a dry run before making them. It changes so rarely that it is
//! read from the API server for each decision.

use std::collections::BTreeSet;
use std::time::Duration;

use api::{Kind, labels};
use futures::future::try_join_all;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::ListParams;
use kube::core::params::{GetParams, Patch, PatchParams};
use kube::core::{DynamicObject, ObjectMeta, PartialObjectMeta};
use kube::{Api, Client, ResourceExt as _};
use planner::install::uninstall::{FINALIZERS, left_behind, unfenced};
use planner::install::{
    CONTROLLER, DEPLOYMENT, Found, KINDS, LEASE, LEASE_NAMESPACE, LEASE_SECRET, OPERATOR, RECORD, SINCE_1_36,
    Settings, VeleroFound, objects, recorder,
};
use planner::lease::in_secret;
use planner::velero_view::COPIED;
use planner::{Action, Key, Object, Plan, Target, download};
use serde_json::Value;

use crate::error::{Failure, status};
use crate::execute::{Executor, MANAGER, path};

/// How many requests are fetched at a time.
const PAGE: u32 = 500;

/// Everything that has a name nacre could use in this namespace or bears its mark, the values it was installed with, and the
/// namespace if it is there.
pub async fn found(client: &Client, namespace: &str) -> Result<Vec<Found>, kube::Error> {
    let mut found = marked(client).await?;
    let settings = Settings {
        namespace: namespace.to_owned(),
        velero_view: true,
        fence: true,
        console: true,
        ..Settings::default()
    };
    let more = [
        (Kind::Namespace, String::new(), namespace.to_owned()),
        (Kind::ConfigMap, namespace.to_owned(), RECORD.to_owned()),
    ];
    let wanted = objects(&settings).into_iter().chain(recorder(&settings));
    let names = wanted.map(|object| (object.kind, object.namespace().to_owned(), object.name().to_owned()));
    let unknown = names.chain(more).filter(|(kind, namespace, name)| {
        !found.iter().any(|one| one.kind == *kind && one.namespace() == namespace && one.name() == name)
    });
    let others =
        try_join_all(unknown.map(|(kind, namespace, name)| get(client, kind, namespace, name))).await?;
    found.extend(others.into_iter().flatten());
    Ok(found)
}

/// Velero's Deployment, and every ClusterRoleBinding with its role, some of which may be Velero's.
pub async fn velero(client: &Client, namespace: &str) -> Result<VeleroFound, kube::Error> {
    let (kind, name) = (Kind::Deployment, DEPLOYMENT.to_owned());
    Ok(VeleroFound {
        deployment: get(client, kind, namespace.to_owned(), name).await?,
        bindings: list(client, Kind::ClusterRoleBinding, ListParams::default()).await?,
        roles: list(client, Kind::ClusterRole, ListParams::default()).await?,
    })
}

/// The kinds of an installation that this API server does not know.
pub async fn unserved(client: &Client) -> Result<Vec<Kind>, kube::Error> {
    if crate::live_migration::knows_mutating_policies(client).await? {
        return Ok(Vec::new());
    }
    Ok(SINCE_1_36.to_vec())
}

/// Every object with nacre's labels.
pub async fn marked(client: &Client) -> Result<Vec<Found>, kube::Error> {
    let ours = ListParams::default().labels(&format!("{}={}", labels::PART_OF, labels::PART_OF_VALUE));
    let lists = KINDS.map(|kind| list(client, kind, ours.clone()));
    Ok(try_join_all(lists).await?.into_iter().flatten().collect())
}

/// Every object of an installation in Velero's namespace, for the uninstaller.
pub async fn remains(client: &Client, namespace: &str) -> Result<Vec<Found>, kube::Error> {
    // If `nacre operator` runs, its lease is not the controller's.
    let operator = get(client, Kind::Deployment, namespace.to_owned(), OPERATOR.to_owned()).await?.is_some();
    let left = left_behind(namespace).into_iter();
    let left = left.filter(|(kind, _, name)| !(operator && *kind == Kind::Lease && name == OPERATOR));
    let left = try_join_all(left.map(|(kind, namespace, name)| get(client, kind, namespace, name))).await?;
    Ok(marked(client).await?.into_iter().chain(left.into_iter().flatten()).collect())
}

/// Every request with finalizers.
pub async fn with_finalizer(client: &Client) -> Result<Vec<Target>, kube::Error> {
    let kinds = FINALIZERS.iter().map(|(kind, _)| *kind);
    let all = listed(client, kinds, &ListParams::default()).await?;
    let targets = all.iter().map(|(kind, meta)| Target::of(*kind, meta));
    Ok(targets.filter(|target| !target.finalizers.is_empty()).collect())
}

/// What the Velero view put into tenants' namespaces, where Velero itself is in this one: copies of Velero's objects, and
/// links for downloads.
pub async fn copies(client: &Client, namespace: &str) -> Result<Vec<Target>, kube::Error> {
    Ok([copies_of_veleros(client, namespace).await?, links(client, namespace).await?].concat())
}

/// The same; none if copies may not be listed, since the permissions for them were not given.
pub async fn permitted_copies(client: &Client, namespace: &str) -> Result<Option<Vec<Target>>, kube::Error> {
    let Some(copies) = permitted(copies_of_veleros(client, namespace).await)? else { return Ok(None) };
    // Permissions of before this version leave links out.
    let links = permitted(links(client, namespace).await)?.unwrap_or_default();
    Ok(Some([copies, links].concat()))
}

fn permitted<T>(answer: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match answer {
        Err(error) if status(&error).is_some_and(|status| status.code == 403) => Ok(None),
        other => other.map(Some),
    }
}

async fn copies_of_veleros(client: &Client, namespace: &str) -> Result<Vec<Target>, kube::Error> {
    let marked = ListParams::default().labels(labels::SHOWN).fields(&elsewhere(namespace));
    let all = listed(client, COPIED.into_iter(), &marked).await?;
    // Objects that are being deleted need nothing more, unless nacre holds them.
    let held = |meta: &ObjectMeta| {
        let mut finalizers = meta.finalizers.iter().flatten();
        finalizers.any(|finalizer| finalizer == labels::VELERO_VIEW_FINALIZER)
    };
    let stay = all.iter().filter(|(_, meta)| meta.deletion_timestamp.is_none() || held(meta));
    Ok(stay.map(|(kind, meta)| Target::of(*kind, meta)).collect())
}

/// Downloads that nacre answered: their status has a link to what was backed up.
async fn links(client: &Client, namespace: &str) -> Result<Vec<Target>, kube::Error> {
    let kind = Kind::DownloadRequest;
    let api = Api::<DynamicObject>::all_with(client.clone(), &kind.resource());
    let answered = format!("{}=true", labels::EXCLUDE_FROM_BACKUP);
    let mut page = ListParams::default().labels(&answered).fields(&elsewhere(namespace)).limit(PAGE);
    let mut found = Vec::new();
    loop {
        let list = match api.list(&page).await {
            Err(error) if is_unknown(&error) => return Ok(found),
            other => other?,
        };
        let answered = list
            .items
            .iter()
            .filter(|item| download::is_answered(item) && item.metadata.deletion_timestamp.is_none());
        found.extend(answered.map(|item| Target::of(kind, &item.metadata)));
        let Some(next) = list.metadata.continue_.filter(|next| !next.is_empty()) else { return Ok(found) };
        page = page.continue_token(&next);
    }
}

fn elsewhere(namespace: &str) -> String {
    format!("metadata.namespace!={namespace}")
}

/// The objects of these kinds, listed page by page.
async fn listed(
    client: &Client,
    kinds: impl Iterator<Item = Kind>,
    which: &ListParams,
) -> Result<Vec<(Kind, ObjectMeta)>, kube::Error> {
    let mut found = Vec::new();
    for kind in kinds {
        let api = Api::<PartialObjectMeta<DynamicObject>>::all_with(client.clone(), &kind.resource());
        let mut page = which.clone().limit(PAGE);
        loop {
            let list = match api.list_metadata(&page).await {
                Ok(list) => list,
                // A kind without CRD has no objects.
                Err(error) if is_unknown(&error) => break,
                Err(error) => return Err(error),
            };
            found.extend(list.items.into_iter().map(|item| (kind, item.metadata)));
            let Some(next) = list.metadata.continue_.filter(|next| !next.is_empty()) else { break };
            page = page.continue_token(&next);
        }
    }
    Ok(found)
}

/// Who may still be an active controller: a pod of its Deployment, or the holder of the lease.
pub async fn at_work(client: &Client, namespace: &str) -> Result<Option<String>, kube::Error> {
    if let Some(pod) = pod_at_work(client, namespace).await? {
        return Ok(Some(pod));
    }
    let leases = Api::<Lease>::namespaced(client.clone(), LEASE_NAMESPACE);
    let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
    let secret = secrets.get_metadata_opt(LEASE_SECRET).await?.map(|found| in_secret(found.metadata));
    let now = Timestamp::now();
    Ok(leases.get_opt(LEASE).await?.into_iter().chain(secret).find_map(|lease| holder(&lease, now)))
}

/// A pod of the controller's Deployment that has not ended.
pub(crate) async fn pod_at_work(client: &Client, namespace: &str) -> Result<Option<String>, kube::Error> {
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    let ours = ListParams::default().labels(&format!("control-plane={CONTROLLER}"));
    let pods = pods.list(&ours).await?;
    let ended = |pod: &Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        matches!(phase, Some("Succeeded" | "Failed"))
    };
    let pod = pods.items.iter().find(|pod| !ended(pod));
    Ok(pod.map(|pod| format!("pod {} in {namespace}", pod.name_any())))
}

/// The holder of a lease that has not expired.
fn holder(lease: &Lease, now: Timestamp) -> Option<String> {
    let spec = lease.spec.as_ref()?;
    let holder = spec.holder_identity.as_ref().filter(|holder| !holder.is_empty())?;
    let renewed = spec.renew_time.as_ref()?.0;
    let seconds = u64::try_from(spec.lease_duration_seconds?).unwrap_or_default();
    let since = now.duration_since(renewed).unsigned_abs();
    (since < Duration::from_secs(seconds)).then(|| format!("{holder}, which holds the lease,"))
}

/// Executes a plan that was made without the cache.
pub async fn execute_plan(client: &Client, settings: &Settings, plan: &Plan) -> Result<(), Failure> {
    let executor = Executor::uncached(client.clone(), &settings.namespace);
    executor.execute(&Key::new(Kind::Deployment, &settings.namespace, CONTROLLER), plan).await
}

/// Sends every change of a plan as a server-side dry run, and returns what the API server rejects. So a missing
/// permission is reported before anything is half done.
pub async fn rehearse(client: &Client, plan: &Plan) -> Result<Vec<Failure>, kube::Error> {
    let mut refused = Vec::new();
    for action in &plan.actions {
        let Action::Apply(object) = action else { continue };
        if let Err(source) = rehearse_one(client, object).await {
            // The namespace does not exist yet.
            if !is_unknown(&source) {
                let what = format!("apply {} {}/{}", object.kind.name(), object.namespace(), object.name());
                refused.push(Failure { what, source });
            }
        }
    }
    Ok(refused)
}

async fn rehearse_one(client: &Client, object: &Object) -> Result<(), kube::Error> {
    let params = PatchParams { dry_run: true, ..PatchParams::apply(MANAGER).force() };
    let path = path(object.kind, object.namespace());
    let request = path.patch(object.name(), &params, &Patch::Apply(&object.body));
    client.request_text(request.map_err(kube::Error::BuildRequest)?).await.map(drop)
}

/// The object of this kind and name, if there is one.
pub async fn get(
    client: &Client,
    kind: Kind,
    namespace: String,
    name: String,
) -> Result<Option<Found>, kube::Error> {
    let request =
        path(kind, &namespace).get(&name, &GetParams::default()).map_err(kube::Error::BuildRequest)?;
    match client.request::<Value>(request).await {
        Ok(body) => Ok(Some(Found { kind, body })),
        Err(error) if is_unknown(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn list(client: &Client, kind: Kind, params: ListParams) -> Result<Vec<Found>, kube::Error> {
    let request = path(kind, "").list(&params).map_err(kube::Error::BuildRequest)?;
    let mut list = match client.request::<Value>(request).await {
        Ok(list) => list,
        Err(error) if is_unknown(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let Value::Array(items) = list["items"].take() else { return Ok(Vec::new()) };
    let whole = |mut body: Value| {
        // In a list, the API server leaves these out.
        body["apiVersion"] = kind.api_version().into();
        body["kind"] = kind.name().into();
        Found { kind, body }
    };
    Ok(items.into_iter().map(whole).collect())
}

fn is_unknown(error: &kube::Error) -> bool {
    status(error).is_some_and(|status| status.code == 404)
}

/// What stays after nacre is uninstalled, as text.
pub async fn kept(
    client: &Client,
    namespace: &str,
    definitions_too: bool,
) -> Result<Vec<String>, kube::Error> {
    let mut kept = Vec::new();
    if !definitions_too {
        for kind in REQUESTS {
            let number = count(client, kind, "", None).await?;
            if number > 0 {
                kept.push(format!("{number} {} of tenants", kind.plural()));
            }
        }
        kept.push("nacre's CRDs; --crds removes them, and every request with them".to_owned());
    }
    for kind in [Kind::Backup, Kind::Restore, Kind::BackupStorageLocation] {
        let number = count(client, kind, namespace, None).await?;
        if number > 0 {
            kept.push(format!("{number} {} of Velero in {namespace}, and what is in storage", kind.plural()));
        }
    }
    let tenants = Some(labels::NABSL_NACUUID);
    kept.extend(unfenced(count(client, Kind::BackupStorageLocation, namespace, tenants).await?, namespace));
    if crate::live_migration::is_configured(client).await? {
        kept.push("KubeVirt roles, grants and guard, which are not maintained any more".to_owned());
    }
    kept.push(format!("the namespace {namespace}, with what is in it"));
    Ok(kept)
}

const REQUESTS: [Kind; 6] = [
    Kind::NonAdminBackup,
    Kind::NonAdminRestore,
    Kind::NonAdminBackupStorageLocation,
    Kind::NonAdminBackupStorageLocationRequest,
    Kind::NonAdminDownloadRequest,
    Kind::NonAdminSchedule,
];

/// How many requests of tenants there are by kind, and in how many namespaces.
pub async fn requests(client: &Client) -> Result<(Vec<(Kind, usize)>, usize), kube::Error> {
    let all = listed(client, REQUESTS.into_iter(), &ListParams::default()).await?;
    let number = |kind: Kind| all.iter().filter(|(one, _)| *one == kind).count();
    let kinds = REQUESTS.map(|kind| (kind, number(kind))).into_iter().filter(|(_, number)| *number > 0);
    let places: BTreeSet<_> = all.iter().map(|(_, meta)| meta.namespace.as_deref()).collect();
    Ok((kinds.collect(), places.len()))
}

async fn count(
    client: &Client,
    kind: Kind,
    namespace: &str,
    label: Option<&str>,
) -> Result<i64, kube::Error> {
    // The API server counts the rest only where nothing is selected.
    let which = match label {
        Some(label) => ListParams::default().labels(label),
        None => ListParams::default().limit(1),
    };
    let request = path(kind, namespace).list(&which).map_err(kube::Error::BuildRequest)?;
    match client.request::<Value>(request).await {
        Ok(list) => {
            let shown = list["items"].as_array().map_or(0, Vec::len);
            let more = list["metadata"]["remainingItemCount"].as_i64().unwrap_or_default();
            Ok(i64::try_from(shown).unwrap_or_default() + more)
        }
        Err(error) if is_unknown(&error) => Ok(0),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::api::coordination::v1::Lease;
    use serde_json::json;

    use super::holder;

    #[test]
    fn a_lease_counts_until_it_runs_out_or_is_handed_back() {
        let now: Timestamp = "2026-01-01T00:00:20Z".parse().unwrap();
        let with_finalizer = |by: &str, renewed: &str| -> Option<String> {
            let lease: Lease = serde_json::from_value(json!({"metadata": {}, "spec": {
                "holderIdentity": by, "leaseDurationSeconds": 15, "renewTime": renewed}}))
            .unwrap();
            holder(&lease, now)
        };
        assert!(
            with_finalizer("pod-a", "2026-01-01T00:00:10.000000Z")
                .is_some_and(|who| who.starts_with("pod-a"))
        );
        assert_eq!(with_finalizer("pod-a", "2026-01-01T00:00:04.000000Z"), None);
        assert_eq!(with_finalizer("", "2026-01-01T00:00:10.000000Z"), None);
    }
}
