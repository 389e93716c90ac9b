//! Reading what a preview needs: Velero's files of the backup, and what exists in the namespace.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use api::{NonAdminBackup, velero::RestoreSpec};
use futures::{FutureExt as _, StreamExt as _, stream};
use kube::{
    Api,
    api::ListParams,
    core::{ApiResource, DynamicObject},
};
use planner::{
    Policy,
    replace::objects::WorkloadKind,
    requester::{Foretold, Wish},
    restore_preview::{
        self, CLAIMS, Contents, Existing, Item, Observed, Preview, SavedClaim, read_list, saved_by_status,
    },
    served::Served,
};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    connect::Session,
    download::{Fetching, contents, logs::whole},
    explain::RestoreVerdict,
    list, resources, whoami,
};

/// How many resources are listed at a time.
const LISTS_AT_A_TIME: usize = 8;

/// What is known of a backup by the files that Velero keeps of it.
#[derive(Debug, Default)]
pub(in crate::restore) struct BackupFiles {
    /// The objects in it; none if the list cannot be downloaded.
    pub(in crate::restore) items: Option<Vec<Item>>,
    /// How many more there are.
    pub(in crate::restore) not_listed: u64,
    /// The objects themselves; none if they cannot be downloaded.
    pub(in crate::restore) contents: Option<Contents>,
    /// What is known about the data of its claims.
    pub(in crate::restore) saved: BTreeMap<String, SavedClaim>,
    /// What could not be read.
    pub(in crate::restore) unknown: Vec<String>,
}

/// Everything a preview reads.
#[derive(Debug)]
pub(in crate::restore) struct Gathered {
    pub(in crate::restore) files: BackupFiles,
    pub(in crate::restore) existing: BTreeMap<String, Existing>,
    served: Vec<Served>,
    namespace: String,
    requested: RestoreSpec,
    spec: RestoreSpec,
    policy: std::sync::Arc<Policy>,
    from_tenant_storage: bool,
    pub(in crate::restore) foretold: Foretold,
}

/// Reads what a preview needs; none if somebody pressed Ctrl-C.
pub(in crate::restore) async fn gather(
    session: &Session,
    backup: &str,
    verdict: &RestoreVerdict,
    requested: &RestoreSpec,
    fetching: &Fetching,
) -> Result<Option<Gathered>> {
    let (found, _) = list::one::<NonAdminBackup>(session, backup).await?;
    let served =
        resources::served(session).await.context("the cluster does not say which resources it serves")?;
    let Some(files) = BackupFiles::fetch(session, &found, fetching).await? else { return Ok(None) };
    let in_backup = files.resources(&served, &session.namespace);
    let existing = existing(session, &files, in_backup.as_ref(), &served).await?;
    // What would be refused is shown as if it passed without a policy: the objects are the same.
    let spec = verdict.spec.clone().unwrap_or_else(|| requested.clone());
    let from_tenant_storage = found.spec.backup_spec.storage_location.is_some();
    let wish = Wish::Restore(requested, &spec, !from_tenant_storage, in_backup.as_ref());
    let foretold = whoami::foretell(session, &served, wish, &verdict.policy).await?;
    Ok(Some(Gathered {
        files,
        existing,
        served,
        namespace: session.namespace.clone(),
        requested: requested.clone(),
        spec,
        policy: verdict.policy.clone(),
        from_tenant_storage,
        foretold,
    }))
}

impl Gathered {
    /// What the restore would do if these objects were removed first.
    pub(in crate::restore) fn preview(&self, removed_first: &[(String, String)]) -> Preview {
        restore_preview::preview(&self.observed(&removed_first.iter().cloned().collect()))
    }

