//! Reading and writing for a replacement, with the caller's own permissions.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use api::{NonAdminBackup, NonAdminBackupSpec, NonAdminRestore, NonAdminRestoreSpec};
use jiff::Timestamp;
use k8s_openapi::api::{
    authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
    core::v1::{ConfigMap, PersistentVolumeClaim},
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams, Preconditions, PropagationPolicy},
    core::{ApiResource, DynamicObject, ObjectMeta},
};
use planner::replace::{
    Permission, Record,
    objects::{Claim, Workload, WorkloadKind},
    record::{ClaimRef, EXCLUDE_FROM_BACKUP, KEY},
    step::{self, Removal},
};
use serde::de::DeserializeOwned;

use crate::{connect::Session, list::Readable};

/// What is in the namespace.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) claims: Vec<Claim>,
    pub(super) workloads: Vec<Workload>,
}

/// Lists claims and workloads. All of them must be known: what is not seen could use a claim.
pub(super) async fn objects(session: &Session) -> Result<Objects> {
    let claims = session.api::<PersistentVolumeClaim>();
    let listed = claims.list(&ListParams::default()).await.context("listing claims")?;
    let mut found = Objects::default();
    for claim in listed {
        found.claims.push(Claim::read(&serde_json::to_value(claim)?));
    }
    let lists = WorkloadKind::ALL.map(|kind| async move {
        let listed = dynamic(session, kind).list(&ListParams::default()).await;
        let listed = listed.with_context(|| format!("listing {}", kind.resource()))?;
        let read = |object: DynamicObject| anyhow::Ok(Workload::read(kind, &serde_json::to_value(object)?));
        listed.into_iter().map(read).collect::<Result<Vec<_>>>()
    });
    for workloads in futures::future::join_all(lists).await {
        found.workloads.extend(workloads?);
    }
    Ok(found)
}

fn dynamic(session: &Session, kind: WorkloadKind) -> Api<DynamicObject> {
    let (group, version, kind, plural) = kind.names();
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version,
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    };
    Api::namespaced_with(session.client.clone(), &session.namespace, &resource)
}

/// Everything the next step depends on.
pub(super) struct Seen {
    backup: Option<NonAdminBackup>,
    safety_backup: Option<NonAdminBackup>,
    restore: Option<NonAdminRestore>,
    objects: Objects,
}

/// Reads what the next step depends on. The requests are read first: they change after the objects do.
pub(super) async fn see(session: &Session, record: &Record) -> Result<Seen> {
    let safety = async {
        match &record.safety_backup {
            Some(name) => maybe::<NonAdminBackup>(session, name).await,
            None => Ok(None),
        }
    };
    let (backup, safety_backup, restore) =
        tokio::try_join!(maybe(session, &record.backup), safety, maybe(session, &record.restore))?;
    Ok(Seen { backup, safety_backup, restore, objects: objects(session).await? })
}

impl Seen {
    /// As the planner takes it.
    pub(super) fn observed<'a>(&'a self, record: &'a Record) -> step::Observed<'a> {
        step::Observed {
            record,
            backup: self.backup.as_ref(),
            safety_backup: self.safety_backup.as_ref(),
            restore: self.restore.as_ref(),
            claims: &self.objects.claims,
            workloads: &self.objects.workloads,
            now: Timestamp::now(),
        }
    }
}

async fn maybe<K: Readable>(session: &Session, name: &str) -> Result<Option<K>> {
    Ok(session.api::<K>().get_opt(name).await?)
}

/// A record that is kept in the namespace.
#[derive(Debug)]
pub(crate) struct StoredRecord {
    pub(crate) record: Record,
    map: ConfigMap,
}

impl StoredRecord {
    /// The record of a replacement from this backup, if one has begun.
    pub(crate) async fn find(session: &Session, backup: &str) -> Result<Option<Self>> {
        let name = Record::name_for(backup);
        let Some(map) = session.api::<ConfigMap>().get_opt(&name).await? else { return Ok(None) };
        let text = map.data.as_ref().and_then(|data| data.get(KEY));
        let text =
            text.with_context(|| format!("ConfigMap {name} has no {KEY}; delete it to start again"))?;
        let record: Record =
            serde_json::from_str(text).with_context(|| format!("ConfigMap {name} cannot be read"))?;
        if record.backup != backup {
            bail!("ConfigMap {name} is about backup {}", record.backup);
        }
        Ok(Some(Self { record, map }))
    }

