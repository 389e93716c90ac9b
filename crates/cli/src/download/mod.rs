//! Fetching a log, the results or the contents of a backup: ask for a link, wait for it, stream it, clean up.

pub(crate) mod contents;
mod fetch;
pub(crate) mod file;
pub(crate) mod logs;
mod unpack;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, bail};
use api::{
    DownloadTarget, LogLines, NonAdminDownloadRequest, NonAdminDownloadRequestSpec, ObjectList, Phase,
    condition,
};
use kube::{
    api::{DeleteParams, PostParams},
    core::ObjectMeta,
};

use crate::{
    connect::Session,
    interrupt::interrupted,
    live::{Ended, until},
    output::remark,
    send::{duration, random},
};

pub(crate) use fetch::{Link, Trust};

/// How long cleaning up may take before it is left to nacre, which removes requests that are over by itself.
const CLEANING: Duration = Duration::from_secs(5);

/// What every download takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Fetching {
    /// How long to wait for the download URL.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    timeout: Duration,

    /// A PEM file with the CA certificates of the storage. Default: the location's.
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,

    /// Do not verify the storage's certificate. Insecure.
    #[arg(long)]
    insecure_skip_tls_verify: bool,
}

impl Default for Fetching {
    fn default() -> Self {
        Self { timeout: Duration::from_mins(2), cacert: None, insecure_skip_tls_verify: false }
    }
}

impl Fetching {
    /// For a page that somebody looks at: after this long it says what it does not know.
    pub(crate) fn within(timeout: Duration) -> Self {
        Self { timeout, ..Self::default() }
    }

    /// Asks for a link to a file of this kind, has `used` use it, and removes the request again, whatever happens in
    /// between. None if somebody pressed Ctrl-C.
    pub(crate) async fn with_link<T>(
        &self,
        session: &Session,
        kind: &str,
        name: &str,
        used: impl AsyncFnOnce(Link) -> Result<T>,
    ) -> Result<Option<T>> {
        if !session.follows_links {
            return Err(not_followed(kind));
        }
        let used = async |answer| match answer {
            Answer::Link(url) => used(self.link(session, kind, name, &url).await?).await,
            Answer::Objects(_) | Answer::Log(_) => bail!(NO_LINK),
        };
        self.with_answer(session, kind, name, used).await
    }

    /// A log of this kind: has `used` follow the link to it, or returns the lines that nacre has read. None if somebody
    /// pressed Ctrl-C.
    pub(crate) async fn log(
        &self,
        session: &Session,
        kind: &str,
        name: &str,
        used: impl AsyncFnOnce(Link) -> Result<()>,
    ) -> Result<Option<Option<LogLines>>> {
        let used = async |answer| match answer {
            Answer::Link(url) => used(self.link(session, kind, name, &url).await?).await.map(|()| None),
            Answer::Log(log) => Ok(Some(log)),
            Answer::Objects(_) => bail!(NO_LINK),
        };
        self.with_answer(session, kind, name, used).await
    }

    /// The link to a file of this kind itself, for whoever follows it elsewhere, or the lines of a log that nacre has read.
    /// None if somebody pressed Ctrl-C.
    pub(crate) async fn given(&self, session: &Session, kind: &str, name: &str) -> Result<Option<Given>> {
        let used = async |answer| match answer {
            Answer::Link(url) => Ok(Given::Link(url)),
            Answer::Log(log) => Ok(Given::Log(log)),
            Answer::Objects(_) => bail!(NO_LINK),
        };
        self.with_answer(session, kind, name, used).await
    }

