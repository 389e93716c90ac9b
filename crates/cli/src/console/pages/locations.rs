//! Storage that a namespace brings, and whether the administrators have approved it.

use api::NonAdminBackupStorageLocation;
use axum::{
    extract::{Path, Query},
    response::Response,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use maud::{Markup, html};

use super::{
    Cursor, Failed, List, NewObject, Place, create_once, flags, framed, given, object_name, what_would_happen,
};
use crate::{
    connect::Session,
    console::{
        html::{headline, page},
        person::{Person, Posted, may},
    },
    describe, explain,
    location::{self, known::Known, state::LocationState},
    output::Format,
};

/// The fields of the form, and the flags they are.
const FIELDS: [(&str, &str); 6] = [
    ("provider", "--provider"),
    ("bucket", "--bucket"),
    ("prefix", "--prefix"),
    ("region", "--region"),
    ("config", "--config"),
    ("mode", "--access-mode"),
];

const LIST: List = List {
    path: "/locations",
    title: "Storage",
    command: ("location get", ""),
    new: ("/new-location", "Bring a bucket"),
    nothing: "This namespace has no storage of its own: its backups are in the cluster's.",
    first: "",
};

pub(in crate::console) async fn list(
    person: Person,
    Path(namespace): Path<String>,
    Query(from): Query<Cursor>,
) -> Result<Response, Failed> {
    let table = |found: &_| {
        LIST.table(&namespace, &location::get::table(found, Format::Table, false, Timestamp::now()))
    };
    LIST.show::<NonAdminBackupStorageLocation>(&person, &namespace, &from, table).await
}

pub(in crate::console) async fn show(
    person: Person,
    Path((namespace, name)): Path<(String, String)>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let name = object_name(&name)?;
    let (found, _, seen) = describe::location::look(&session, name).await?;
    let state = LocationState::from(&found);
    let watch = state.outcome().is_none().then(|| format!("/ns/{namespace}/locations/{name}/live"));
    let main = html! {
        div id="live" data-watch=[watch] {
            p.crumbs { a href={ "/ns/" (namespace) "/locations" } { "Storage" } }
            (approval(name, state))
            (page(&seen))
        }
    };
    let command = format!("kubectl nacre location describe {name} -n {namespace}");
    Ok(framed(&person, Place::of(&namespace, "/locations", name, command), &main).await)
}

/// Whether it is approved and can be used, in one look.
fn approval(name: &str, state: LocationState<'_>) -> Markup {
    headline(name, &state.cell(), state.word(), &state.detail(), &html! {})
}

/// More names than these are not offered: the name is written instead.
const SECRETS: u32 = 500;

/// The names of Secrets; none if the person may not list them, or there are too many. Their data is not asked for.
async fn secrets(session: &Session) -> Option<Vec<String>> {
    let found = session.api::<Secret>().list_metadata(&ListParams::default().limit(SECRETS)).await.ok()?;
    let is_whole = found.metadata.continue_.is_none_or(|token| token.is_empty());
    is_whole.then(|| found.items.iter().map(kube::ResourceExt::name_any).collect())
}

pub(in crate::console) async fn form(
    person: Person,
    Path(namespace): Path<String>,
    Query(fields): Query<Vec<(String, String)>>,
) -> Result<Response, Failed> {
    let session = person.at(&namespace)?;
    let (own, can, secrets) = tokio::join!(
        Known::own(&session),
        may(&session, "create", "nonadminbackupstoragelocations", &namespace),
        secrets(&session)
    );
    // The other two answers are also "no" if the API server gives none, or does not know the person any more.
    own?;
    let given = |name: &str| given(&fields, name);
    let text = |name: &str, label: &str, hint: &str, needed: bool| {
        html! {
            label for=(name) { (label) " " @if !hint.is_empty() { span.hint { (hint) } } }
            input type="text" id=(name) name=(name) value=(given(name)) required[needed] autocomplete="off" spellcheck="false";
        }
    };
    let key = if given("key").is_empty() { "cloud" } else { given("key") };
    let main = html! {
        p.crumbs { a href={ "/ns/" (namespace) "/locations" } { "Storage" } }
        h1 { "Bring a bucket to namespace " (namespace) }
        @if can {
            form.card method="post" action={ "/ns/" (namespace) "/locations" } {
                input type="hidden" name="csrf" value=(person.csrf);
                p.lead { "An administrator may have to approve it. It cannot be changed later; make a new one instead." }
                (text("name", "Name", "", true))
                label for="provider" { "Provider" }
                select id="provider" name="provider" {
                    @for (value, words) in [("aws", "aws, and everything S3-compatible"), ("azure", "azure"), ("gcp", "gcp")] {
                        option value=(value) selected[given("provider") == value] { (words) }
                    }
                }
                (text("bucket", "Bucket", "", true))
                (text("prefix", "Prefix", "in the bucket; nacre puts the namespace before it", false))
                (text("region", "Region", "", false))
                (text("config", "More settings", "such as s3Url=https://minio.example.com,s3ForcePathStyle=true", false))
                @match &secrets {
                    Some(names) => {
                        label for="secret" { "Secret " span.hint { "of this namespace, with the credential" } }
                        select id="secret" name="secret" required {
                            @if names.is_empty() { option value="" { "there is no Secret in this namespace" } }
                            @for name in names { option value=(name) selected[given("secret") == name] { (name) } }
                        }
                    },
                    None => (text("secret", "Secret", "of this namespace, with the credential", true)),
                }
                label for="key" { "Key " span.hint { "in the Secret" } }
                input type="text" id="key" name="key" value=(key) required autocomplete="off" spellcheck="false";
                p.hint {
                    "The console names the Secret. Only \"Show what would happen\" reads it, as you, to see whether nacre could use "
                    "it; what is in it is neither shown nor kept. To make one: " code { "kubectl create secret generic bucket-key --from-file=cloud=./credentials -n " (namespace) }
                }
                label for="mode" { "Access" }
                select id="mode" name="mode" {
                    option value="" { "ReadWrite" }
                    option value="ReadOnly" selected[given("mode") == "ReadOnly"] { "ReadOnly" }
                }
                div.actions {
                    button name="do" value="create" { "Ask for it" }
                    button.second name="do" value="check" { "Show what would happen" }
                }
            }
        } @else {
            div.card { p { "You are not permitted to bring storage to this namespace: it takes the role edit or admin." } }
        }
    };
    let command = format!(
        "kubectl nacre location create mine --provider aws --bucket BUCKET --credential SECRET=cloud -n {namespace}"
    );
    Ok(framed(&person, Place::of(&namespace, "/locations", "Bring a bucket", command), &main).await)
}

pub(in crate::console) async fn create(
    Path(namespace): Path<String>,
    posted: Posted,
) -> Result<Response, Failed> {
    let session = posted.person.at(&namespace)?;
    let mut flags = flags(posted.fields(), &FIELDS);
    flags.push(format!("--credential={}={}", posted.text("secret"), posted.text("key")));
    let name = posted.text("name");
    let new = NewObject::of(
        &posted,
        &namespace,
        ("location", "/locations"),
        ("Bring a bucket", "/new-location"),
        (name, &flags),
    );
    let prepared = match location::prepared(name, &flags) {
        Ok(prepared) => prepared,
        Err(error) => return new.refused(&error).await,
    };
    if new.is_check() {
        let explained = Box::pin(explain::of_new_location(&session, prepared)).await?;
        return Ok(new.checked(&what_would_happen(&explained), "Ask for it").await);
    }
    new.created(create_once(&session, prepared, None).await).await
}
