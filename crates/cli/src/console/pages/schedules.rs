//! Schedules: when backups are made by themselves, how long they are kept, and what can be done about one.

use anyhow::{Result as Done, bail};
use api::NonAdminSchedule;
use axum::{
    extract::{Path, Query},
    response::Response,
};
use jiff::{Timestamp, civil::Weekday};
use kube::api::PostParams;
use maud::{Markup, html};

use super::{
    Cursor, Failed, List, NewObject, Place, Refused, create_once, flags, framed, given, live_link,
    object_name, quoted, see, storage,
};
use crate::{
    connect::Session,
    console::{
        html::{page, table},
        person::{Person, Posted, may},
    },
    list,
    location::known::Known,
    output::{Format, in_words},
    schedule::{
        self, change,
        delete::Deletion,
        describe,
        preview::{self, Calendar, Day},
    },
};

/// The fields of the form, and the flags they are.
const FIELDS: [(&str, &str); 10] = [
    ("schedule", "--schedule"),
    ("zone", "--time-zone"),
    ("last", "--keep-last"),
    ("daily", "--keep-daily"),
    ("weekly", "--keep-weekly"),
    ("monthly", "--keep-monthly"),
    ("within", "--keep-within"),
    ("ttl", "--ttl"),
    ("location", "--storage-location"),
    ("resources", "--include-resources"),
];

/// Times that many people want.
const USUAL: [(&str, &str); 5] = [
    ("H 2 * * *", "every night after two, at a minute that nacre chooses"),
    ("0 2 * * *", "every night at two"),
    ("@hourly", "every hour"),
    ("@every 6h", "every six hours"),
    ("0 3 * * 0", "every Sunday at three"),
];

/// A day with more runs than these shows their number.
const RUNS: usize = 3;

const LIST: List = List {
    path: "/schedules",
    title: "Schedules",
    command: ("schedule get", " -o wide"),
    new: ("/new-schedule", "New schedule"),
    nothing: "Nothing is backed up by itself in this namespace.",
    first: "A schedule makes backups at set times and keeps as many as you choose",
};

pub(in crate::console) async fn list(
    person: Person,
    Path(namespace): Path<String>,
    Query(from): Query<Cursor>,
) -> Result<Response, Failed> {
    let table = |found: &_| {
        LIST.table(&namespace, &schedule::get::table(found, Format::Wide, false, Timestamp::now()))
    };
    LIST.show::<NonAdminSchedule>(&person, &namespace, &from, table).await
}

pub(in crate::console) async fn show(
    person: Person,
    Path((namespace, name)): Path<(String, String)>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let name = object_name(&name)?;
    let (found, _) = list::one::<NonAdminSchedule>(&session, name).await?;
    let (ahead, deletion, can_change, can_run, can_delete) = tokio::join!(
        Box::pin(preview::calendar(&session, &found)),
        Deletion::find(&session, name),
        may(&session, "patch", "nonadminschedules", &namespace),
        may(&session, "create", "nonadminbackups", &namespace),
        may(&session, "delete", "nonadminschedules", &namespace),
    );
    let version = found.metadata.resource_version.as_deref().unwrap_or_default();
    let is_paused = found.spec.paused == Some(true);
    let is_unconfirmed = schedule::word(&found) == "Unconfirmed";
    let action = format!("/ns/{namespace}/schedules/{name}");
    let main = html! {
        p.crumbs { a href={ "/ns/" (namespace) "/schedules" } { "Schedules" } }
        div id="live" data-watch=(live_link::<NonAdminSchedule>(&namespace, version)) {
            h1 { (name) }
            @if can_change || can_run {
                form.actions method="post" action=(action) {
                    input type="hidden" name="csrf" value=(person.csrf);
                    @if can_run { button name="do" value="run" { "Back up now" } }
                    @if can_change && is_unconfirmed { button name="do" value="confirm" { "Confirm" } }
                    @if can_change && is_paused { button.second name="do" value="resume" { "Resume" } }
                    @if can_change && !is_paused { button.second name="do" value="pause" { "Pause" } }
                }
            }
            (page(&describe::parts(&found)))
        }
        @match &ahead {
            Ok(ahead) => (calendar(ahead)),
            Err(error) => section { h2 { "In 30 days" } p.notice.warning { (in_words(error)) } },
        }
        @if let (true, Ok(deletion)) = (can_delete, &deletion) {
            details.delete {
                summary { "Delete this schedule" }
                form.card.danger method="post" action=(action) {
                    input type="hidden" name="csrf" value=(person.csrf);
                    fieldset {
                        legend { "What becomes of its backups" }
                        label.check {
                            input type="radio" name="backups" value="" checked;
                            span { (deletion.question(&session, false)) }
                        }
                        label.check {
                            input type="radio" name="backups" value="delete";
                            span { (deletion.question(&session, true)) }
                        }
                    }
                    label for="confirm" { "Write the name of the schedule, " (name) ", to confirm" }
                    input type="text" id="confirm" name="confirm" required autocomplete="off" spellcheck="false";
                    div.actions { button.danger name="do" value="delete" { "Delete" } }
                    p.hint {
                        "Retention ends with the schedule: backups that stay expire after the time in its template, or 30 days "
                        "without one."
                    }
                }
            }
        }
    };
    let command = |verb: &str| format!("kubectl nacre schedule {verb} {name} -n {namespace}");
    let acts = [
        ("Back up now", "run", can_run),
        ("Confirm", "confirm", can_change && is_unconfirmed),
        ("Resume", "resume", can_change && is_paused),
        ("Pause", "pause", can_change && !is_paused),
        ("Delete", "delete", can_delete && deletion.is_ok()),
    ];
    let acts = acts.into_iter().filter(|(.., can)| *can).map(|(label, verb, _)| (label, command(verb)));
    let place = Place::of(&namespace, "/schedules", name, command("describe")).acting(acts);
    Ok(framed(&person, place, &main).await)
}

