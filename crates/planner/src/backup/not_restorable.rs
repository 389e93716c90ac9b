//! What a backup saves and no restore would bring back. It is reported when the backup is requested, not on the day of the
//! loss.

use api::velero::BackupSpec;

use crate::Policy;
use crate::policy::{FromTenantStorage, never_from_tenants};
use crate::restore::from_tenants::never_restored;

/// How many resources are named.
const ENOUGH: usize = 5;

const IN_PODS: &str = "volume data that is saved from inside pods could NOT be restored, since pods do not come back from \
                       your own storage in this cluster. What to do: use the cluster's own storage, or \
                       --snapshot-move-data where the claims' driver takes snapshots, or ask the administrators to allow \
                       pods (restore.fromTenantStorage.pods)";

const IN_THE_CLUSTER: &str = "snapshots that stay in the cluster (snapshotVolumes: true without snapshotMoveData) could \
                              NOT be restored from a backup in your own storage. What to do: use --snapshot-move-data, \
                              or the cluster's own storage";

/// What could not be restored of a backup for which Velero is given this spec, by the policy as it is now.
pub fn not_restorable(given: &BackupSpec, policy: &Policy) -> Option<String> {
    given.storage_location.as_ref()?;
    // nacre does not read pods, so it does not know of volumes that a pod's annotation names.
    let from_pods = given.default_volumes_to_fs_backup == Some(true);
    let stays_away = !policy.restore.from_tenant_storage.pods_come_back();
    let stays_here = given.snapshot_volumes == Some(true) && given.snapshot_move_data != Some(true);
    let lost = [(from_pods && stays_away, IN_PODS), (stays_here, IN_THE_CLUSTER)];
    let lost = lost.into_iter().filter(|(is, _)| *is).map(|(_, words)| words.to_owned());
    let lost: Vec<_> = lost.chain(resources(given, &policy.restore.from_tenant_storage)).collect();
    (!lost.is_empty()).then(|| lost.join(". And "))
}

/// Resources that the backup asks for by name and that stay away from restores. One that asks for everything knows nothing
/// of what there is.
fn resources(given: &BackupSpec, policy: &FromTenantStorage) -> Option<String> {
    let lists = [&given.included_resources, &given.included_namespace_scoped_resources];
    let named: Vec<_> = lists.into_iter().flatten().flatten().map(String::as_str).collect();
    let lost = never_restored(&named, policy);
    let mut shown = lost.iter().take(ENOUGH).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    if lost.len() > ENOUGH {
        shown = format!("{shown} and {} more", lost.len() - ENOUGH);
    }
    let may_be_allowed = lost.iter().any(|name| never_from_tenants(name).is_none());
    let ask = if may_be_allowed {
        ", or ask the administrators to allow them (restore.fromTenantStorage.allowedResources)"
    } else {
        ""
    };
    (!lost.is_empty()).then(|| {
        format!(
            "{shown} could NOT be restored, since nothing of that kind comes back from your own storage in this cluster. \
             What to do: use the cluster's own storage, from which more comes back{ask}"
        )
    })
}

#[cfg(test)]
mod tests {
    use api::velero::BackupSpec;
    use serde_json::json;

    use super::not_restorable;
    use crate::Policy;
    use crate::policy::TenantPods;

    #[test]
    fn volumes_in_own_storage_need_their_pods_back() {
        let own = BackupSpec {
            storage_location: Some("mine".to_owned()),
            default_volumes_to_fs_backup: Some(true),
            ..BackupSpec::default()
        };
        let mut policy = Policy::default();
        assert!(not_restorable(&own, &policy).is_some());
        let platform = BackupSpec { storage_location: None, ..own.clone() };
        assert_eq!(not_restorable(&platform, &policy), None);
        policy.restore.from_tenant_storage.pods = TenantPods::Baseline;
        assert_eq!(not_restorable(&own, &policy), None);
    }

    #[test]
    fn resources_that_do_not_come_back_from_own_storage_are_named() {
        let lost = |included: &[&str], scoped: &[&str], policy: &Policy| {
            let spec = json!({
                "storageLocation": "mine",
                "includedResources": included, "includedNamespaceScopedResources": scoped,
            });
            not_restorable(&serde_json::from_value(spec).unwrap(), policy)
        };
        let mut policy = Policy::default();
        assert_eq!(lost(&[], &[], &policy), None, "what is in the namespace is not known");
        assert_eq!(lost(&["*", "cm", "Secret", "deploy", "pv", "{roles,cm}"], &["pvc"], &policy), None);
        let roles = lost(&["cm", "rolebindings"], &[], &policy).unwrap_or_default();
        assert!(
            roles.starts_with("\"rolebindings\" could NOT be restored") && !roles.contains("ask"),
            "{roles}"
        );
        let widgets = lost(&[], &["widgets.example.com"], &policy).unwrap_or_default();
        assert!(
            widgets.contains("\"widgets.example.com\"") && widgets.contains("allowedResources"),
            "{widgets}"
        );
        policy.restore.from_tenant_storage.allowed_resources.push("widgets.example.com".to_owned());
        assert_eq!(lost(&[], &["widgets.example.com"], &policy), None);
        let many = ["a.b", "c.d", "e.f", "g.h", "i.j", "k.l", "m.n"];
        let many = lost(&many, &[], &policy).unwrap_or_default();
        assert!(many.contains("\"i.j\" and 2 more could NOT") && !many.contains("k.l"), "{many}");
        let pods = lost(&["pods"], &[], &policy).unwrap_or_default();
        assert!(pods.starts_with("\"pods\" could NOT be restored"), "{pods}");
        policy.restore.from_tenant_storage.pods = TenantPods::Baseline;
        assert_eq!(lost(&["pods"], &[], &policy), None);
        let platform: BackupSpec = serde_json::from_value(json!({"includedResources": ["roles"]})).unwrap();
        assert_eq!(not_restorable(&platform, &policy), None);
    }

    #[test]
    fn snapshots_that_stay_in_the_cluster_do_not_come_back_from_own_storage() {
        let own = BackupSpec {
            storage_location: Some("mine".to_owned()),
            snapshot_volumes: Some(true),
            ..BackupSpec::default()
        };
        let mut policy = Policy::default();
        policy.restore.from_tenant_storage.pods = TenantPods::Baseline;
        let lost = not_restorable(&own, &policy).unwrap_or_default();
        assert!(lost.starts_with("snapshots that stay in the cluster"), "{lost}");
        let moved = BackupSpec { snapshot_move_data: Some(true), ..own.clone() };
        assert_eq!(not_restorable(&moved, &policy), None);
        let platform = BackupSpec { storage_location: None, ..own.clone() };
        assert_eq!(not_restorable(&platform, &policy), None);
        policy.restore.from_tenant_storage.pods = TenantPods::None;
        let both = BackupSpec { default_volumes_to_fs_backup: Some(true), ..own };
        let lost = not_restorable(&both, &policy).unwrap_or_default();
        assert!(lost.contains("inside pods") && lost.contains(". And snapshots that stay"), "{lost}");
    }
}
