//! Very many backups that ended long before nacre starts: written by a bare client, in the form that nacre gave one of them.

use std::sync::OnceLock;

use anyhow::{Context, Result};
use api::velero::Backup;
use api::{NonAdminBackup, labels};
use bed::Bed;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::{LoadKind, SAMPLE, SHOPS, Sample, done, each, namespace, numbered};
use crate::VELERO;

/// In so many namespaces.
const NAMESPACES: usize = 5000;
/// How the names of these namespaces begin.
const SERIES: &str = "settled";
/// How many characters a uid has.
const UID: usize = 36;

/// Writes so many backups that are `Completed`.
pub async fn settle(bed: &Bed, sample: &Sample, many: usize) -> Result<()> {
    let pattern = Pattern::of(sample)?;
    let client = bed.client().await?;
    let namespaces = Api::<Namespace>::all(client.clone());
    let uids: Vec<_> = (0..NAMESPACES.min(many)).map(|_| OnceLock::new()).collect();
    each(uids.len(), |number| {
        let (namespaces, uids) = (&namespaces, &uids);
        async move {
            let body = json!({"metadata": {"name": format!("{SERIES}-{number}")}});
            let made = namespaces.create(&PostParams::default(), &serde_json::from_value(body)?).await?;
            uids[number].get_or_init(|| made.uid().unwrap_or_default());
            Ok(())
        }
    })
    .await?;
    each(many, |number| {
        let (pattern, client, uids) = (&pattern, &client, &uids);
        async move {
            let at = number % uids.len();
            let (name, namespace) = (numbered(number), format!("{SERIES}-{at}"));
            let mut request = NonAdminBackup::request(&name, number)?;
            request.metadata.finalizers = Some(vec![labels::NAB_FINALIZER.to_owned()]);
            let requests = Api::<NonAdminBackup>::namespaced(client.clone(), &namespace);
            let uid = requests.create(&PostParams::default(), &request).await?.uid().context("no uid")?;
            let namespace_uid = uids[at].get().context("a namespace without uid")?;
            let like = |value: &Value| pattern.fill(value, &namespace, namespace_uid, &name, &uid);
            let mut velero = like(&sample.velero)?;
            velero["metadata"]["name"] = json!(format!("{namespace}-{name}-{uid}"));
            velero["status"] = done();
            let objects = Api::<Backup>::namespaced(client.clone(), VELERO);
            objects.create(&PostParams::default(), &serde_json::from_value(velero)?).await?;
            let mut status = like(&sample.status)?;
            status["queueInfo"]["estimatedQueuePosition"] = json!(0);
            status["veleroBackup"]["status"] = done();
            let status = Patch::Merge(json!({ "status": status }));
            requests.patch_status(&name, &PatchParams::default(), &status).await?;
            Ok(())
        }
    })
    .await
}

/// What in a sample is of that one backup.
struct Pattern {
    namespace_uid: String,
    uid: String,
}

impl Pattern {
    fn of(sample: &Sample) -> Result<Self> {
        let annotations = &sample.velero["metadata"]["annotations"];
        let namespace_uid = annotations[labels::ORIGIN_NAMESPACE_UID].as_str().context("no namespace uid")?;
        let uid = annotations[labels::ORIGIN_UID].as_str().filter(|uid| uid.len() == UID);
        Ok(Self { namespace_uid: namespace_uid.to_owned(), uid: uid.context("no uid")?.to_owned() })
    }

    /// The same of another backup.
    fn fill(
        &self,
        value: &Value,
        in_namespace: &str,
        namespace_uid: &str,
        name: &str,
        uid: &str,
    ) -> Result<Value> {
        let text = value.to_string();
        let text = text.replace(&self.uid, uid).replace(&self.namespace_uid, namespace_uid);
        let text = text.replace(&namespace(SHOPS, 0), in_namespace).replace(SAMPLE, name);
        Ok(serde_json::from_str(&text)?)
    }
}