/// A month of runs, and what becomes of their backups.
fn calendar(ahead: &Calendar) -> Markup {
    let names = Weekday::Monday.cycle_forward().take(7);
    let zone = html! { p.hint { "Times are in " (ahead.zone) "." } };
    html! {
        section {
            h2 { (ahead.title) }
            @for remark in &ahead.remarks { p.notice.warning { (remark) } }
            div.scroll tabindex="0" role="region" aria-label="Calendar of runs" {
                table.calendar {
                    thead { tr { @for name in names { th scope="col" { (preview::short(name)) } } } }
                    tbody { @for week in ahead.weeks() {
                        tr { @for cell in week {
                            @match cell {
                                None => td.empty {},
                                Some(day) => td { (a_day(day)) },
                            }
                        } }
                    } }
                }
            }
            p.legend.hint {
                span { span.tag.good { "02:00" } " a run whose backup is still there after 30 days" }
                span { span.tag.busy { "02:00" } " a run whose backup is deleted before, and when" }
                span { "Times are in " (ahead.zone) "." }
            }
            details {
                summary { "The backups there are after 30 days" }
                (table(&ahead.kept, "Backups in 30 days", |_| None))
                (zone)
            }
        }
        @if !ahead.gone.is_empty() {
            section { h2 { (ahead.gone_title) } (table(&ahead.gone, &ahead.gone_title, |_| None)) (zone) }
        }
    }
}

fn a_day(day: &Day) -> Markup {
    let kept = day.runs.iter().filter(|run| run.goes.is_none()).count();
    html! {
        span.date { (day.date.strftime("%b %-d").to_string()) }
        @if day.runs.len() > RUNS {
            span class={ "tag " @if kept > 0 { "good" } @else { "busy" } } { (day.runs.len()) " runs" }
            span.hint { (kept) " kept" }
        } @else {
            @for run in &day.runs {
                span class={ "tag " @if run.goes.is_none() { "good" } @else { "busy" } } { (run.time) }
                @match run.goes {
                    None => span.hint { "kept" },
                    Some(goes) => span.hint { "until " (goes.strftime("%b %-d").to_string()) },
                }
            }
        }
    }
}

pub(in crate::console) async fn form(
    person: Person,
    Path(namespace): Path<String>,
    Query(fields): Query<Vec<(String, String)>>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let own = Known::own(&session).await?.own;
    let can = may(&session, "create", "nonadminschedules", &namespace).await;
    let given = |name| given(&fields, name);
    let keeps = [
        ("last", "Newest", "so many of the newest good backups"),
        ("daily", "Daily", "the newest of each of so many days"),
        ("weekly", "Weekly", "the newest of each of so many weeks"),
        ("monthly", "Monthly", "the newest of each of so many months"),
    ];
    let main = html! {
        p.crumbs { a href={ "/ns/" (namespace) "/schedules" } { "Schedules" } }
        h1 { "Back up namespace " (namespace) " at set times" }
        @if can {
            form.card method="post" action={ "/ns/" (namespace) "/schedules" } {
                input type="hidden" name="csrf" value=(person.csrf);
                label for="name" { "Name" }
                input type="text" id="name" name="name" required autocomplete="off" spellcheck="false"
                    value=(if given("name").is_empty() { "nightly" } else { given("name") });
                label for="schedule" { "When " span.hint { "five fields of cron, @hourly, @daily, @weekly, @monthly or @every 6h" } }
                input type="text" id="schedule" name="schedule" required list="usual" autocomplete="off" spellcheck="false"
                    value=(if given("schedule").is_empty() { USUAL[0].0 } else { given("schedule") });
                datalist id="usual" { @for (value, words) in USUAL { option value=(value) { (words) } } }
                p.hint { "H lets nacre choose a number for the namespace, so that not everybody starts at once; H(1-5) is one of a range." }
                label for="zone" { "Time zone " span.hint { "such as Europe/Berlin; default: UTC" } }
                input type="text" id="zone" name="zone" value=(given("zone")) autocomplete="off" spellcheck="false";
                fieldset {
                    legend { "What to keep" }
                    div.numbers { @for (name, label, words) in keeps {
                        div {
                            label for=(name) { (label) " " span.hint { (words) } }
                            input type="text" inputmode="numeric" pattern="[0-9]*" id=(name) name=(name) value=(given(name)) autocomplete="off";
                        }
                    } }
                    label for="within" { "All within " span.hint { "such as 30d or 36h" } }
                    input type="text" id="within" name="within" value=(given("within")) autocomplete="off";
                    p.hint { "Without any of these, each backup is kept for the time below. The last good backup is never deleted." }
                }
                label for="ttl" { "Keep each for " span.hint { "such as 72h; default: as the administrators set it" } }
                input type="text" id="ttl" name="ttl" value=(given("ttl")) autocomplete="off";
                (storage(&own, given("location")))
                details {
                    summary { "Only a part of the namespace" }
                    label for="resources" { "Resources " span.hint { "such as deployments.apps,configmaps" } }
                    input type="text" id="resources" name="resources" value=(given("resources")) autocomplete="off" spellcheck="false";
                }
                div.actions {
                    button name="do" value="create" { "Create" }
                    button.second name="do" value="check" { "Show the calendar" }
                }
            }
        } @else {
            div.card { p { "You are not permitted to create schedules in this namespace: it takes the role edit or admin." } }
        }
    };
    let command = format!("kubectl nacre schedule create nightly --schedule '{}' -n {namespace}", USUAL[0].0);
    Ok(framed(&person, Place::of(&namespace, "/schedules", "New schedule", command), &main).await)
}

