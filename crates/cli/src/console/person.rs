//! Who asks, and whether a form is theirs. A handler that takes a `Posted` cannot forget to check that.

use std::sync::Arc;

use axum::{
    Form,
    extract::{FromRequest, FromRequestParts, Request},
    http::{StatusCode, request::Parts},
    response::{IntoResponse as _, Response},
};
use jiff::Timestamp;
use k8s_openapi::api::{
    authentication::v1::SelfSubjectReview,
    authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
};
use kube::{Api, api::PostParams};
use maud::{Markup, html};

use super::{
    login::{Known, Life, Logins},
    pages::{Failed, UNNAMED, escaped, sign_in},
    serve::Console,
};
use crate::connect::Session;

/// Somebody who has signed in.
pub(super) struct Person {
    pub(super) session: Session,
    pub(super) csrf: String,
    /// Until when the person is signed in.
    pub(super) life: Life,
    /// A proxy signs the person in: signing out here would be undone by the next request.
    pub(super) is_by_proxy: bool,
}

impl FromRequestParts<Arc<Console>> for Person {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, console: &Arc<Console>) -> Result<Self, Response> {
        let cookie = console.address.cookie();
        let known = console.logins.who(&parts.headers, &cookie, Timestamp::now());
        let mut known = known.ok_or_else(|| sign_in(console, None))?;
        if known.is_unknown {
            // Anybody can send a token. Only what the API server accepts is kept.
            match user(&known.session).await {
                Ok(user) => known = console.logins.keep(&parts.headers, known, &user),
                Err(kube::Error::Api(status)) if status.code == 401 => {
                    return Err(Failed::SignedOut.into_response());
                }
                // The page itself says what is wrong.
                Err(_) => {}
            }
        }
        let Known { session, csrf, life, is_by_proxy, .. } = known;
        Ok(Self { session, csrf, life, is_by_proxy })
    }
}

impl Person {
    /// The connection for a namespace. A name that is none looks like one that does not exist.
    pub(super) fn at(&self, namespace: &str) -> Result<Session, Failed> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if namespace.is_empty() || namespace.len() > 63 || !namespace.chars().all(plain) {
            return Err(Failed::NotFound);
        }
        Ok(self.session.within(namespace))
    }
}

/// A form that this person's own page sent.
pub(super) struct Posted {
    pub(super) person: Person,
    fields: Vec<(String, String)>,
}

impl FromRequest<Arc<Console>> for Posted {
    type Rejection = Response;

    async fn from_request(request: Request, console: &Arc<Console>) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let person = Person::from_request_parts(&mut parts, console).await?;
        let request = Request::from_parts(parts, body);
        let form = Form::<Vec<(String, String)>>::from_request(request, console).await;
        let Form(fields) = form.map_err(axum::response::IntoResponse::into_response)?;
        let posted = Self { person, fields };
        if !Logins::is_own_form(&posted.person.csrf, posted.text("csrf")) {
            let words =
                "This form is not from your session. Go back, load the page again, and send it again.";
            return Err((StatusCode::FORBIDDEN, words).into_response());
        }
        Ok(posted)
    }
}

impl Posted {
    /// A field; empty if it is not there.
    pub(super) fn text(&self, name: &str) -> &str {
        self.fields.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.trim())
    }

    /// All fields.
    pub(super) fn fields(&self) -> &[(String, String)] {
        &self.fields
    }

    /// What was filled in: all fields but those about the form itself.
    fn filled_in(&self) -> impl Iterator<Item = &(String, String)> {
        self.fields.iter().filter(|(name, _)| name != "csrf" && name != "do")
    }

    /// The same for another form, which sends it again.
    pub(super) fn again(&self) -> Markup {
        html! {
            input type="hidden" name="csrf" value=(self.person.csrf);
            @for (name, value) in self.filled_in() { input type="hidden" name=(name) value=(value); }
        }
    }

    /// The page with the form, with what was filled in.
    pub(super) fn back(&self, path: &str) -> String {
        let filled_in = self.filled_in().filter(|(name, value)| name != UNNAMED && !value.is_empty());
        let pairs = filled_in.map(|(name, value)| format!("{}={}", escaped(name), escaped(value)));
        format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
    }
}

/// Whether the person may do this; not if nobody can say.
pub(super) async fn may(session: &Session, verb: &str, resource: &str, namespace: &str) -> bool {
    review(session, verb, resource, None, namespace).await
}

/// Whether the person may write the status of requests of this kind.
pub(super) async fn may_write_status(session: &Session, resource: &str) -> bool {
    let by = |verb| Box::pin(review(session, verb, resource, Some("status"), &session.namespace));
    let (patches, updates) = tokio::join!(by("patch"), by("update"));
    patches || updates
}

async fn review(
    session: &Session,
    verb: &str,
    resource: &str,
    subresource: Option<&str>,
    namespace: &str,
) -> bool {
    let api: Api<SelfSubjectAccessReview> = Api::all(session.client.clone());
    let attributes = ResourceAttributes {
        verb: Some(verb.to_owned()),
        group: Some("oadp.openshift.io".to_owned()),
        resource: Some(resource.to_owned()),
        subresource: subresource.map(str::to_owned),
        namespace: Some(namespace.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let answer = api.create(&PostParams::default(), &review).await;
    answer.is_ok_and(|answer| answer.status.is_some_and(|status| status.allowed))
}

/// Whether the API server does not accept the person any more.
pub(super) async fn is_rejected(session: &Session) -> bool {
    matches!(user(session).await, Err(kube::Error::Api(status)) if status.code == 401)
}

/// Who the API server takes the person for.
pub(super) async fn user(session: &Session) -> kube::Result<String> {
    let api: Api<SelfSubjectReview> = Api::all(session.client.clone());
    let answer = api.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
    let info = answer.status.and_then(|status| status.user_info);
    Ok(info.and_then(|info| info.username).unwrap_or_default())
}
