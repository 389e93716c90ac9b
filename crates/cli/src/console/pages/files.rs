//! Files that Velero keeps of a backup or a restore. From the administrators' storage they are passed through; to storage
//! that a tenant chose, the console never connects: the browser gets the link.

use std::sync::Arc;

use anyhow::{Context as _, Result as Fetched, bail};
use api::{NonAdminBackup, NonAdminBackupStorageLocation, NonAdminRestore};
use axum::{
    body::Body,
    extract::{Path, State},
    http::header,
    response::{IntoResponse as _, Response},
};
use engine::Link;
use futures::future::join_all;
use http_body_util::Limited;
use indicatif::HumanBytes;
use maud::{Markup, html};

use super::{Failed, Place, Refused, framed, object_name};
use crate::{
    connect::Session,
    console::{
        person::{Person, Posted, may_write_status},
        serve::{Console, Storage},
    },
    download::{Fetching, Given, logs},
    list,
    location::known::Known,
};

/// Larger files are for the command. A test does not fill the memory.
const LARGEST: usize = if cfg!(test) { 1 << 20 } else { 256 << 20 };

/// Where nacre answers which storage a file is in, and where its link leads.
const ANSWERS: [&str; 3] = ["nonadminbackups", "nonadminbackupstoragelocations", "nonadmindownloadrequests"];

/// A kind of file: what Velero calls it, what it is, and what a file of it is called.
type Kind = (&'static str, &'static str, &'static str);

pub(super) const OF_BACKUP: [Kind; 3] = [
    ("BackupLog", "Log", "log.gz"),
    ("BackupResults", "Errors and warnings", "results.json.gz"),
    ("BackupContents", "Contents", "data.tar.gz"),
];
pub(super) const OF_RESTORE: [Kind; 2] =
    [("RestoreLog", "Log", "log.gz"), ("RestoreResults", "Errors and warnings", "results.json.gz")];

/// A button for each file.
pub(super) fn buttons(person: &Person, path: &str, kinds: &[Kind]) -> Markup {
    html! {
        section {
            h2 { "Files" }
            form.actions method="post" action=(path) {
                input type="hidden" name="csrf" value=(person.csrf);
                @for (kind, words, _) in kinds { button.second name="do" value=(kind) { (words) } }
            }
            @if kinds.iter().any(|(kind, ..)| *kind == "BackupContents") {
                p.hint { "Contents are the manifests of the namespace, Secrets included, without the data of volumes." }
            }
        }
    }
}

pub(in crate::console) async fn of_backup(
    State(console): State<Arc<Console>>,
    Path((namespace, name)): Path<(String, String)>,
    posted: Posted,
) -> Result<Response, Failed> {
    let session = posted.person.at(&namespace)?;
    let name = object_name(&name)?;
    send(&console, &posted, &session, &OF_BACKUP, ("/backups", name), Some(name)).await
}

pub(in crate::console) async fn of_restore(
    State(console): State<Arc<Console>>,
    Path((namespace, name)): Path<(String, String)>,
    posted: Posted,
) -> Result<Response, Failed> {
    let session = posted.person.at(&namespace)?;
    let name = object_name(&name)?;
    let (restore, _) = list::one::<NonAdminRestore>(&session, name).await?;
    let backup = restore.spec.restore_spec.backup_name;
    send(&console, &posted, &session, &OF_RESTORE, ("/restores", name), backup.as_deref()).await
}

async fn send(
    console: &Console,
    posted: &Posted,
    session: &Session,
    kinds: &[Kind],
    (tab, name): (&str, &str),
    backup: Option<&str>,
) -> Result<Response, Failed> {
    let kind = kinds.iter().find(|(kind, ..)| *kind == posted.text("do")).ok_or(Failed::NotFound)?;
    let namespace = session.namespace.as_str();
    let command = command(kind.0, name, namespace);
    let place = || Place::of(namespace, tab, name, command.clone());
    match fetched(session, &console.storage, kind.0, name, backup).await {
        Ok(File::Bytes(body)) => {
            let file = format!("attachment; filename=\"{name}-{}\"", kind.2);
            let headers = [(header::CONTENT_TYPE, "application/gzip"), (header::CONTENT_DISPOSITION, &file)];
            Ok((headers, body).into_response())
        }
        Ok(File::Text(text)) => {
            let file = format!("attachment; filename=\"{name}-log.txt\"");
            let headers =
                [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::CONTENT_DISPOSITION, &file)];
            Ok((headers, text).into_response())
        }
        Ok(File::Link(url)) => {
            let main = html! {
                h1 { (kind.1) " of " (name) }
                div.card {
                    p { "This is in storage of your own, to which the console does not connect. Your browser can:" }
                    div.actions { a.button href=(url) rel="noreferrer" { "Download" } }
                    p.hint {
                        "Whoever has this link can read the file, for about ten minutes. It opens only where your storage can be "
                        "reached from your browser."
                    }
                }
                p { a href={ "/ns/" (namespace) (tab) "/" (name) } { "Back to " (name) } }
            };
            Ok(framed(&posted.person, place(), &main).await)
        }
        Err(error) => {
            let back = format!("/ns/{namespace}{tab}/{name}");
            let refused = Refused { title: "There is no such file for you", back: &back, command: &command };
            refused.show(&posted.person, place(), &error).await
        }
    }
}

