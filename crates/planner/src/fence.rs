//! What never goes into a tenant's backup and never comes out of one.

use api::Kind;

/// Kinds of OADP's own group, by which tenants ask and administrators decide. A backup that held them could bring
/// back a request, or a status that nobody but nacre may write.
const OADP_PLURALS: [&str; 3] = ["dataprotectionapplications", "dataprotectiontests", "cloudstorages"];

/// A live migration is a verb in the shape of an object: bringing one back would start it again.
const MIGRATIONS: &str = "virtualmachineinstancemigrations.kubevirt.io";

/// Resources inside a namespace that are always left out of a backup, as group-resources.
pub(crate) fn namespaced_out_of_backups() -> Vec<String> {
    let mut out = own_kinds();
    // In a tenant namespace these are copies, which are generated again.
    out.extend(veleros_kinds());
    out.push(MIGRATIONS.to_owned());
    out
}

/// Cluster-scoped resources that are always left out of a backup.
pub(crate) fn cluster_scoped_out_of_backups() -> Vec<String> {
    [
        "securitycontextconstraints",
        "clusterroles",
        "clusterrolebindings",
        "priorityclasses",
        "customresourcedefinitions",
        "virtualmachineclusterinstancetypes",
        "virtualmachineclusterpreferences",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Resources that are always left out of a restore, as group-resources.
pub(crate) fn out_of_restores() -> Vec<String> {
    let mut out = own_kinds();
    out.extend(veleros_kinds());
    // Whatever else these groups have or will have; Velero takes patterns.
    out.extend([Kind::NonAdminBackup, Kind::Backup].map(|kind| format!("*.{}", kind.group())));
    out.push(MIGRATIONS.to_owned());
    out.push("volumesnapshotclasses".to_owned());
    // The namespace exists: its labels and annotations are an administrator's, not the backup's.
    out.push("namespaces".to_owned());
    out
}

fn veleros_kinds() -> impl Iterator<Item = String> {
    let known = Kind::ALL.iter().filter(|kind| kind.group() == Kind::Backup.group());
    let rest = ["backuprepositories", "volumesnapshotlocations"];
    let rest = rest.map(|plural| format!("{plural}.{}", Kind::Backup.group()));
    known.map(|kind| kind.group_resource()).chain(rest)
}

fn own_kinds() -> Vec<String> {
    let group = Kind::NonAdminBackup.group();
    let tenants = Kind::ALL.iter().filter(|kind| kind.group() == group).map(|kind| kind.group_resource());
    let others = OADP_PLURALS.map(|plural| format!("{plural}.{group}"));
    let mut kinds: Vec<_> = tenants.chain(others).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

#[cfg(test)]
mod tests {
    /// What is deliberately not brought back is in the user guide, by name or by group.
    #[test]
    fn the_user_guide_lists_what_does_not_come_back_and_what_does() {
        let guide = include_str!("../../../docs/user-guide.md");
        let reported = |name: &str| {
            let group = name.split_once('.').map(|(_, group)| format!("`*.{group}`"));
            guide.contains(&format!("`{name}`")) || group.is_some_and(|group| guide.contains(&group))
        };
        let policy = crate::Policy::default().restore;
        let away = super::out_of_restores().into_iter().chain(policy.excluded_from_platform_storage);
        for name in away.chain(policy.from_tenant_storage.allowed_resources) {
            assert!(reported(&name), "{name} is not in the user guide");
        }
        assert!(!reported("pods") && !reported("configmaps.example.com"), "anything would be found");
    }

    #[test]
    fn our_whole_group_velero_and_migrations_are_fenced_off() {
        let backup = super::namespaced_out_of_backups();
        let restore = super::out_of_restores();
        for own in [
            "nonadminbackups",
            // One that came back would make backups that nobody asked for.
            "nonadminschedules",
            "nonadmindownloadrequests",
            "nonadminbackupstoragelocationrequests",
        ] {
            let own = format!("{own}.oadp.openshift.io");
            assert!(backup.contains(&own) && restore.contains(&own), "{own}");
        }
        let migrations = "virtualmachineinstancemigrations.kubevirt.io".to_owned();
        assert!(backup.contains(&migrations) && restore.contains(&migrations));
        assert!(restore.contains(&"deletebackuprequests.velero.io".to_owned()));
        assert!(restore.contains(&"datauploads.velero.io".to_owned()));
    }
}
