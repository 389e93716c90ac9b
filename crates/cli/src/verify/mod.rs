//! `verify`: one round for an administrator after installing. A volume with random bytes is backed up, lost, restored
//! and compared, in a scratch namespace that goes again.

mod objects;
mod report;
mod volume;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use api::NonAdminBackup;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, LogParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use planner::{Policy, install::CONTROLLER};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::sleep;

use self::objects::{NAME, Settings};
use self::report::Report;
use self::volume::Content;
use crate::{
    allowed::{self, Allowed, Source},
    connect::Session,
    interrupt::interrupted,
    live::{self, ShowsProgress},
    output::Outcome,
    send::{duration, random},
};

pub(crate) use volume::{Volume, run as volume};

const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// Even where steps shall be short: a namespace takes its time to go.
const CLEAN_UP: Duration = Duration::from_mins(2);

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre verify
  kubectl nacre verify -n backup                   where Velero is in namespace backup
  kubectl nacre verify --storage-class fast --timeout 10m
  kubectl nacre verify -o json | jq .ok

Creates a namespace nacre-verify-..., and in it a pod with a volume of random bytes. The volume is backed up file by file,
deleted, restored and compared. Then the backup with its data and the namespace are deleted.
Exit code 1 if a step failed; --keep leaves everything for a look at what is wrong.")]
pub(crate) struct Verify {
    /// The image of the pod. It has to contain kubectl-nacre. Default: the image of the installed controller.
    #[arg(long)]
    image: Option<String>,

    /// The StorageClass of the volume. Default: the cluster's.
    #[arg(long, value_name = "NAME")]
    storage_class: Option<String>,

    /// How long each step may take.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5m")]
    timeout: Duration,

    /// Delete nothing afterwards.
    #[arg(long)]
    keep: bool,
}

/// One round: where it happens, and how long a step may take.
struct Round<'a> {
    session: &'a Session,
    settings: Settings,
    timeout: Duration,
}

/// Does the round, with Velero in the given namespace, or where it is said to be.
pub(crate) async fn run(session: &Session, args: &Verify, given: Option<&str>) -> Result<Outcome> {
    let velero_namespace = given.unwrap_or(&session.velero_namespace).to_owned();
    let settings = Settings {
        image: match &args.image {
            Some(image) => image.clone(),
            None => installed_image(session, &velero_namespace).await?,
        },
        storage_class: args.storage_class.clone(),
        chooses_user: is_openshift(session).await?,
    };
    let namespace = format!("nacre-verify-{}", random());
    let scratch = Session { velero_namespace, ..session.within(&namespace) };
    let mut round = Round { session: &scratch, settings, timeout: args.timeout };
    let mut report = Report::new(session.format, &namespace);
    let is_interrupted = tokio::select! {
        ended = round.steps(&mut report) => { ended?; false }
        () = interrupted() => true,
    };
    if args.keep {
        report.note(Instant::now(), Ok(format!("kept namespace {namespace}; delete it when done")))?;
    } else {
        round.timeout = round.timeout.max(CLEAN_UP);
        let began = Instant::now();
        report.note(began, round.clean_up().await)?;
    }
    if is_interrupted {
        return Ok(Outcome::Interrupted);
    }
    report.finish()?;
    Ok(if report.is_ok() { Outcome::Good } else { Outcome::Failed })
}

/// The image that the cluster has already pulled.
async fn installed_image(session: &Session, namespace: &str) -> Result<String> {
    let deployments = Api::<Deployment>::namespaced(session.client.clone(), namespace);
    let found = deployments.get_opt(CONTROLLER).await?;
    let found = found.with_context(|| {
        format!("nacre is not installed in namespace {namespace}: there is no Deployment {CONTROLLER}; -n is the namespace of Velero")
    })?;
    let containers = found.spec.and_then(|spec| spec.template.spec).map(|pod| pod.containers);
    let image = containers.unwrap_or_default().into_iter().find_map(|container| container.image);
    image.with_context(|| format!("Deployment {CONTROLLER} has no image; --image names one"))
}

