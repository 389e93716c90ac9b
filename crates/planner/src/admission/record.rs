//! The API server records who asked, on creation and where what is asked for changes. Whoever changes what is asked for
//! becomes the requester: otherwise one person could act as another.

use api::{Kind, labels};
use k8s_openapi::api::admissionregistration::v1::MutatingAdmissionPolicy;

use super::requester::{VELERO_VIEW, described};
use crate::install::TENANT_KINDS;
use crate::vap::Draft;

/// Its name, and its binding's.
const NAME: &str = "nacre-requester";

/// Writes the record. A client that replaces the whole object without it gets it back.
pub(super) fn requester(namespace: &str) -> MutatingAdmissionPolicy {
    let (ours, veleros) = (TENANT_KINDS.map(Kind::plural), VELERO_VIEW.map(Kind::plural));
    let over = [(Kind::NonAdminBackup.group(), ours.as_slice()), (Kind::Backup.group(), veleros.as_slice())];
    let write = |name: &str, value: &str| {
        format!(
            "variables.{value} == '' ? Object{{}} : \
             Object{{metadata: Object.metadata{{annotations: {{'{name}': variables.{value}}}}}}}"
        )
    };
    let wanted = |record: &str, news: &str| {
        format!(
            "variables.{news} ? variables.requester : (variables.{record} == '' ? variables.old_{record} : '')"
        )
    };
    described(Draft::over(NAME, &["CREATE", "UPDATE"], &over), namespace)
        .with("written", wanted("record", "news"))
        .with("deletion_written", wanted("deletion_record", "deletion_news"))
        .applying(write(labels::REQUESTER, "written"))
        .applying(write(labels::DELETION_REQUESTER, "deletion_written"))
        .mutating()
}
