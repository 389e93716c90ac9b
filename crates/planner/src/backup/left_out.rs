//! Claims whose data was left out of a backup on purpose.

use api::velero::{Backup, BackupSpec};
use api::{Claim, ClaimState, ClaimStatus, labels};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};

use super::Observed;
use super::data_protected::status;
use super::generate::filled;
use crate::ownership::label;

/// How resources can be named in Velero's filters.
pub(super) const CLAIMS: [&str; 3] = ["persistentvolumeclaims", "persistentvolumeclaim", "pvc"];
pub(super) const PODS: [&str; 3] = ["pods", "pod", "po"];

/// The claim's status if its data was left out on purpose: by the claim's label, by a filter, or because there is no data.
pub(super) fn on_purpose(velero: &Backup, claim: &Claim) -> Option<ClaimStatus> {
    let message = if label(&claim.metadata, labels::EXCLUDE_FROM_BACKUP) == Some("true") {
        format!("the claim has the label {}=true", labels::EXCLUDE_FROM_BACKUP)
    } else if claim.spec.volume_name.is_none() {
        "the claim has no volume yet, so there is no data".to_owned()
    } else {
        let field = filtered(&velero.spec, &CLAIMS).or_else(|| unselected(&velero.spec, claim))?;
        format!("{field} of the backup leaves the claim out")
    };
    let name = claim.metadata.name.clone().unwrap_or_default();
    Some(status(name, ClaimState::LeftOut, Some(message)))
}

/// The field by which the request or the administrators switch volumes off. Velero fills in its own defaults later: those
/// are nobody's purpose. Where one way to save volumes is off and the other is on, volumes are meant to be saved.
pub(super) fn switched_off(seen: &Observed, velero: &Backup) -> Option<&'static str> {
    let request = &seen.spec().backup_spec;
    let asked = seen.policy.as_deref().map_or_else(|| request.clone(), |policy| filled(request, policy));
    let fields = [
        ("snapshotVolumes", asked.snapshot_volumes, velero.spec.snapshot_volumes),
        (
            "defaultVolumesToFsBackup",
            asked.default_volumes_to_fs_backup,
            velero.spec.default_volumes_to_fs_backup,
        ),
    ];
    if fields.iter().any(|(_, asked, given)| *asked == Some(true) || *given == Some(true)) {
        return None;
    }
    let off =
        |(_, asked, given): &&(_, Option<bool>, Option<bool>)| *asked == Some(false) && *given == *asked;
    fields.iter().find(off).map(|(name, ..)| *name)
}

/// The filter by which resources of this name are left out, if there is one.
pub(super) fn filtered(spec: &BackupSpec, names: &[&str]) -> Option<&'static str> {
    let lists = [
        ("includedResources", &spec.included_resources, true),
        ("excludedResources", &spec.excluded_resources, false),
        ("includedNamespaceScopedResources", &spec.included_namespace_scoped_resources, true),
        ("excludedNamespaceScopedResources", &spec.excluded_namespace_scoped_resources, false),
    ];
    let leaves_out = |list: &[String], included: bool| {
        let is_listed =
            list.iter().any(|name| name == "*" || names.iter().any(|own| name.eq_ignore_ascii_case(own)));
        !list.is_empty() && is_listed != included
    };
    let given =
        lists.into_iter().filter_map(|(field, list, included)| Some((field, list.as_deref()?, included)));
    given.into_iter().find(|(_, list, included)| leaves_out(list, *included)).map(|(field, ..)| field)
}

/// The selector by which a claim is left out, if there is one.
fn unselected(spec: &BackupSpec, claim: &Claim) -> Option<&'static str> {
    let labels = claim.metadata.labels.clone().unwrap_or_default();
    let selects = |selector: &LabelSelector| {
        // Velero rejects a selector that cannot be read.
        Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(&labels))
    };
    if spec.label_selector.as_ref().is_some_and(|selector| !selects(selector)) {
        return Some("labelSelector");
    }
    let several = spec.or_label_selectors.as_deref().unwrap_or_default();
    (!several.is_empty() && !several.iter().any(selects)).then_some("orLabelSelectors")
}
