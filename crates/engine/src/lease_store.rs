//! Where the record of leader election is kept: the Lease, or for those who may not use it the same record in the annotation
//! of a Secret. The Secret holds nothing else, and only its metadata is read.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::ObjectMeta;
use kube::{Api, Client};
use planner::election::Store;
use planner::install::LEASE_SECRET;
use planner::lease::in_secret;
use serde_json::json;

use crate::lease::LeaseConfig;

/// The type of that Secret.
const TYPE: &str = "nacre.dev/lease";

/// Both of them.
pub(crate) struct Stores {
    leases: Api<Lease>,
    name: String,
    secrets: Option<Api<Secret>>,
}

impl Stores {
    pub(crate) fn new(client: Client, lease_config: &LeaseConfig) -> Self {
        let secrets = lease_config.secret_namespace.as_ref();
        Self {
            secrets: secrets.map(|namespace| Api::namespaced(client.clone(), namespace)),
            leases: Api::namespaced(client, &lease_config.namespace),
            name: lease_config.name.clone(),
        }
    }

    pub(crate) async fn get(&self, store: Store) -> Result<Option<Lease>, kube::Error> {
        match (store, &self.secrets) {
            (Store::Secret, Some(secrets)) => {
                let found = secrets.get_metadata_opt(LEASE_SECRET).await?;
                Ok(found.map(|found| in_secret(found.metadata)))
            }
            _ => self.leases.get_opt(&self.name).await,
        }
    }

    /// Writes it in place of what was found, in that version.
    pub(crate) async fn put(
        &self,
        store: Store,
        found: Option<&Lease>,
        wanted: &Lease,
    ) -> Result<Lease, kube::Error> {
        let params = PostParams::default();
        let (Store::Secret, Some(secrets)) = (store, &self.secrets) else {
            return match found {
                None => self.leases.create(&params, wanted).await,
                Some(_) => self.leases.replace(&self.name, &params, wanted).await,
            };
        };
        let record = serde_json::to_string(&wanted.spec).map_err(kube::Error::SerdeError)?;
        let annotations = [(api::labels::LEASE.to_owned(), record)].into();
        if let Some(found) = found {
            let version = &found.metadata.resource_version;
            let change = json!({"metadata": {"resourceVersion": version, "annotations": annotations}});
            let written =
                secrets.patch_metadata(LEASE_SECRET, &PatchParams::default(), &Patch::Merge(change)).await?;
            return Ok(in_secret(written.metadata));
        }
        let metadata = ObjectMeta {
            name: Some(LEASE_SECRET.to_owned()),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        };
        let secret = Secret { metadata, type_: Some(TYPE.to_owned()), ..Secret::default() };
        Ok(in_secret(secrets.create(&params, &secret).await?.metadata))
    }

    /// Removes the Secret in the version that was found.
    pub(crate) async fn remove(&self, found: &Lease) -> Result<(), kube::Error> {
        let Some(secrets) = &self.secrets else { return Ok(()) };
        let preconditions = Some(Preconditions {
            uid: found.metadata.uid.clone(),
            resource_version: found.metadata.resource_version.clone(),
        });
        secrets
            .delete(LEASE_SECRET, &DeleteParams { preconditions, ..DeleteParams::default() })
            .await
            .map(drop)
    }
}
