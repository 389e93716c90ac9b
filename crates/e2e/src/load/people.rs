//! Many requests of a few people, with and without a record of who asks.

use std::time::Duration;

use anyhow::Result;
use api::NonAdminBackup;
use kube::api::{DeleteParams, PostParams};
use kube::core::DynamicObject;
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use super::{
    LoadKind, Meter, NAMESPACES, Reached, SHOPS, bring_to, each, make_available, namespace, numbered,
};
use crate::TestCluster;
use crate::test_cluster::deploy;

/// Where the backups of a burst are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// The administrators' storage: nobody sees what is in it, so no permissions are checked.
    Platform,
    /// Storage of the namespace: what somebody may not read is left out.
    Own,
}

/// The people, one for each namespace, who have the role `admin` in it.
pub struct People(Vec<Client>);

impl People {
    /// Gives each namespace of the load somebody.
    pub async fn settle(test_cluster: &TestCluster) -> Result<Self> {
        let mut clients = Vec::new();
        for number in 0..NAMESPACES {
            let (place, user) = (namespace(SHOPS, number), format!("user-{number}"));
            let bed = &test_cluster.bed;
            bed.bind(&place, &user, "admin").await?;
            bed.wait_allowed(&user, &place, "create", "oadp.openshift.io", "nonadminbackups").await?;
            clients.push(bed.client_as(&user, &["developers"]).await?);
        }
        Ok(Self(clients))
    }

    /// They ask for so many backups at once, and wait until the last is `Created`.
    pub async fn burst(
        &self,
        meter: &mut Meter<'_>,
        many: usize,
        to: Destination,
        timeout: Duration,
    ) -> Result<Reached> {
        each(many, |number| {
            let client = self.0[number % NAMESPACES].clone();
            let requests = Api::<NonAdminBackup>::namespaced(client, &namespace(SHOPS, number));
            async move {
                let mut request = NonAdminBackup::request(&numbered(number), number)?;
                if to == Destination::Own {
                    request.spec.backup_spec.storage_location = Some(format!("l{}", number % NAMESPACES));
                }
                requests.create(&PostParams::default(), &request).await?;
                Ok(())
            }
        })
        .await?;
        meter.until_shown::<NonAdminBackup>(many, timeout, |request| request.created_as().is_some()).await
    }
}

impl TestCluster {
    /// Each namespace of the load gets storage of its own, which Velero can reach.
    pub async fn give_own_storage(&self, meter: &mut Meter<'_>, timeout: Duration) -> Result<()> {
        bring_to(meter, SHOPS, NAMESPACES, timeout).await?.all()?;
        make_available(self).await
    }

    /// Ends the recording of who asks, and waits until it has ended.
    pub async fn forget_requesters(&self) -> Result<()> {
        let client = self.bed.client().await?;
        for object in bed::read_manifests(&deploy("requester.yaml"))? {
            let types = object.types.clone().unwrap_or_default();
            let kind = kube::core::GroupVersionKind::try_from(&types)?;
            let resource = kube::core::ApiResource::from_gvk(&kind);
            let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
            api.delete(&object.name_any(), &DeleteParams::default()).await?;
        }
        let requests = Api::<NonAdminBackup>::namespaced(client, "default");
        let probe = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
            "metadata": {"name": "probe"}, "spec": {"backupSpec": {}}});
        let probe = serde_json::from_value(probe)?;
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        bed::eventually("who asks not to be recorded", Duration::from_secs(30), async || {
            let made = requests.create(&dry, &probe).await?;
            anyhow::ensure!(
                made.finalizers().is_empty() && made.annotations().is_empty(),
                "{:?}",
                made.metadata
            );
            Ok(())
        })
        .await
    }
}