async fn is_openshift(session: &Session) -> Result<bool> {
    let groups = session.client.list_api_groups().await?.groups;
    Ok(groups.iter().any(|group| group.name == "security.openshift.io"))
}

impl Round<'_> {
    /// Each step, until one fails.
    async fn steps(&self, report: &mut Report) -> Result<()> {
        let began = Instant::now();
        if !report.note(began, self.create_namespace().await)? {
            return Ok(());
        }
        let began = Instant::now();
        let written = self.start_workload().await;
        let checksum = written.as_ref().ok().cloned().unwrap_or_default();
        let wrote = written.map(|_| "started a pod and wrote 8 MiB of random bytes to its volume".to_owned());
        if !report.note(began, wrote)? {
            return Ok(());
        }
        let began = Instant::now();
        if !report.note(began, self.back_up().await)? {
            return Ok(());
        }
        let began = Instant::now();
        if !report.note(began, self.lose().await)? {
            return Ok(());
        }
        let began = Instant::now();
        if !report.note(began, self.request(&objects::restore()?, "restored").await)? {
            return Ok(());
        }
        let began = Instant::now();
        report.note(began, self.compare(&checksum).await)?;
        Ok(())
    }

    async fn create_namespace(&self) -> Result<String> {
        let name = &self.session.namespace;
        let namespaces = Api::<Namespace>::all(self.session.client.clone());
        namespaces.create(&PostParams::default(), &objects::namespace(name)?).await?;
        Ok(format!("created namespace {name}"))
    }

    /// Starts the pod, and returns the checksum of what it wrote.
    async fn start_workload(&self) -> Result<String> {
        let claims = self.session.api::<PersistentVolumeClaim>();
        claims.create(&PostParams::default(), &objects::claim(&self.settings)?).await?;
        let pod = objects::pod(&self.settings)?;
        // In a new namespace the service account of pods appears a moment later.
        let pods = self.session.api::<Pod>();
        self.until("the pod to be created", async || {
            pods.create(&PostParams::default(), &pod).await.map_err(Into::into)
        })
        .await?;
        match self.content().await? {
            Content::Wrote(checksum) => Ok(checksum),
            Content::Found(_) => bail!("the new volume was not empty"),
        }
    }

    async fn back_up(&self) -> Result<String> {
        let policy = self.policy().await?;
        self.request(&objects::backup(policy.as_deref())?, "backed up").await
    }

    /// What holds in the namespace; none if that is not for the caller to read, or only nacre knows it.
    async fn policy(&self) -> Result<Option<Arc<Policy>>> {
        let namespace = allowed::namespace(self.session).await;
        let Allowed { source, policy, .. } = allowed::read(self.session, &namespace, None).await?;
        Ok(policy.filter(|_| source != Source::Unreadable))
    }

    /// Sends a request, and waits until Velero has done it.
    async fn request<K>(&self, object: &K, done: &str) -> Result<String>
    where
        K: ShowsProgress + Resource<DynamicType = ()>,
    {
        self.session.api::<K>().create(&PostParams::default(), object).await?;
        let (outcome, last) = live::follow::<K>(self.session, NAME, Some(self.timeout)).await?;
        let sentence = last.map(|last| last.moment().sentence).unwrap_or_default();
        match outcome {
            Outcome::Good => Ok(format!("{done}: {sentence}")),
            Outcome::Late => bail!("{} was not done in time", K::NOUN),
            _ => bail!("{}: {sentence}", K::NOUN),
        }
    }

    /// Deletes pod and claim.
    async fn lose(&self) -> Result<String> {
        self.session.api::<Pod>().delete(NAME, &DeleteParams::default()).await?;
        self.session.api::<PersistentVolumeClaim>().delete(NAME, &DeleteParams::default()).await?;
        self.gone::<Pod>(&self.session.api(), "pod", NAME).await?;
        self.gone::<PersistentVolumeClaim>(&self.session.api(), "claim", NAME).await?;
        Ok("deleted the pod and its volume".to_owned())
    }

    async fn compare(&self, checksum: &str) -> Result<String> {
        match self.content().await? {
            Content::Found(found) if found == checksum => {
                Ok(format!("the volume has the same bytes as before: sha256 {checksum}"))
            }
            Content::Found(found) => {
                bail!("the volume has other bytes: sha256 {found} instead of {checksum}")
            }
            Content::Wrote(_) => bail!("the volume came back empty"),
        }
    }

    /// Deletes the backup with its data, and the namespace. What is not there need not go.
    async fn clean_up(&self) -> Result<String> {
        let change = Patch::Merge(json!({ "spec": { "deleteBackup": true } }));
        let backups = self.session.api::<NonAdminBackup>();
        match backups.patch(NAME, &PatchParams::default(), &change).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            patched => {
                patched?;
                let outcome =
                    live::until_gone::<NonAdminBackup>(self.session, NAME, Some(self.timeout)).await?;
                ensure!(outcome == Outcome::Good, "the backup {NAME} was not deleted in time");
            }
        }
        let name = &self.session.namespace;
        let namespaces = Api::<Namespace>::all(self.session.client.clone());
        match namespaces.delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            deleted => drop(deleted?),
        }
        self.gone(&namespaces, "namespace", name).await?;
        Ok(format!("deleted the backup, if there was one, and namespace {name}"))
    }

    /// What the pod says about its volume, once it runs.
    async fn content(&self) -> Result<Content> {
        let pods = self.session.api::<Pod>();
        self.until("the pod to read its volume", async || {
            let log = pods.logs(NAME, &LogParams::default()).await;
            match log.as_deref().map(Content::in_log) {
                Ok(Some(content)) => Ok(content),
                _ => bail!("{}", state(pods.get_opt(NAME).await?.as_ref())),
            }
        })
        .await
    }

    async fn gone<K>(&self, api: &Api<K>, noun: &str, name: &str) -> Result<()>
    where
        K: Clone + DeserializeOwned + std::fmt::Debug,
    {
        self.until(&format!("{noun} {name} to be gone"), async || {
            ensure!(api.get_opt(name).await?.is_none(), "it is still there");
            Ok(())
        })
        .await
    }

    /// Looks again and again. The last reason why not is in the error.
    async fn until<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Result<T>) -> Result<T> {
        let began = Instant::now();
        loop {
            match look().await {
                Ok(seen) => return Ok(seen),
                Err(reason) if began.elapsed() > self.timeout => {
                    return Err(reason.context(format!("waited {} s for {what}", self.timeout.as_secs())));
                }
                Err(_) => sleep(LOOK_AGAIN).await,
            }
        }
    }
}

