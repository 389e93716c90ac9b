//! The start page: which namespace.

use axum::{extract::Query, response::Response};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::ListParams,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use maud::html;
use serde::Deserialize;

use super::{Failed, Place, framed, see};
use crate::{connect::Session, console::person::Person};

/// More than these are found by their name.
const MOST: u32 = 200;

pub(in crate::console) async fn show(person: Person) -> Result<Response, Failed> {
    let found = namespaces(&person.session).await?;
    let own = person.session.namespace.as_str();
    let main = html! {
        h1 { "Which namespace?" }
        form.card action="/go" {
            label for="namespace" { "Namespace" }
            input type="text" id="namespace" name="namespace" value=(own) required autocomplete="off" spellcheck="false";
            div.actions { button { "Open" } }
            @if found.is_none() {
                p.hint { "You are not permitted to list namespaces, so the console cannot offer them: write the name." }
            }
        }
        @if let Some((names, more)) = &found {
            section {
                h2 { "Namespaces you can see" }
                div.grid { @for name in names { a href={ "/ns/" (name) } { (name) } } }
                @if *more { p.hint { "These are the first " (MOST) ". Write the name of any other." } }
            }
        }
    };
    let place = Place {
        title: "Namespaces",
        namespace: None,
        admin: None,
        command: "kubectl nacre status -n NAMESPACE".to_owned(),
        acts: Vec::new(),
    };
    Ok(framed(&person, place, &main).await)
}

/// Those the person may list: OpenShift lists each person's own projects.
async fn namespaces(session: &Session) -> Result<Option<(Vec<String>, bool)>, Failed> {
    let first = ListParams::default().limit(MOST);
    let api: Api<Namespace> = Api::all(session.client.clone());
    match api.list_metadata(&first).await {
        Ok(list) => {
            let more = list.metadata.continue_.is_some_and(|token| !token.is_empty());
            return Ok(Some((list.items.iter().map(kube::ResourceExt::name_any).collect(), more)));
        }
        Err(kube::Error::Api(status)) if status.code == 401 => return Err(Failed::SignedOut),
        Err(kube::Error::Api(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let kind = GroupVersionKind::gvk("project.openshift.io", "v1", "Project");
    let api: Api<DynamicObject> =
        Api::all_with(session.client.clone(), &ApiResource::from_gvk_with_plural(&kind, "projects"));
    let projects = api.list(&first).await;
    Ok(projects.ok().map(|list| {
        let more = list.metadata.continue_.is_some_and(|token| !token.is_empty());
        (list.items.iter().map(kube::ResourceExt::name_any).collect(), more)
    }))
}

#[derive(Deserialize)]
pub(in crate::console) struct Wanted {
    namespace: String,
}

pub(in crate::console) async fn go(person: Person, Query(wanted): Query<Wanted>) -> Result<Response, Failed> {
    let session = person.at(wanted.namespace.trim())?;
    Ok(see(&format!("/ns/{}", session.namespace)))
}