fn command(kind: &str, name: &str, namespace: &str) -> String {
    let verb = match kind {
        "BackupLog" => "backup logs",
        "RestoreLog" => "restore logs",
        "BackupContents" => "backup download",
        "RestoreResults" => return format!("kubectl nacre restore describe {name} --details -n {namespace}"),
        _ => return format!("kubectl nacre backup describe {name} --details -n {namespace}"),
    };
    format!("kubectl nacre {verb} {name} -n {namespace}")
}

/// What the browser gets.
enum File {
    Bytes(Body),
    Text(String),
    Link(String),
}

async fn fetched(
    session: &Session,
    storage: &Storage,
    kind: &str,
    name: &str,
    backup: Option<&str>,
) -> Fetched<File> {
    let passes_through = is_from_administrators(session, backup).await?;
    let given = Fetching::default().given(session, kind, name).await?;
    let url = match given.context("it was interrupted; try again")? {
        Given::Link(url) => url,
        Given::Log(log) => {
            let about = logs::about(&log, &session.namespace);
            return Ok(File::Text(format!("# {about}\n{}", logs::text(&log))));
        }
    };
    if !url.starts_with("https://") && !url.starts_with("http://") {
        bail!("the answer is no link");
    }
    if !passes_through {
        return Ok(File::Link(url));
    }
    let answer = Link::new(&url)?.open(&storage.trust()).await?;
    let size = answer.headers().get(header::CONTENT_LENGTH);
    let size: u64 = size.and_then(|size| size.to_str().ok()?.parse().ok()).unwrap_or_default();
    if size > LARGEST as u64 {
        bail!(
            "the file has {}, and the console passes on at most {}; the command below has no such limit",
            HumanBytes(size),
            HumanBytes(LARGEST as u64)
        );
    }
    // Whatever the storage sends: the connection breaks off at the limit.
    Ok(File::Bytes(Body::new(Limited::new(answer.into_body(), LARGEST))))
}

/// Whether a backup is in the administrators' storage, by what nacre reports of it: its owner may have edited the request.
async fn is_from_administrators(session: &Session, backup: Option<&str>) -> Fetched<bool> {
    let Some(backup) = backup else { return Ok(false) };
    // Whoever can write what nacre answers can choose where a link leads.
    let answers = ANSWERS.map(|resource| may_write_status(session, resource));
    if !session.follows_links && join_all(answers).await.contains(&true) {
        return Ok(false);
    }
    let ((backup, _), own) =
        tokio::try_join!(list::one::<NonAdminBackup>(session, backup), Known::own(session))?;
    Ok(is_platform(&backup, &own.own))
}

fn is_platform(backup: &NonAdminBackup, own: &[NonAdminBackupStorageLocation]) -> bool {
    let velero = backup.status.as_ref().and_then(|status| status.velero_backup.as_ref());
    let stored = velero.and_then(|velero| velero.spec.as_ref()?.storage_location.as_deref());
    let Some(stored) = stored else { return false };
    let named = |location: &NonAdminBackupStorageLocation| {
        let velero =
            location.status.as_ref().and_then(|status| status.velero_backup_storage_location.as_ref());
        velero.and_then(|velero| velero.name.as_deref()) == Some(stored)
    };
    backup.spec.backup_spec.storage_location.is_none() && !own.iter().any(named)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_that_was_edited_does_not_lead_the_console_to_a_tenants_storage() {
        let backup = |wanted: Option<&str>, stored: Option<&str>| -> NonAdminBackup {
            serde_json::from_value(
                json!({"metadata": {"name": "daily"}, "spec": {"backupSpec": {"storageLocation": wanted}},
                "status": {"veleroBackup": {"spec": {"storageLocation": stored}}}}),
            )
            .unwrap()
        };
        let own: Vec<NonAdminBackupStorageLocation> =
            serde_json::from_value(json!([{"metadata": {"name": "mine"},
            "spec": {"backupStorageLocationSpec": {"provider": "aws", "objectStorage": {"bucket": "b"}}},
            "status": {"veleroBackupStorageLocation": {"name": "velero-mine"}}}]))
            .unwrap();
        assert!(is_platform(&backup(None, Some("default")), &own));
        for (wanted, stored) in [
            (Some("mine"), Some("velero-mine")),
            (Some("mine"), Some("default")),
            (None, Some("velero-mine")),
            (None, None),
        ] {
            assert!(!is_platform(&backup(wanted, stored), &own), "{wanted:?} {stored:?}");
        }
    }
}