    /// The objects in a backup of this name: as nacre lists them, or by Velero's own list. None if somebody pressed Ctrl-C.
    pub(crate) async fn objects(&self, session: &Session, name: &str) -> Result<Option<Objects>> {
        let kind = "BackupResourceList";
        let used = async |answer| match answer {
            Answer::Link(_) if !session.follows_links => Err(not_followed(kind)),
            Answer::Link(url) => {
                let link = self.link(session, kind, name, &url).await?;
                let names = serde_json::from_slice(&logs::whole(link).await?);
                Ok(Objects { names: names.context("reading Velero's list of resources")?, not_listed: 0 })
            }
            Answer::Objects(list) => {
                let placed = |name: &String| format!("{}/{name}", session.namespace);
                let placed = |names: &Vec<String>| names.iter().map(placed).collect();
                let names = list.names.iter().map(|(kind, names)| (kind.clone(), placed(names))).collect();
                Ok(Objects { names, not_listed: list.not_listed.unwrap_or_default() })
            }
            Answer::Log(_) => bail!("nacre answered with the lines of a log"),
        };
        self.with_answer(session, kind, name, used).await
    }

    /// A link with what is trusted of the storage it leads to.
    async fn link(&self, session: &Session, kind: &str, name: &str, url: &str) -> Result<Link> {
        let trust = Trust { file: self.cacert.clone(), blind: self.insecure_skip_tls_verify };
        Link::new(url, trust.or_of_location(session, kind, name).await)
    }

    /// Asks for a file, has `used` use the answer, and removes the request again.
    async fn with_answer<T>(
        &self,
        session: &Session,
        kind: &str,
        name: &str,
        used: impl AsyncFnOnce(Answer) -> Result<T>,
    ) -> Result<Option<T>> {
        let request = request(kind, name);
        let request_name = request.metadata.name.clone().unwrap_or_default();
        let api = session.api::<NonAdminDownloadRequest>();
        let denied = AtomicBool::new(false);
        let work = async {
            api.create(&PostParams::default(), &request).await.map_err(|error| match &error {
                kube::Error::Api(status) if status.is_forbidden() => {
                    denied.store(true, Relaxed);
                    forbidden(kind, &session.namespace, &status.message)
                }
                _ => error.into(),
            })?;
            let Some(answer) = wait_for(session, &request_name, self.timeout).await? else { return Ok(None) };
            used(answer).await.map(Some)
        };
        let done = tokio::select! {
            done = work => done,
            () = interrupted() => Ok(None),
        };
        if denied.load(Relaxed) {
            // Nothing was created, so there is nothing to remove.
            return done;
        }
        // Known by its name even if the answer to its creation was never seen.
        let removed =
            tokio::time::timeout(CLEANING, api.delete(&request_name, &DeleteParams::default())).await;
        if !matches!(&removed, Ok(Ok(_)))
            && !matches!(&removed, Ok(Err(kube::Error::Api(status))) if status.is_not_found())
        {
            remark(format_args!(
                "the download request {request_name} could not be removed; nacre removes it within minutes"
            ));
        }
        done
    }
}

/// A request under a name of our own making, so that it can be removed whatever becomes of its creation.
fn request(kind: &str, name: &str) -> NonAdminDownloadRequest {
    let suffix = if kind.ends_with("Log") { "logs" } else { "data" };
    let stem: String = name.chars().take(200).collect();
    NonAdminDownloadRequest {
        metadata: ObjectMeta {
            name: Some(format!("{}-{suffix}-{}", stem.trim_end_matches(['-', '.']), random())),
            ..ObjectMeta::default()
        },
        spec: NonAdminDownloadRequestSpec {
            target: DownloadTarget { kind: kind.to_owned(), name: name.to_owned() },
        },
        status: None,
    }
}

/// Why somebody who may read the backup may not read its files, if that is why.
fn forbidden(kind: &str, namespace: &str, message: &str) -> anyhow::Error {
    // An admission policy also answers "forbidden", and gives its own reason.
    if !message.contains("cannot create resource") {
        return anyhow!("{message}");
    }
    anyhow!(
        "{} cannot be fetched: you may not create NonAdminDownloadRequests in namespace {namespace}. A download link opens \
         everything in a backup, Secrets included, so the role view does not include it; ask for edit or admin in \
         {namespace}, or for the ClusterRole nonadminbackup-editor-role",
        thing(kind)
    )
}