    /// Resources of workloads and claims that the restore leaves out, and by which rule.
    pub(in crate::restore) fn left_out(&self) -> BTreeMap<String, String> {
        let nothing = BTreeSet::new();
        let seen = self.observed(&nothing);
        let resources = WorkloadKind::ALL.iter().map(|kind| kind.resource()).chain([CLAIMS.to_owned()]);
        let read = resources.filter_map(|resource| {
            let by = restore_preview::resource_left_out(&seen, &resource)?;
            Some((resource, by.to_string()))
        });
        read.collect()
    }

    fn observed<'a>(&'a self, removed_first: &'a BTreeSet<(String, String)>) -> Observed<'a> {
        Observed {
            namespace: &self.namespace,
            requested: &self.requested,
            spec: &self.spec,
            policy: &self.policy,
            from_tenant_storage: self.from_tenant_storage,
            not_permitted: &self.foretold.left_out,
            items: self.files.items.as_deref().unwrap_or_default(),
            served: &self.served,
            existing: &self.existing,
            contents: self.files.contents.as_ref(),
            removed_first,
            saved: &self.files.saved,
        }
    }
}

impl BackupFiles {
    /// The resources of which the backup has objects in this namespace; none if that is not known.
    fn resources(&self, served: &[Served], namespace: &str) -> Option<BTreeSet<String>> {
        let items = self.items.iter().flatten().filter(|item| item.namespace.as_deref() == Some(namespace));
        let kinds: BTreeSet<(&str, &str)> = items
            .map(|item| (item.api_version.split_once('/').map_or("", |(group, _)| group), item.kind.as_str()))
            .collect();
        let is_in = |one: &&Served| kinds.contains(&(one.group.as_str(), one.kind.as_str()));
        self.items.as_ref().map(|_| served.iter().filter(is_in).map(Served::name).collect())
    }

    /// Downloads what may be downloaded; none if somebody pressed Ctrl-C.
    async fn fetch(session: &Session, backup: &NonAdminBackup, by: &Fetching) -> Result<Option<Self>> {
        let name = backup.metadata.name.as_deref().unwrap_or_default();
        let mut files = Self { saved: saved_by_status(backup), ..Self::default() };
        match by.objects(session, name).await {
            Ok(None) => return Ok(None),
            Ok(Some(objects)) => {
                files.items = Some(read_list(&objects.names));
                files.not_listed = u64::from(objects.not_listed);
                if objects.not_listed > 0 {
                    files.unknown.push(format!("{} more objects are in the backup", objects.not_listed));
                }
            }
            Err(why) => {
                // Whoever may not have the list may not have the rest.
                files.unknown.push(why.to_string());
                return Ok(Some(files));
            }
        }
        let read = async |link| contents::objects(link, &session.namespace).await;
        match by.with_link(session, "BackupContents", name, read).await {
            Ok(None) => return Ok(None),
            Ok(Some(contents)) => files.contents = Some(contents),
            Err(why) => files.unknown.push(format!("{why}; so differences and labels are not known")),
        }
        if files.contents.is_some() && files.saved.is_empty() {
            match by.with_link(session, "BackupVolumeInfos", name, whole).await {
                Ok(None) => return Ok(None),
                Ok(Some(bytes)) => {
                    files.saved = saved_by_infos(&bytes, &session.namespace).unwrap_or_default();
                }
                // The claims are shown without it.
                Err(_) => {}
            }
        }
        Ok(Some(files))
    }
}

/// One volume in Velero's file about them.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VolumeInfo {
    pvc_name: String,
    pvc_namespace: String,
    skipped: bool,
    skipped_reason: String,
    result: String,
    snapshot_data_movement_info: Option<DataSize>,
    pvb_info: Option<DataSize>,
    csi_snapshot_info: Option<DataSize>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DataSize {
    size: u64,
}

