//! The policy, as far as the caller may read it.

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, Result};
use api::DataProtectionApplication;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{Api, api::ListParams, core::ObjectMeta};
use planner::{
    Policy,
    policy::{CONFIG_MAP, IN_FORCE, InForce, KEY, LastPolicy, Problem, Reading, Readings, in_force, load},
};

use crate::{connect::Session, output::remark};

/// Where a policy was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Source {
    /// A file on this machine.
    File,
    /// The cluster.
    Cluster,
    /// Nowhere: it is not for the caller to read.
    Unreadable,
}

/// What the administrators allow.
#[derive(Clone, Debug)]
pub(crate) struct Allowed {
    pub(crate) source: Source,
    /// What holds in the namespace; the defaults where it cannot be read, and none where it makes no sense.
    pub(crate) policy: Option<Arc<Policy>>,
    /// What is wrong with it.
    pub(crate) problems: Vec<Problem>,
}

/// Reads the policy for a namespace, from a file if one is named.
pub(crate) async fn read(session: &Session, namespace: &Namespace, file: Option<&Path>) -> Result<Allowed> {
    let readings = match file {
        Some(path) => {
            let text =
                std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
            from_text(text)
        }
        None => from_cluster(session).await?,
    };
    Ok(judge(&readings, file.is_some(), namespace))
}

pub(crate) fn from_text(text: String) -> Readings {
    let map = ConfigMap {
        metadata: ObjectMeta { name: Some(CONFIG_MAP.to_owned()), ..ObjectMeta::default() },
        data: Some([(KEY.to_owned(), text)].into()),
        ..ConfigMap::default()
    };
    Readings { config_map: Reading::Found(Arc::new(map)), applications: Reading::Absent }
}

/// What counts of both sources in the cluster. One that vanished not long ago counts too, and that is remarked on.
pub(crate) async fn from_cluster(session: &Session) -> Result<Readings> {
    let (readings, last) = sources(session).await?;
    let InForce { readings, vanished, .. } = in_force(None, &last, &readings, Timestamp::now());
    for vanished in vanished {
        remark(format_args!("policy: {vanished}"));
    }
    Ok(readings)
}

/// What came of reading both sources in the cluster, and what nacre knows of what they last said.
pub(crate) async fn sources(session: &Session) -> Result<(Readings, LastPolicy)> {
    let place = &session.velero_namespace;
    let maps: Api<ConfigMap> = Api::namespaced(session.client.clone(), place);
    let applications: Api<DataProtectionApplication> = Api::namespaced(session.client.clone(), place);
    let all = ListParams::default();
    let (map, applications, copy) =
        tokio::join!(maps.get(CONFIG_MAP), applications.list(&all), maps.get_opt(IN_FORCE));
    let readings = Readings {
        config_map: reading(map, Arc::new)?,
        applications: reading(applications, |list| list.items.into_iter().map(Arc::new).collect())?,
    };
    // Without the copy, what is there is all that can be known.
    Ok((readings, LastPolicy::read(copy.ok().flatten().as_ref())))
}

/// What came of reading something; an error only if the API server could not be asked.
pub(crate) fn reading<T, U>(answer: kube::Result<T>, found: impl FnOnce(T) -> U) -> Result<Reading<U>> {
    Ok(match answer {
        Ok(answer) => Reading::Found(found(answer)),
        Err(kube::Error::Api(status)) if status.code == 404 => Reading::Absent,
        Err(kube::Error::Api(status)) if status.code == 403 => Reading::Forbidden,
        Err(kube::Error::SerdeError(error)) => Reading::Unreadable(error.to_string()),
        Err(error) => return Err(error.into()),
    })
}

fn judge(readings: &Readings, file: bool, namespace: &Namespace) -> Allowed {
    let forbidden = matches!(readings.config_map, Reading::Forbidden)
        || matches!(readings.applications, Reading::Forbidden);
    let source = match (file, forbidden) {
        (true, _) => Source::File,
        (false, true) => Source::Unreadable,
        (false, false) => Source::Cluster,
    };
    let loaded = load(None, readings);
    let name = namespace.metadata.name.as_deref().unwrap_or_default();
    let labels = namespace.metadata.labels.clone().unwrap_or_default();
    let policy = loaded.policies.map(|policies| policies.for_namespace(name, &labels));
    Allowed { source, policy, problems: loaded.problems }
}

/// The namespace itself, or what is known of it without reading it.
pub(crate) async fn namespace(session: &Session) -> Namespace {
    let api: Api<Namespace> = Api::all(session.client.clone());
    match api.get(&session.namespace).await {
        Ok(found) => found,
        Err(_) => Namespace {
            metadata: ObjectMeta { name: Some(session.namespace.clone()), ..ObjectMeta::default() },
            ..Namespace::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shop() -> Namespace {
        serde_json::from_value(json!({"metadata": {"name": "shop", "labels": {"nacre.dev/tier": "gold"}}}))
            .unwrap()
    }

    #[test]
    fn what_may_not_be_read_is_said_to_be_unknown() {
        let readings = Readings { config_map: Reading::Forbidden, applications: Reading::Absent };
        let allowed = judge(&readings, false, &shop());
        assert_eq!(allowed.source, Source::Unreadable);
        assert_eq!(allowed.policy.as_deref(), Some(&Policy::default()));
    }

    #[test]
    fn a_file_is_read_as_the_cluster_would() {
        let text = "{backup: {maxPerNamespace: 1}, overrides: [{selector: {matchLabels: {nacre.dev/tier: gold}}, backup: {maxPerNamespace: 9}}]}";
        let allowed = judge(&from_text(text.to_owned()), true, &shop());
        assert_eq!(allowed.policy.unwrap().backup.max_per_namespace, Some(9));
        let broken = judge(&from_text("backup: {tll: {}}".to_owned()), true, &shop());
        assert!(broken.policy.is_none() && !broken.problems.is_empty());
    }
}
