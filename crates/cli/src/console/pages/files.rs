//! Files that Velero keeps of a backup or a restore. From the administrators' storage they are passed through; to storage
//! that a tenant chose, the console never connects: the browser gets the link.

use std::sync::Arc;

use anyhow::{Context as _, Result as Fetched, bail};
use api::{
    NonAdminBackup, NonAdminBackupStorageLocation, NonAdminRestore, RestoredFrom, ends_with_uid,
    restored_from,
};
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
const ANSWERS: [&str; 4] =
    ["nonadminbackups", "nonadminrestores", "nonadminbackupstoragelocations", "nonadmindownloadrequests"];

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
            form.actions method="post" action=(path) data-stays {
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
    let is_platform = async || {
        let ((backup, _), known) =
            tokio::try_join!(list::one::<NonAdminBackup>(&session, name), Known::own(&session))?;
        anyhow::Ok(is_backup_in_platform_storage(&backup, &known.own))
    };
    send(&console, &posted, &session, &OF_BACKUP, ("/backups", name), is_platform).await
}

pub(in crate::console) async fn of_restore(
    State(console): State<Arc<Console>>,
    Path((namespace, name)): Path<(String, String)>,
    posted: Posted,
) -> Result<Response, Failed> {
    let session = posted.person.at(&namespace)?;
    let name = object_name(&name)?;
    let is_platform = async || {
        let ((restore, _), known) =
            tokio::try_join!(list::one::<NonAdminRestore>(&session, name), Known::own(&session))?;
        anyhow::Ok(is_restored_from_platform_storage(&restore, &known.own))
    };
    send(&console, &posted, &session, &OF_RESTORE, ("/restores", name), is_platform).await
}

async fn send(
    console: &Console,
    posted: &Posted,
    session: &Session,
    kinds: &[Kind],
    (tab, name): (&str, &str),
    is_platform: impl AsyncFnOnce() -> Fetched<bool>,
) -> Result<Response, Failed> {
    let kind = kinds.iter().find(|(kind, ..)| *kind == posted.text("do")).ok_or(Failed::NotFound)?;
    let namespace = session.namespace.as_str();
    let command = command(kind.0, name, namespace);
    let place = || Place::of(namespace, tab, name, command.clone());
    match fetched(session, &console.storage, kind.0, name, is_platform).await {
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
                    p { "This is in storage of your own, or may be. The console does not connect there. Your browser can:" }
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
    is_platform: impl AsyncFnOnce() -> Fetched<bool>,
) -> Fetched<File> {
    let passes_through = answers_are_nacres(session).await && is_platform().await?;
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

/// Whether it is nacre that answers: whoever can write the answers can choose where a link leads.
async fn answers_are_nacres(session: &Session) -> bool {
    let answers = ANSWERS.map(|resource| may_write_status(session, resource));
    session.follows_links || !join_all(answers).await.contains(&true)
}

/// Whether a backup is in the administrators' storage, by what nacre reports of it: its owner may have edited the request.
fn is_backup_in_platform_storage(backup: &NonAdminBackup, own: &[NonAdminBackupStorageLocation]) -> bool {
    let velero = backup.status.as_ref().and_then(|status| status.velero_backup.as_ref());
    let stored = velero.and_then(|velero| velero.spec.as_ref()?.storage_location.as_deref());
    let Some(stored) = stored else { return false };
    let named = |location: &NonAdminBackupStorageLocation| {
        let velero =
            location.status.as_ref().and_then(|status| status.velero_backup_storage_location.as_ref());
        velero.and_then(|velero| velero.name.as_deref()) == Some(stored)
    };
    // Whoever takes nacre's finalizer off a location has it no more, while Velero still has it for a moment.
    let is_of_a_request = ends_with_uid(stored);
    backup.spec.backup_spec.storage_location.is_none() && !is_of_a_request && !own.iter().any(named)
}

/// Whether a restore is of a backup in the administrators' storage, by the name that nacre gave it in Velero: which backup
/// the request names, its owner may have edited.
///
/// A link goes by where Velero finds the backup today. Somebody with storage of their own could try to have Velero find
/// another one of that name there, so they get the link.
fn is_restored_from_platform_storage<'a>(
    restore: &'a NonAdminRestore,
    own: &[NonAdminBackupStorageLocation],
) -> bool {
    let meta = &restore.metadata;
    let velero = restore.status.as_ref().and_then(|status| status.velero_restore.as_ref()?.name.as_deref());
    let text = |value: &'a Option<String>| value.as_deref().unwrap_or_default();
    let origin = (text(&meta.namespace), text(&meta.name), text(&meta.uid));
    let from = velero.and_then(|velero| restored_from(velero, origin));
    from == Some(RestoredFrom::PlatformStorage) && own.is_empty()
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
        assert!(is_backup_in_platform_storage(&backup(None, Some("default")), &own));
        for (wanted, stored) in [
            (Some("mine"), Some("velero-mine")),
            (Some("mine"), Some("default")),
            (None, Some("velero-mine")),
            (None, Some("shop-gone-0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f")),
            (None, None),
        ] {
            assert!(!is_backup_in_platform_storage(&backup(wanted, stored), &own), "{wanted:?} {stored:?}");
        }
    }

    #[test]
    fn a_restore_is_of_the_storage_that_its_name_in_velero_says_and_not_of_the_backup_it_names() {
        let uid = "0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f";
        let restore = |velero: Option<&str>| -> NonAdminRestore {
            serde_json::from_value(json!({"metadata": {"name": "back", "namespace": "shop", "uid": uid},
                "spec": {"restoreSpec": {"backupName": "in-platform-storage"}},
                "status": {"veleroRestore": {"name": velero}}}))
            .unwrap()
        };
        let named = |letter: &str| format!("shop-back-{letter}1c2b3a4d-5e6f-{uid}");
        assert!(is_restored_from_platform_storage(&restore(Some(&named("p"))), &[]));
        for velero in [None, Some(&*named("t")), Some(&*named("")), Some("default")] {
            assert!(!is_restored_from_platform_storage(&restore(velero), &[]), "{velero:?}");
        }
        let own = NonAdminBackupStorageLocation::new(
            "mine",
            serde_json::from_value(json!(
            {"backupStorageLocationSpec": {"provider": "aws", "objectStorage": {"bucket": "b"}}}))
            .unwrap(),
        );
        assert!(!is_restored_from_platform_storage(&restore(Some(&named("p"))), &[own]));
    }
}
