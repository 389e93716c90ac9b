//! Reads what `nacre operator` decides on. Applications change so rarely that everything is read from the API server
//! each time.

use api::{DataProtectionApplication, Kind};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::{Api, Client};
use planner::dpa_operator::{Acting, OADP, enabled};
use planner::install::{CONTROLLER, Found, LEASE, LEASE_NAMESPACE, Settings, program};
use planner::lease::{Choice, Observed, Record, Times, decide};
use tokio::time::Instant;

use crate::error::status;
use crate::install::{get, pod_at_work};
use crate::lease::record;

/// Reads everything, and remembers since when the lease is unchanged.
pub struct Lookout {
    client: Client,
    namespace: String,
    times: Times,
    lease: Option<(Record, Instant)>,
}

/// What the decision reads.
pub struct Seen {
    /// Every application that nacre is permitted to read.
    pub applications: Vec<DataProtectionApplication>,
    /// The other namespaces that have a Deployment of the controller's name.
    pub elsewhere: Vec<String>,
    /// The existing objects with the names of the installation.
    pub found: Vec<Found>,
    /// Whether OADP's operator runs here.
    pub oadp: bool,
    actor: Option<(bool, String)>,
}

impl Seen {
    /// Which process is the active controller.
    pub fn acting(&self) -> Acting<'_> {
        match &self.actor {
            None => Acting::Nobody,
            Some((true, who)) => Acting::Here(who),
            Some((false, who)) => Acting::Elsewhere(who),
        }
    }
}

impl Lookout {
    /// For the applications of this namespace.
    pub fn new(client: Client, namespace: &str, times: Times) -> Self {
        Self { client, namespace: namespace.to_owned(), times, lease: None }
    }

    /// Reads everything; empty if the CRD is not installed.
    pub async fn look(&mut self) -> Result<Seen, kube::Error> {
        let applications = self.applications().await?;
        let elsewhere = self.elsewhere(&applications).await?;
        let settings = Settings { namespace: self.namespace.clone(), ..Settings::default() };
        let mut found = Vec::new();
        for part in program(&settings) {
            let (namespace, name) = (part.namespace().to_owned(), part.name().to_owned());
            found.extend(get(&self.client, part.kind, namespace, name).await?);
        }
        let oadp = get(&self.client, Kind::Deployment, self.namespace.clone(), OADP.to_owned()).await?;
        let actor = self.actor().await?;
        let oadp = oadp.is_some_and(|found| found.body["spec"]["replicas"] != 0);
        Ok(Seen { applications, elsewhere, found, oadp, actor })
    }

    /// In all namespaces, or in our own if nacre is not permitted to list the others.
    async fn applications(&self) -> Result<Vec<DataProtectionApplication>, kube::Error> {
        let kind = Kind::DataProtectionApplication.resource();
        let everywhere = Api::<DynamicObject>::all_with(self.client.clone(), &kind);
        let here = Api::<DynamicObject>::namespaced_with(self.client.clone(), &self.namespace, &kind);
        let found = match everywhere.list(&ListParams::default()).await {
            Err(error) if code(&error) == Some(403) => here.list(&ListParams::default()).await,
            other => other,
        };
        let found = match found {
            Err(error) if code(&error) == Some(404) => return Ok(Vec::new()),
            other => other?,
        };
        let read = |one: DynamicObject| serde_json::from_value(serde_json::to_value(one).ok()?).ok();
        Ok(found.items.into_iter().filter_map(read).collect())
    }

    async fn elsewhere(
        &self,
        applications: &[DataProtectionApplication],
    ) -> Result<Vec<String>, kube::Error> {
        let others = applications.iter().filter(|one| enabled(one));
        let mut namespaces: Vec<_> = others.filter_map(|one| one.metadata.namespace.clone()).collect();
        namespaces.retain(|namespace| *namespace != self.namespace);
        namespaces.sort();
        namespaces.dedup();
        let mut having = Vec::new();
        for namespace in namespaces {
            match get(&self.client, Kind::Deployment, namespace.clone(), CONTROLLER.to_owned()).await {
                Ok(Some(_)) => having.push(namespace),
                Ok(None) => {}
                // What nacre is not permitted to read is ignored, as OADP's operator does.
                Err(error) if code(&error) == Some(403) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(having)
    }

    /// A pod of the Deployment; else the holder of the lease, unless the lease has expired.
    async fn actor(&mut self) -> Result<Option<(bool, String)>, kube::Error> {
        if let Some(pod) = pod_at_work(&self.client, &self.namespace).await? {
            return Ok(Some((true, pod)));
        }
        let leases = Api::<Lease>::namespaced(self.client.clone(), LEASE_NAMESPACE);
        let found = leases.get_opt(LEASE).await?.as_ref().map(record);
        let now = Instant::now();
        let since = match &self.lease {
            Some((known, since)) if Some(&known.version) == found.as_ref().map(|one| &one.version) => *since,
            _ => now,
        };
        self.lease = found.map(|found| (found, since));
        let record = self.lease.as_ref().map(|(record, _)| record);
        let seen = Observed { record, unchanged_for: now - since, me: "", times: self.times };
        let holder = record.map(|record| record.holder.clone());
        let ours = |holder: &String| holder.starts_with(&format!("{}/", self.namespace));
        Ok(match decide(&seen) {
            Choice::Write => None,
            Choice::Wait(_) => holder.map(|holder| (ours(&holder), format!("{holder}, who holds the lease"))),
        })
    }
}

fn code(error: &kube::Error) -> Option<u16> {
    status(error).map(|status| status.code)
}