    /// Keeps a new one.
    pub(crate) async fn create(session: &Session, record: Record) -> Result<Self> {
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(Record::name_for(&record.backup)),
                labels: Some(BTreeMap::from([(EXCLUDE_FROM_BACKUP.to_owned(), "true".to_owned())])),
                ..ObjectMeta::default()
            },
            data: Some(data(&record)?),
            ..ConfigMap::default()
        };
        let map = session.api::<ConfigMap>().create(&PostParams::default(), &map).await?;
        Ok(Self { record, map })
    }

    /// Writes down that both backups were found to be complete. Another program that runs the same is refused.
    pub(super) async fn checked(&mut self, session: &Session) -> Result<()> {
        let record = Record { checked: true, ..self.record.clone() };
        self.map.data = Some(data(&record)?);
        let name = self.map.metadata.name.clone().unwrap_or_default();
        self.map = session.api::<ConfigMap>().replace(&name, &PostParams::default(), &self.map).await?;
        self.record = record;
        Ok(())
    }

    /// Forgets it.
    pub(super) async fn forget(&self, session: &Session) -> Result<()> {
        let (name, uid) = (self.map.metadata.name.as_deref(), self.map.metadata.uid.as_deref());
        let api = session.api::<ConfigMap>();
        delete(&api, name.unwrap_or_default(), uid.unwrap_or_default(), PropagationPolicy::Background).await
    }
}

fn data(record: &Record) -> Result<BTreeMap<String, String>> {
    Ok(BTreeMap::from([(KEY.to_owned(), serde_json::to_string_pretty(record)?)]))
}

/// Creates the safety backup; that it exists already is fine.
pub(super) async fn create_safety_backup(session: &Session, record: &Record) -> Result<()> {
    let (Some(name), Some(other)) =
        (&record.safety_backup, maybe::<NonAdminBackup>(session, &record.backup).await?)
    else {
        bail!("backup {} is gone", record.backup)
    };
    let backup_spec = planner::replace::safety_spec(&other.spec.backup_spec);
    let backup = NonAdminBackup {
        metadata: ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() },
        spec: NonAdminBackupSpec { backup_spec, delete_backup: None },
        status: None,
    };
    create(session, &backup).await
}

/// Creates the restore; that it exists already is fine.
pub(super) async fn create_restore(session: &Session, record: &Record) -> Result<()> {
    let restore = NonAdminRestore {
        metadata: ObjectMeta { name: Some(record.restore.clone()), ..ObjectMeta::default() },
        spec: NonAdminRestoreSpec { restore_spec: record.restore_spec.clone() },
        status: None,
    };
    create(session, &restore).await
}

async fn create<K: Readable>(session: &Session, object: &K) -> Result<()> {
    match session.api::<K>().create(&PostParams::default(), object).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        made => Ok(made.map(drop)?),
    }
}

/// Removes one object, and no other of its name.
pub(super) async fn remove(session: &Session, removal: &Removal) -> Result<()> {
    match removal {
        Removal::Workload { kind, name, uid, orphan } => {
            let how = if *orphan { PropagationPolicy::Orphan } else { PropagationPolicy::Background };
            delete(&dynamic(session, *kind), name, uid, how).await
        }
        Removal::Claim(ClaimRef { name, uid }) => {
            delete(&session.api::<PersistentVolumeClaim>(), name, uid, PropagationPolicy::Background).await
        }
    }
}

async fn delete<K>(api: &Api<K>, name: &str, uid: &str, how: PropagationPolicy) -> Result<()>
where
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    let params = DeleteParams {
        propagation_policy: Some(how),
        preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
        ..DeleteParams::default()
    };
    match api.delete(name, &params).await {
        // It is gone, or it is another one now.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        answer => Ok(answer.map(drop)?),
    }
}

/// Those of the needed permissions that the caller does not have.
pub(super) async fn missing_permissions(session: &Session, needed: &[Permission]) -> Result<Vec<String>> {
    let reviews = Api::<SelfSubjectAccessReview>::all(session.client.clone());
    let mut missing = Vec::new();
    for (verb, group, resource) in needed {
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    namespace: Some(session.namespace.clone()),
                    verb: Some((*verb).to_owned()),
                    group: Some((*group).to_owned()),
                    resource: Some((*resource).to_owned()),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let answer = reviews.create(&PostParams::default(), &review).await?;
        if !answer.status.is_some_and(|status| status.allowed) {
            let dot = if group.is_empty() { "" } else { "." };
            missing.push(format!("{verb} {resource}{dot}{group}"));
        }
    }
    Ok(missing)
}
