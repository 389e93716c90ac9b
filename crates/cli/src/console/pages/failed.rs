//! Why there is no page, and what is shown instead.

use anyhow::Error;
use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use maud::html;

use super::plain;
use crate::output::in_words;

/// Why there is no page.
pub(in crate::console) enum Failed {
    /// It does not exist, or is not for this person: nobody learns which.
    NotFound,
    /// The API server rejects the token from now on.
    SignedOut,
    /// The form is larger than the console takes.
    TooLarge,
    Error(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        let code = error.chain().find_map(|cause| match cause.downcast_ref() {
            Some(kube::Error::Api(status)) => Some(status.code),
            _ => None,
        });
        match code {
            Some(401) => Self::SignedOut,
            Some(403 | 404) => Self::NotFound,
            _ => Self::Error(error),
        }
    }
}

/// Whether the API server does not know the person any more.
pub(in crate::console) fn is_signed_out(error: &Error) -> bool {
    let api = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref() {
        Some(kube::Error::Api(status)) => status.code == 401,
        _ => false,
    };
    error.chain().any(api)
}

impl From<kube::Error> for Failed {
    fn from(error: kube::Error) -> Self {
        Error::from(error).into()
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let (status, title, text) = match self {
            Self::NotFound => (
                StatusCode::NOT_FOUND,
                "Nothing here",
                "It does not exist, or you are not permitted to see it. Check the name, or ask the owner of the \
                 namespace for the role view, edit or admin."
                    .to_owned(),
            ),
            Self::SignedOut => (
                StatusCode::UNAUTHORIZED,
                "Signed out",
                "The API server does not accept your credentials any more: they have expired or were revoked. Sign in \
                 again."
                    .to_owned(),
            ),
            Self::TooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "This form is too large",
                "The console takes forms of up to 64 KiB, and policies of up to 2 MiB. Nothing was done. In a shell there is \
                 no such limit: kubectl nacre policy check -f policy.yaml --requests tries a policy of any size."
                    .to_owned(),
            ),
            Self::Error(error) => (StatusCode::BAD_GATEWAY, "That did not work", in_words(&error)),
        };
        let main = html! {
            div.card.verdict.bad {
                span.mark aria-hidden="true" { "!" }
                div { h1 { (title) } p { (text) } p { a href="/" { "To the start page" } } }
            }
        };
        (status, plain(title, &main)).into_response()
    }
}
