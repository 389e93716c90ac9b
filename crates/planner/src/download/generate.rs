//! The Velero DownloadRequest that is made for a request.

use std::collections::BTreeMap;

use api::velero::{DownloadRequest, DownloadRequestSpec};
use api::{DownloadTarget, Kind, labels};
use kube::core::ObjectMeta;

use super::{Observed, velero_name};
use crate::requester;

/// The Velero DownloadRequest for what Velero has under this name.
pub(super) fn download_request(seen: &Observed, name: &str) -> DownloadRequest {
    let origin = seen.meta();
    let uid = origin.uid.clone().unwrap_or_default();
    let namespace_uid = seen.namespace.as_deref().and_then(|space| space.metadata.uid.clone());
    let by_velero = (labels::ASKED_BY.to_owned(), labels::ASKED_BY_VELERO.to_owned());
    DownloadRequest {
        metadata: ObjectMeta {
            name: Some(velero_name(&uid)),
            namespace: Some(seen.admin_namespace.clone()),
            labels: Some(BTreeMap::from([
                (labels::OADP.to_owned(), labels::OADP_VALUE.to_owned()),
                (labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_VALUE.to_owned()),
                (labels::NADR_UID.to_owned(), uid.clone()),
            ])),
            annotations: Some(
                [
                    (labels::NADR_NAME.to_owned(), origin.name.clone().unwrap_or_default()),
                    (labels::NADR_NAMESPACE.to_owned(), origin.namespace.clone().unwrap_or_default()),
                    (labels::ORIGIN_UID.to_owned(), uid),
                    (labels::ORIGIN_NAMESPACE_UID.to_owned(), namespace_uid.unwrap_or_default()),
                ]
                .into_iter()
                .chain((seen.kind == Kind::DownloadRequest).then_some(by_velero))
                .chain(requester::annotation_of(&seen.access.identity))
                .collect(),
            ),
            ..ObjectMeta::default()
        },
        spec: DownloadRequestSpec {
            target: DownloadTarget { kind: seen.request.spec.target.kind.clone(), name: name.to_owned() },
        },
        status: None,
    }
}
