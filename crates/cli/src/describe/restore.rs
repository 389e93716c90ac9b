//! `restore describe`.

use anyhow::Result;
use api::NonAdminRestore;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Describe,
    events::{self, Told},
    page::{changed, conditions, fields, moment, section, yaml},
    results::{self, Results},
    volumes,
};
use crate::{
    changes::Change,
    connect::Session,
    explain, list,
    output::{Outcome, lines, print},
    story::Story,
};

#[derive(Serialize)]
struct Answer {
    object: Value,
    changes: Vec<Change>,
    events: Vec<Told>,
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<Results>,
    next: Vec<String>,
}

pub(crate) async fn run(session: &Session, args: &Describe) -> Result<Outcome> {
    let name = &args.name;
    let (found, events) = tokio::join!(
        list::one::<NonAdminRestore>(session, name),
        events::about::<NonAdminRestore>(session, name),
    );
    let ((restore, unreadable), events) = (found?, events?);
    let changes = explain::effect_of_restore(session, &restore).await?;
    let (results, problem) = if args.details {
        match results::fetch(session, "RestoreResults", name, &args.fetching).await {
            Ok(results) => (Some(results), None),
            Err(why) => (None, Some(why)),
        }
    } else {
        (None, None)
    };
    let story = Story::from(&restore);
    let answer = Answer { object: json!(restore), changes, events, results, next: story.next() };
    let page = || page(&restore, &answer, unreadable.as_deref(), problem.as_deref(), Timestamp::now());
    print(session.format, &answer, page, || vec![list::qualified::<NonAdminRestore>(name)])?;
    Ok(Outcome::Good)
}

fn page(
    restore: &NonAdminRestore,
    answer: &Answer,
    unreadable: Option<&str>,
    no_results: Option<&str>,
    now: Timestamp,
) -> String {
    let story = Story::from(restore);
    let (status, velero) = (restore.status.clone().unwrap_or_default(), &story.velero);
    let said = status.velero_restore.as_ref().and_then(|velero| velero.status.clone()).unwrap_or_default();
    let time = |time: Option<Timestamp>| time.map(|time| moment(time, now));
    let mut text = fields(&[
        ("Name", Some(story.name().to_owned())),
        ("Namespace", restore.metadata.namespace.clone()),
        ("Status", Some(story.headline())),
        ("Unreadable", unreadable.map(str::to_owned)),
        ("Backup", restore.spec.restore_spec.backup_name.clone()),
        ("Created", time(restore.metadata.creation_timestamp.as_ref().map(|time| time.0))),
        ("Started", time(velero.started)),
        ("Ended", time(velero.completed)),
        ("Items", story.items()),
        ("Errors", velero.completed.map(|_| velero.errors.to_string())),
        ("Warnings", velero.completed.map(|_| velero.warnings.to_string())),
        ("Volumes", volumes::moved(status.data_mover_data_downloads)),
        ("Volumes", volumes::files(status.file_system_pod_volume_restores)),
        ("Hooks", volumes::hooks(said.hook_status.as_ref())),
        ("At Velero", status.velero_restore.as_ref().and_then(|velero| velero.name.clone())),
    ]);
    let (errors, warnings) = answer.results.as_ref().map(Results::lines).unwrap_or_default();
    text += &section("Asked for", &yaml(&restore.spec.restore_spec, "everything in the backup"));
    text += &section("Beyond that, by today's policy", &changed(&answer.changes));
    text += &section("Conditions", &conditions(&status.conditions, now));
    text += &section("Errors", &errors);
    text += &section("Warnings", &warnings);
    text += &section("No details", no_results.unwrap_or_default());
    text += &section("What happened", &events::table(&answer.events, now));
    text += &section("Next", &lines(answer.next.clone()));
    text
}
