//! Reads what the doctor checks, with the caller's own permissions.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::Result;
use api::{HiddenSecret, Kind, velero::BackupStorageLocation};
use engine::{CertificateSlot, validity};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::{
    api::{
        admissionregistration::v1::ValidatingWebhookConfiguration, apps::v1::Deployment,
        coordination::v1::Lease, core::v1::ConfigMap, networking::v1::NetworkPolicy,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Resource,
    api::ListParams,
    core::{ClusterResourceScope, NamespaceResourceScope},
};
use planner::{
    Object,
    admission::{
        certificate::{Configuration, SECRET, names, stored},
        webhook::{CONFIGURATION, RECORDER},
    },
    doctor::{Certificate, Observed, wanted},
    install::{CONTROLLER, LEASE, LEASE_NAMESPACE, LEASE_SECRET, RECORD},
    policy::Reading,
    requester::LIST,
};
use serde::de::DeserializeOwned;

use crate::{
    allowed::{reading, sources},
    connect::Session,
};

/// How many single objects are read at a time.
const AT_A_TIME: usize = 8;
/// A certificate that ends sooner than this ends soon: nacre replaces its own weeks before.
const SOON: Duration = Duration::from_hours(24);
/// The CRD that shows that KubeVirt is installed.
const MIGRATIONS: &str = "virtualmachineinstancemigrations.kubevirt.io";

/// Reads everything.
pub(super) async fn observe(session: &Session) -> Result<Observed> {
    let namespace = session.velero_namespace.as_str();
    let controllers = ListParams::default().fields(&format!("metadata.name={CONTROLLER}"));
    let all = ListParams::default();
    let (velero, locations, network_policies, lease, secret, (policy, last_policy)) = tokio::try_join!(
        get::<Deployment>(session, namespace, "velero"),
        list::<BackupStorageLocation>(session, Some(namespace), &all),
        list::<NetworkPolicy>(session, Some(namespace), &all),
        get::<Lease>(session, LEASE_NAMESPACE, LEASE),
        get::<HiddenSecret>(session, namespace, SECRET),
        sources(session),
    )?;
    let (controllers, webhook, kubevirt, rbac, installed) = tokio::try_join!(
        list::<Deployment>(session, None, &controllers),
        everywhere::<ValidatingWebhookConfiguration>(session, CONFIGURATION),
        kubevirt(session),
        async { seen(engine::live_migration::rbac(&session.client).await) },
        installed(session, namespace),
    )?;
    let snapshot_locations = snapshot_locations(session).await?;
    let record = object(session, Kind::ConfigMap, namespace, RECORD).await?;
    let recorder = object(session, Kind::MutatingWebhookConfiguration, "", RECORDER).await?;
    let requester_extra = get::<ConfigMap>(session, namespace, LIST).await?;
    let lease_in_secret = lease_in_secret(session, namespace).await?;
    let certificate = certificate(secret, &webhook);
    let unserved = match seen(engine::install::unserved(&session.client).await)? {
        Reading::Found(kinds) => kinds,
        _ => Vec::new(),
    };
    Ok(Observed {
        namespace: namespace.to_owned(),
        now: Timestamp::now(),
        velero,
        locations,
        snapshot_locations,
        network_policies,
        controllers,
        lease,
        lease_in_secret,
        installed,
        record,
        webhook,
        recorder,
        requester_extra,
        certificate,
        policy,
        last_policy,
        rbac,
        unserved,
        kubevirt,
    })
}

/// What came of reading something. What the API server cannot answer is no reason to look at nothing else.
fn seen<T>(answer: kube::Result<T>) -> Result<Reading<T>> {
    reading(answer, |found| found).or_else(|error| match error.downcast_ref() {
        Some(kube::Error::Api(status)) if status.code != 401 => {
            Ok(Reading::Unreadable(status.message.clone()))
        }
        _ => Err(error),
    })
}

async fn get<K>(session: &Session, namespace: &str, name: &str) -> Result<Reading<K>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    seen(Api::<K>::namespaced(session.client.clone(), namespace).get(name).await)
}

async fn everywhere<K>(session: &Session, name: &str) -> Result<Reading<K>>
where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + DeserializeOwned + Debug,
{
    seen(Api::<K>::all(session.client.clone()).get(name).await)
}

async fn list<K>(session: &Session, namespace: Option<&str>, params: &ListParams) -> Result<Reading<Vec<K>>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    let client = session.client.clone();
    let api: Api<K> = namespace
        .map_or_else(|| Api::all(client.clone()), |namespace| Api::namespaced(client.clone(), namespace));
    seen(api.list(params).await.map(|list| list.items))
}

/// Only the Secret's metadata is read.
async fn lease_in_secret(session: &Session, namespace: &str) -> Result<Reading<Lease>> {
    let secrets = Api::<HiddenSecret>::namespaced(session.client.clone(), namespace);
    seen(secrets.get_metadata(LEASE_SECRET).await.map(|found| planner::lease::in_secret(found.metadata)))
}

/// Only their names matter.
async fn snapshot_locations(session: &Session) -> Result<Reading<Vec<String>>> {
    seen(engine::snapshot_locations(&session.client, &session.velero_namespace).await)
}

/// Definitions are large, and all that matters is whether this one is there.
async fn kubevirt(session: &Session) -> Result<Reading<()>> {
    let definitions = Api::<CustomResourceDefinition>::all(session.client.clone());
    seen(definitions.get_metadata(MIGRATIONS).await.map(|_| ()))
}

/// One object of any kind.
async fn object(session: &Session, kind: Kind, namespace: &str, name: &str) -> Result<Reading<Object>> {
    let found = engine::install::get(&session.client, kind, namespace.to_owned(), name.to_owned()).await;
    Ok(match seen(found)? {
        Reading::Found(Some(found)) => Reading::Found(found),
        Reading::Found(None) | Reading::Absent => Reading::Absent,
        Reading::Forbidden => Reading::Forbidden,
        Reading::Unreadable(why) => Reading::Unreadable(why),
    })
}

/// What is there under each name an installation uses.
async fn installed(session: &Session, namespace: &str) -> Result<Vec<(Object, Reading<Object>)>> {
    stream::iter(wanted(namespace))
        .map(async |wanted| {
            let found = object(session, wanted.kind, wanted.namespace(), wanted.name()).await?;
            anyhow::Ok((wanted, found))
        })
        .buffered(AT_A_TIME)
        .try_collect()
        .await
}

/// What there is to know of a certificate without its key.
fn certificate(
    secret: Reading<HiddenSecret>,
    webhook: &Reading<ValidatingWebhookConfiguration>,
) -> Reading<Certificate> {
    let names = match webhook {
        Reading::Found(found) => names(&[Configuration::of(Kind::ValidatingWebhookConfiguration, found)]),
        _ => Vec::new(),
    };
    match secret {
        Reading::Found(secret) => Reading::Found(Certificate {
            bundle: stored(&secret, "ca.crt").to_vec(),
            validity: validity(&secret, CertificateSlot::Current, &names, SOON),
        }),
        Reading::Absent => Reading::Absent,
        Reading::Forbidden => Reading::Forbidden,
        Reading::Unreadable(why) => Reading::Unreadable(why),
    }
}
