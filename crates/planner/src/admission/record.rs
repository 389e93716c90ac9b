//! The API server records who asked, on creation and where what is asked for changes. Whoever changes what is asked for
//! becomes the requester: otherwise one person could act as another.

use api::{Kind, labels};
use k8s_openapi::api::admissionregistration::v1::{MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding};

use super::requester::{NAME, NAME_WITH_LIST, VELERO_VIEW, described, list};
use crate::install::TENANT_KINDS;
use crate::vap::{self, Draft};

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
            "variables.{news} ? (variables.{record}_of_some_list ? '' : variables.requester) : \
             (variables.{record} == '' ? variables.old_{record} : '')"
        )
    };
    described(Draft::over(NAME, &["CREATE", "UPDATE"], &over), namespace)
        .with("written", wanted("record", "news"))
        .with("deletion_written", wanted("deletion_record", "deletion_news"))
        .applying(write(labels::REQUESTER, "written"))
        .applying(write(labels::DELETION_REQUESTER, "deletion_written"))
        .mutating()
}

/// The binding that knows which extra fields are recorded.
pub(super) fn with_list(namespace: &str) -> MutatingAdmissionPolicyBinding {
    let mut binding = vap::mutating_binding(NAME, Some(list(namespace)));
    binding.metadata.name = Some(NAME_WITH_LIST.to_owned());
    binding
}