/// The console in the cluster connects to nothing but the API server.
fn not_followed(kind: &str) -> anyhow::Error {
    anyhow!(
        "{} is not fetched: the console in the cluster does not connect to storage. kubectl nacre does, and so does \
         kubectl nacre console",
        thing(kind)
    )
}

/// Whoever wants a file gets a link to it, or a reason.
const NO_LINK: &str = "nacre answered with something else than a link";

/// What can be handed on: a link, or lines of a log.
pub(crate) enum Given {
    Link(String),
    Log(LogLines),
}

/// What nacre answers.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// A link to the file.
    Link(String),
    /// The objects in a backup, which nacre has read from the administrators' storage.
    Objects(ObjectList),
    /// The lines of a log that are about the namespace, likewise.
    Log(LogLines),
}

/// The objects in a backup.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    /// By API version and kind; with the namespace, as in Velero's list.
    pub(crate) names: BTreeMap<String, Vec<String>>,
    /// How many more there are.
    pub(crate) not_listed: u32,
}

async fn wait_for(session: &Session, name: &str, timeout: Duration) -> Result<Option<Answer>> {
    let ended = until(session, name, Some(timeout), |request: Option<NonAdminDownloadRequest>| {
        let Some(request) = request else { bail!("the download request was deleted") };
        answer(&request).transpose().map_err(|why| anyhow!("{why}"))
    })
    .await?;
    match ended {
        Ended::Reached(answer) => Ok(Some(answer)),
        Ended::Interrupted => Ok(None),
        Ended::Late => bail!(
            "no link came in time; is Velero running? Ask the administrators, or try again with a longer --timeout"
        ),
    }
}

/// The answer, or why there is none; nothing while neither is known.
fn answer(request: &NonAdminDownloadRequest) -> Option<Result<Answer, String>> {
    let status = request.status.as_ref()?;
    if condition::is_true(&status.conditions, condition::PROCESSED) {
        let velero = status.velero.as_ref()?.status.as_ref()?;
        return match (&velero.download_url, &status.objects, &status.log) {
            (Some(url), ..) => Some(Ok(Answer::Link(url.clone()))),
            (None, Some(objects), _) => Some(Ok(Answer::Objects(objects.clone()))),
            (None, None, Some(log)) => Some(Ok(Answer::Log(log.clone()))),
            // A CRD of another make drops what it does not know.
            (None, None, None) => Some(Err(format!(
                "{} cannot be fetched: this cluster's CRD of NonAdminDownloadRequest has no field for it",
                thing(&request.spec.target.kind)
            ))),
        };
    }
    if status.phase != Some(Phase::BackingOff) {
        return None;
    }
    // There is one condition at a time.
    let why = status.conditions.first()?;
    Some(Err(if why.type_ == condition::LOCATION_NOT_USED {
        format!(
            "{} cannot be fetched: {} is kept in the cluster's own storage, and the administrators do not allow downloads \
             from there. Keep backups in a location of your own (kubectl nacre location create), or ask them to allow it",
            thing(&request.spec.target.kind),
            request.spec.target.name,
        )
    } else {
        plain(&why.message).to_owned()
    }))
}

/// What a kind of file is to people.
fn thing(kind: &str) -> &'static str {
    match kind {
        "BackupLog" | "RestoreLog" => "the log",
        "BackupResults" | "RestoreResults" => "the list of errors and warnings",
        "BackupContents" => "the contents",
        "BackupResourceList" => "the list of objects in the backup",
        "BackupVolumeInfos" => "the list of volumes",
        _ => "the file",
    }
}