fn saved_by_infos(bytes: &[u8], namespace: &str) -> Option<BTreeMap<String, SavedClaim>> {
    let infos: Vec<VolumeInfo> = serde_json::from_slice(bytes).ok()?;
    let own = infos.into_iter().filter(|info| info.pvc_namespace == namespace && !info.pvc_name.is_empty());
    let read = own.map(|info| {
        let sizes = [&info.snapshot_data_movement_info, &info.pvb_info, &info.csi_snapshot_info];
        let size = sizes.into_iter().flatten().map(|sized| sized.size).find(|size| *size > 0);
        let saved = if info.skipped {
            SavedClaim::NotSaved(info.skipped_reason)
        } else if info.result == "failed" {
            SavedClaim::NotSaved("saving it failed".to_owned())
        } else {
            SavedClaim::Saved(size)
        };
        (info.pvc_name, saved)
    });
    Some(read.collect())
}

/// Lists what exists of each resource that is in the backup, with the caller's own permissions.
async fn existing(
    session: &Session,
    files: &BackupFiles,
    in_backup: Option<&BTreeSet<String>>,
    served: &[Served],
) -> Result<BTreeMap<String, Existing>> {
    let is_in_backup = |name: &String| in_backup.is_some_and(|all| all.contains(name));
    let wanted = |one: &&Served| one.is_for_backups() && (is_in_backup(&one.name()) || one.name() == CLAIMS);
    let whole = files.contents.is_some();
    // Boxed, so that a server can wait for them as well as a command does.
    let mut lists = Vec::new();
    for one in served.iter().filter(wanted) {
        lists.push(async move { anyhow::Ok((one.name(), listed(session, one, whole).await?)) }.boxed());
    }
    let found: Vec<_> = stream::iter(lists).buffer_unordered(LISTS_AT_A_TIME).collect().await;
    found.into_iter().collect()
}

async fn listed(session: &Session, served: &Served, whole: bool) -> Result<Existing> {
    let resource = ApiResource {
        group: served.group.clone(),
        version: served.version.clone(),
        api_version: served.api_version(),
        kind: served.kind.clone(),
        plural: served.plural.clone(),
    };
    let api: Api<DynamicObject> = Api::namespaced_with(session.client.clone(), &session.namespace, &resource);
    let all = ListParams::default();
    let named = if whole {
        let read = |object: DynamicObject| -> kube::Result<(String, Option<Value>)> {
            let name = object.metadata.name.clone().unwrap_or_default();
            Ok((name, Some(serde_json::to_value(&object).map_err(kube::Error::SerdeError)?)))
        };
        api.list(&all).await.and_then(|list| list.items.into_iter().map(read).collect())
    } else {
        let list = api.list_metadata(&all).await;
        list.map(|list| {
            list.items.into_iter().map(|object| (object.metadata.name.unwrap_or_default(), None)).collect()
        })
    };
    match named {
        Ok(named) => Ok(Existing::Listed(named)),
        Err(kube::Error::Api(status)) if status.is_forbidden() => {
            Ok(Existing::NotAllowed(format!("you may not list {}", served.name())))
        }
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405) => {
            Ok(Existing::NotAllowed(format!("{} cannot be listed", served.name())))
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volume_infos_say_what_is_saved_and_how_large_it_is() {
        let infos = br#"[
            {"pvcName": "data", "pvcNamespace": "shop", "backupMethod": "PodVolumeBackup", "result": "succeeded", "pvbInfo": {"size": 8192}},
            {"pvcName": "cache", "pvcNamespace": "shop", "skipped": true, "skippedReason": "not opted in"},
            {"pvcName": "bad", "pvcNamespace": "shop", "result": "failed"},
            {"pvcName": "data", "pvcNamespace": "other", "result": "succeeded"}]"#;
        let saved = saved_by_infos(infos, "shop").unwrap();
        assert_eq!(saved["data"], SavedClaim::Saved(Some(8192)));
        assert_eq!(saved["cache"], SavedClaim::NotSaved("not opted in".to_owned()));
        assert!(matches!(saved["bad"], SavedClaim::NotSaved(_)));
        assert_eq!(saved.len(), 3);
    }
}
