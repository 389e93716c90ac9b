//! What a backup saves and no restore would bring back. It is reported when the backup is requested, not on the day of the
//! loss.

use api::velero::BackupSpec;

use crate::Policy;

const IN_PODS: &str = "volume data that is saved from inside pods could NOT be restored, since pods do not come back from \
                       your own storage in this cluster. What to do: use the cluster's own storage, or \
                       --snapshot-move-data where the claims' driver takes snapshots, or ask the administrators to allow \
                       pods (restore.fromTenantStorage.pods)";

/// What could not be restored of a backup for which Velero is given this spec, by the policy as it is now.
pub fn not_restorable(given: &BackupSpec, policy: &Policy) -> Option<&'static str> {
    let from_pods = given.default_volumes_to_fs_backup == Some(true);
    let stays_away = !policy.restore.from_tenant_storage.pods_come_back();
    (given.storage_location.is_some() && from_pods && stays_away).then_some(IN_PODS)
}

#[cfg(test)]
mod tests {
    use api::velero::BackupSpec;

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
        let moved = BackupSpec { default_volumes_to_fs_backup: None, ..own.clone() };
        assert_eq!(not_restorable(&moved, &policy), None);
        policy.restore.from_tenant_storage.pods = TenantPods::Baseline;
        assert_eq!(not_restorable(&own, &policy), None);
    }
}