/// A message without the field it is about: who uses a command has not written that field.
fn plain(message: &str) -> &str {
    match message.split_once(": ") {
        Some((field, rest)) if field.starts_with("spec.") || field.starts_with("metadata.") => rest,
        _ => message,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn reported(status: Value) -> Option<Result<Answer, String>> {
        let mut request = request("BackupLog", "daily");
        request.status = serde_json::from_value(status).unwrap();
        answer(&request)
    }

    fn one(type_: &str, status: &str, message: &str) -> Value {
        json!([{"type": type_, "status": status, "reason": "Error", "message": message, "lastTransitionTime": "2026-11-15T12:00:00Z"}])
    }

    #[test]
    fn a_link_a_reason_or_neither() {
        assert_eq!(reported(json!({"phase": "New"})), None);
        let link = json!({"phase": "Created", "conditions": one("Processed", "True", ""), "velero": {"status": {"downloadURL": "u"}}});
        assert_eq!(reported(link), Some(Ok(Answer::Link("u".to_owned()))));
        let processed = json!({"status": {"phase": "Processed"}});
        let mut list = json!({"phase": "Created", "conditions": one("Processed", "True", ""), "velero": processed, "objects": {"names": {"v1/Secret": ["a"]}}});
        let Some(Ok(Answer::Objects(objects))) = reported(list.clone()) else { panic!("it is there") };
        assert_eq!(objects.names["v1/Secret"], ["a"]);
        list["objects"] = Value::Null;
        list["log"] = json!({"lines": ["level=info msg=a"], "leftOut": 3});
        let Some(Ok(Answer::Log(log))) = reported(list.clone()) else { panic!("it is there") };
        assert_eq!((log.lines.len(), log.left_out), (1, Some(3)));
        list["log"] = Value::Null;
        let Some(Err(why)) = reported(list) else { panic!("it would wait for ever") };
        assert!(why.contains("CRD"), "{why}");
        let reading = one("Processed", "Unknown", "nacre reads the list");
        assert_eq!(reported(json!({"phase": "New", "conditions": reading})), None);
        let missing = one(
            "NonAdminBackupNotAvailable",
            "True",
            "spec.target.name: there is no NonAdminBackup \"daily\"",
        );
        let refused = reported(json!({"phase": "BackingOff", "conditions": missing}));
        assert_eq!(refused, Some(Err("there is no NonAdminBackup \"daily\"".to_owned())));
    }

    #[test]
    fn what_policy_forbids_is_said_in_a_sentence() {
        let conditions = one("NonAdminBackupStorageLocationNotUsed", "True", "spec.target.kind: no");
        let Some(Err(why)) = reported(json!({"phase": "BackingOff", "conditions": conditions})) else {
            panic!("it is refused")
        };
        insta::assert_snapshot!(why, @"the log cannot be fetched: daily is kept in the cluster's own storage, and the administrators do not allow downloads from there. Keep backups in a location of your own (kubectl nacre location create), or ask them to allow it");
    }

    #[test]
    fn who_may_not_download_is_told_which_permission_is_missing() {
        let rbac = "nonadmindownloadrequests.oadp.openshift.io is forbidden: User \"vic\" cannot create resource \
                    \"nonadmindownloadrequests\" in API group \"oadp.openshift.io\" in the namespace \"shop\"";
        insta::assert_snapshot!(forbidden("BackupLog", "shop", rbac), @"the log cannot be fetched: you may not create NonAdminDownloadRequests in namespace shop. A download link opens everything in a backup, Secrets included, so the role view does not include it; ask for edit or admin in shop, or for the ClusterRole nonadminbackup-editor-role");
        let policy = "ValidatingAdmissionPolicy 'nacre-reserved-marks' denied request: no";
        assert_eq!(forbidden("BackupLog", "shop", policy).to_string(), policy);
    }

    #[test]
    fn a_request_has_a_name_of_its_own() {
        let name = request("BackupLog", &"a".repeat(250)).metadata.name.unwrap();
        assert!(name.len() < 253 && name.contains("-logs-"), "{name}");
    }
}
