//! `policy egress`: the NetworkPolicy that keeps Velero from addresses inside the cluster.

use std::net::IpAddr;

use anyhow::{Context as _, Result};
use api::labels::{PART_OF, PART_OF_VALUE};
use api::velero::BackupStorageLocation;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use planner::egress::{Egress, NAME, decide};
use planner::policy::load;

use crate::{
    allowed,
    connect::Session,
    output::{Outcome, remark, say},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre policy egress | kubectl apply -f -
  kubectl nacre policy egress > egress.yaml
  kubectl nacre install --egress                   applies it with the installation

It allows DNS, the API server and every address outside, and inside the cluster only what is in
storageLocations.endpoints.allow and where the administrators' own locations are. What tenants wrote opens nothing.
A NetworkPolicy takes a network plugin that enforces it.")]
pub(super) struct Print {}

pub(super) async fn run(session: &Session) -> Result<Outcome> {
    let Egress { policy, unknown } = wanted(session).await?;
    let mut object = serde_json::to_value(&policy)?;
    object["apiVersion"] = "networking.k8s.io/v1".into();
    object["kind"] = "NetworkPolicy".into();
    say(&serde_saphyr::to_string(&object)?)?;
    remark_names(&unknown);
    Ok(Outcome::Good)
}

/// Applies it, for whoever installs nacre.
pub(crate) async fn apply(session: &Session) -> Result<()> {
    let Egress { policy, unknown } = wanted(session).await.context("finding out whom Velero may talk to")?;
    let params = PatchParams::apply(engine::MANAGER).force();
    let policies = session.in_velero_namespace::<NetworkPolicy>();
    policies.patch(NAME, &params, &Patch::Apply(&policy)).await.context("applying the NetworkPolicy")?;
    remark(format_args!("applied NetworkPolicy {NAME} in {}", session.velero_namespace));
    remark_names(&unknown);
    Ok(())
}

/// Removes what `apply` left, from the namespace of the installation.
pub(crate) async fn remove(session: &Session, namespace: &str) -> Result<()> {
    let policies = Api::<NetworkPolicy>::namespaced(session.client.clone(), namespace);
    let found = policies.get_opt(NAME).await.context("looking for the NetworkPolicy")?;
    if found.is_some_and(|found| found.labels().get(PART_OF).is_some_and(|value| value == PART_OF_VALUE)) {
        policies.delete(NAME, &DeleteParams::default()).await.context("removing the NetworkPolicy")?;
    }
    Ok(())
}

fn remark_names(unknown: &[String]) {
    for name in unknown {
        remark(format_args!(
            "{name}: a NetworkPolicy knows no names; if it resolves to a private address, add that address to \
             storageLocations.endpoints.allow"
        ));
    }
}

async fn wanted(session: &Session) -> Result<Egress> {
    let readings = allowed::from_cluster(session).await?;
    let policies =
        load(None, &readings).policies.context("the policy cannot be read; see kubectl nacre policy show")?;
    let policy = policies.for_namespace("", &std::collections::BTreeMap::new());
    let storage: Api<BackupStorageLocation> =
        Api::namespaced(session.client.clone(), &session.velero_namespace);
    let storage = match storage.list(&ListParams::default()).await {
        Ok(found) => found.items,
        // Velero is not there yet.
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    Ok(decide(&session.velero_namespace, &policy, &storage, &api_server(session).await?))
}

/// Where the API server listens, behind its Service.
async fn api_server(session: &Session) -> Result<Vec<(IpAddr, u16)>> {
    let slices: Api<EndpointSlice> = Api::namespaced(session.client.clone(), "default");
    let own = ListParams::default().labels("kubernetes.io/service-name=kubernetes");
    let mut found = Vec::new();
    for slice in slices.list(&own).await.context("reading where the API server is")?.items {
        let ports: Vec<u16> =
            slice.ports.iter().flatten().filter_map(|port| port.port?.try_into().ok()).collect();
        for address in slice.endpoints.iter().flatten().flat_map(|endpoint| &endpoint.addresses) {
            let Ok(address) = address.parse() else { continue };
            found.extend(ports.iter().map(|port| (address, *port)));
        }
    }
    Ok(found)
}