/// Why a pod does not run, as the scheduler or kubelet reports it.
fn state(pod: Option<&Pod>) -> String {
    let Some(status) = pod.and_then(|pod| pod.status.as_ref()) else { return "there is no pod".to_owned() };
    let waiting = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let waiting = waiting.filter_map(|one| one.state.as_ref()?.waiting.as_ref());
    let conditions = status.conditions.iter().flatten().filter(|one| one.status == "False");
    let reasons = waiting
        .map(|one| (one.reason.as_deref(), one.message.as_deref()))
        .chain(conditions.map(|one| (one.reason.as_deref(), one.message.as_deref())));
    let words = reasons
        .map(|(reason, message)| [reason, message].into_iter().flatten().collect::<Vec<_>>().join(": "));
    let mut words: Vec<String> = words.filter(|words| !words.is_empty()).collect();
    words.dedup();
    let phase = status.phase.as_deref().unwrap_or("new");
    [format!("the pod is {phase}")].into_iter().chain(words).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_does_not_start_says_why() {
        let pod = json!({
            "status": {
                "phase": "Pending",
                "containerStatuses": [{
                    "name": "verify", "image": "x", "imageID": "", "ready": false, "restartCount": 0,
                    "state": { "waiting": { "reason": "ImagePullBackOff", "message": "no such image" } },
                }],
            },
        });
        let pod: Pod = serde_json::from_value(pod).unwrap();
        assert_eq!(state(Some(&pod)), "the pod is Pending: ImagePullBackOff: no such image");
        assert_eq!(state(None), "there is no pod");
    }
}
