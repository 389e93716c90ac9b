//! Forms: what was filled in, as flags of a command, and the object that it asks for.

use anyhow::Error;
use api::NonAdminBackupStorageLocation;
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use kube::{Api, api::PostParams};
use maud::{Markup, html};
use serde::Serialize;
use serde_json::Value;

use super::super::person::Posted;
use super::{Failed, Place, Refused, framed, in_shell, object_name, quoted, see};
use crate::{
    connect::Session,
    list::{self, Readable},
    send::generated,
};

/// A form that asks for a new object, and the command that does the same.
pub(super) struct NewObject<'a> {
    posted: &'a Posted,
    namespace: &'a str,
    /// The tab of its kind.
    tab: &'static str,
    title: &'static str,
    /// What it is called.
    noun: &'static str,
    /// The page with the form, with what was filled in.
    back: String,
    command: String,
}

impl<'a> NewObject<'a> {
    /// `form` is where it can be changed.
    pub(super) fn of(
        posted: &'a Posted,
        namespace: &'a str,
        (noun, tab): (&'static str, &'static str),
        (title, form): (&'static str, &str),
        (name, flags): (&str, &[String]),
    ) -> Self {
        let back = posted.back(&format!("/ns/{namespace}{form}"));
        let command =
            format!("kubectl nacre {noun} create {} -n {namespace}{}", quoted(name), in_shell(flags));
        Self { posted, namespace, tab, title, noun, back, command }
    }

    /// Whether somebody only wants to see what would happen.
    pub(super) fn is_check(&self) -> bool {
        self.posted.text("do") == "check"
    }

    fn place(&self, title: &'a str, command: String) -> Place<'a> {
        Place::of(self.namespace, self.tab, title, command)
    }

    pub(super) async fn refused(&self, error: &Error) -> Result<Response, Failed> {
        let title = format!("This {} was not created", self.noun);
        let refused = Refused { title: &title, back: &self.back, command: &self.command };
        refused.show(&self.posted.person, self.place(self.title, String::new()), error).await
    }

    /// What would happen, and the form again: to send it by this button, or to change it.
    pub(super) async fn checked(&self, what: &Markup, send: &str) -> Response {
        let main = html! {
            (what)
            form method="post" action={ "/ns/" (self.namespace) (self.tab) } {
                (self.posted.again())
                div.actions {
                    button name="do" value="create" { (send) }
                    a.button.second href=(self.back) { "Change it" }
                }
            }
        };
        let place = self.place("What would happen", format!("{} --dry-run=server", self.command));
        framed(&self.posted.person, place, &main).await
    }

    /// The page of what was made, or why it was not.
    pub(super) async fn created<K: Readable>(&self, made: anyhow::Result<K>) -> Result<Response, Failed> {
        match made {
            Ok(made) => {
                let name = made.meta().name.as_deref().unwrap_or_default();
                Ok(see(&format!("/ns/{}{}/{name}", self.namespace, self.tab)))
            }
            Err(error) => self.refused(&error).await,
        }
    }
}

/// A form that is sent again so soon was sent twice, and asks for one object.
const TWICE: SignedDuration = SignedDuration::from_mins(1);

/// Creates what a form asks for. If it was created a moment ago, by the same form, it is that one. Where nobody chose the
/// name, `stem` makes another one of it if an older object has it.
pub(super) async fn create_once<K: Readable>(
    session: &Session,
    mut wanted: K,
    stem: Option<&str>,
) -> anyhow::Result<K> {
    let api: Api<K> = session.api();
    let error = match api.create(&PostParams::default(), &wanted).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => kube::Error::Api(status),
        created => return Ok(created?),
    };
    let now = Timestamp::now();
    let (found, _) = list::one::<K>(session, wanted.meta().name.as_deref().unwrap_or_default()).await?;
    let created = found.meta().creation_timestamp.as_ref().map(|time| time.0);
    let is_new = created.is_some_and(|created| now.duration_since(created) < TWICE);
    if is_new && found.meta().deletion_timestamp.is_none() && spec_of(&wanted)? == spec_of(&found)? {
        return Ok(found);
    }
    let Some(stem) = stem else { return Err(error.into()) };
    wanted.meta_mut().name = Some(generated(stem, now));
    Box::pin(create_once(session, wanted, None)).await
}

fn spec_of(object: &impl Serialize) -> anyhow::Result<Value> {
    Ok(serde_json::to_value(object)?["spec"].take())
}

/// The name that a form carries for an object that gets none, so that sending it twice names one object.
pub(in crate::console) const UNNAMED: &str = "unnamed";

/// The name for an object that nobody named: what the form carries, if it is one.
pub(super) fn unnamed(posted: &Posted, stem: &str) -> String {
    let carried = posted.text(UNNAMED);
    let is_ours = carried.starts_with(stem) && object_name(carried).is_ok();
    if is_ours { carried.to_owned() } else { generated(stem, Timestamp::now()) }
}

/// The flags that a form says, each in one argument so that no value becomes a flag. Several fields of one name are one
/// flag, as a command line has it; a field whose flag takes no value is the flag.
pub(super) fn flags(fields: &[(String, String)], known: &[(&str, &str)]) -> Vec<String> {
    let values = |field: &str| {
        let given = fields.iter().filter(|(name, value)| name == field && !value.trim().is_empty());
        given.map(|(_, value)| value.trim()).collect::<Vec<_>>()
    };
    let flag = |(field, flag): &(&str, &str)| {
        let values = values(field);
        if values.is_empty() {
            return None;
        }
        Some(match flag.strip_suffix('!') {
            Some(plain) => plain.to_owned(),
            None => format!("{flag}={}", values.join(",")),
        })
    };
    known.iter().filter_map(flag).collect()
}

/// Which storage, in a form.
pub(super) fn storage(own: &[NonAdminBackupStorageLocation], chosen: &str) -> Markup {
    html! {
        label for="location" { "Storage" }
        select id="location" name="location" {
            option value="" { "the cluster's own" }
            @for location in own {
                @let name = location.metadata.name.as_deref().unwrap_or_default();
                option value=(name) selected[name == chosen] { (name) }
            }
        }
    }
}

/// What a form says in a field; empty if it says nothing.
pub(super) fn given<'a>(fields: &'a [(String, String)], name: &str) -> &'a str {
    fields.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_become_flags_and_values_stay_values() {
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let fields = [
            field("kind", "a"),
            field("ttl", " --yes "),
            field("kind", "b"),
            field("x", ""),
            field("no", "on"),
        ];
        let known = [("kind", "--kinds"), ("ttl", "--ttl"), ("x", "--x"), ("no", "--no!")];
        assert_eq!(flags(&fields, &known), ["--kinds=a,b", "--ttl=--yes", "--no"]);
    }
}