pub(in crate::console) async fn create(
    Path(namespace): Path<String>,
    posted: Posted,
) -> Result<Response, Failed> {
    let session = posted.person.at(&namespace)?;
    let flags = flags(posted.fields(), &FIELDS);
    let name = posted.text("name");
    let new = NewObject::of(
        &posted,
        &namespace,
        ("schedule", "/schedules"),
        ("New schedule", "/new-schedule"),
        (name, &flags),
    );
    let sent = async {
        let wanted = schedule::prepared(&session, name, &flags).await?;
        if !new.is_check() {
            return create_once(&session, wanted, None).await;
        }
        let params = PostParams { dry_run: true, ..PostParams::default() };
        anyhow::Ok(session.api::<NonAdminSchedule>().create(&params, &wanted).await?)
    };
    let made = sent.await;
    let (true, Ok(wanted)) = (new.is_check(), &made) else { return new.created(made).await };
    let ahead = Box::pin(preview::calendar(&session, wanted)).await?;
    let what = html! {
        h1 { "Schedule " (name) ", before it is created" }
        p.notice.good { "The API server would accept this schedule." }
        (calendar(&ahead))
    };
    Ok(new.checked(&what, "Create").await)
}

pub(in crate::console) async fn act(
    Path((namespace, name)): Path<(String, String)>,
    posted: Posted,
) -> Result<Response, Failed> {
    let person = &posted.person;
    let session = person.at(&namespace)?;
    let name = object_name(&name)?;
    let verb = posted.text("do");
    let back = format!("/ns/{namespace}/schedules/{name}");
    match Box::pin(done(&session, name, verb, &posted)).await {
        Ok(Some(path)) => Ok(see(&path)),
        Ok(None) => Err(Failed::NotFound),
        Err(error) => {
            let command = format!("kubectl nacre schedule {} {name} -n {namespace}", quoted(verb));
            let refused = Refused { title: "Nothing was changed", back: &back, command: &command };
            refused.show(person, Place::of(&namespace, "/schedules", name, String::new()), &error).await
        }
    }
}

/// Does what a button says; where to go then, or none if there is no such button.
async fn done(session: &Session, name: &str, verb: &str, posted: &Posted) -> Done<Option<String>> {
    let namespace = &session.namespace;
    match verb {
        "pause" | "resume" => change::set_paused(session, name, verb == "pause").await?,
        "confirm" => change::confirm_one(session, name).await?,
        "run" => {
            let (found, _) = list::one::<NonAdminSchedule>(session, name).await?;
            let made = create_once(session, change::as_run(found), None).await?;
            let made = made.metadata.name.unwrap_or_default();
            return Ok(Some(format!("/ns/{namespace}/backups/{made}")));
        }
        "delete" => {
            if posted.text("confirm") != name {
                bail!(
                    "write the name of the schedule, {name}, to confirm; {:?} is another",
                    posted.text("confirm")
                );
            }
            let with_backups = posted.text("backups") == "delete";
            Deletion::find(session, name).await?.carry_out(session, with_backups).await?;
            return Ok(Some(format!("/ns/{namespace}/schedules")));
        }
        _ => return Ok(None),
    }
    Ok(Some(format!("/ns/{namespace}/schedules/{name}")))
}
