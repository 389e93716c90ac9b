//! What the API server asks and how it is answered. Whatever arrives is somebody's bytes: it is answered or refused, and
//! nothing else happens.

use api::{Kind, NonAdminBackupStorageLocation};
use k8s_openapi::ByteString;
use serde::de::{Error, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::recorder::{Asked, Recorder, UserInfo};
use super::requester::VELERO_VIEW;
use super::review::{ReviewedObject, review};
use crate::backup::fixed;
use crate::install::TENANT_KINDS;
use crate::location::named_key;
use crate::requester::Ask;
use crate::state::{SecretKey, State};
use crate::view::Seen;

/// A question that could be read.
#[derive(Debug, Deserialize)]
pub struct Question {
    request: Request,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    uid: String,
    kind: GroupKind,
    #[serde(default)]
    sub_resource: Option<String>,
    operation: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    #[serde(default, deserialize_with = "object")]
    object: Value,
    #[serde(default, deserialize_with = "object")]
    old_object: Value,
    #[serde(default)]
    user_info: UserInfo,
    #[serde(default)]
    dry_run: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct GroupKind {
    group: String,
    kind: String,
}

/// An object without its managed fields. No decision reads them, and a client may nest them deeper than is read here: then
/// nobody would be recorded.
fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    let text = Box::<RawValue>::deserialize(deserializer)?;
    let whole = || serde_json::from_str(text.get()).map_err(Error::custom);
    without_managed_fields(text.get()).map_or_else(|_| whole(), Ok)
}

fn without_managed_fields(text: &str) -> serde_json::Result<Value> {
    #[derive(Deserialize)]
    struct Object {
        #[serde(default)]
        metadata: Option<Metadata>,
        #[serde(flatten)]
        rest: Map<String, Value>,
    }
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(default, rename = "managedFields")]
        _managed_fields: IgnoredAny,
        #[serde(flatten)]
        rest: Map<String, Value>,
    }
    let Object { metadata, mut rest } = serde_json::from_str(text)?;
    rest.extend(metadata.map(|metadata| ("metadata".to_owned(), Value::Object(metadata.rest))));
    Ok(Value::Object(rest))
}

/// Reads an AdmissionReview.
pub fn read(body: &[u8]) -> Result<Question, String> {
    serde_json::from_slice(body).map_err(|error| format!("this is no AdmissionReview: {error}"))
}

impl Question {
    /// Which of these kinds it is about, and the old object on update; none of another kind or operation.
    fn about(&self, kinds: &[Kind]) -> Option<(Kind, Option<&Value>)> {
        let Request { kind, operation, old_object, .. } = &self.request;
        let whole = self.request.sub_resource.as_deref().unwrap_or_default().is_empty();
        let known = |known: &&Kind| known.group() == kind.group && known.name() == kind.kind;
        let kind = *kinds.iter().find(known).filter(|_| whole)?;
        match operation.as_str() {
            "CREATE" => Some((kind, None)),
            "UPDATE" => Some((kind, Some(old_object))),
            _ => None,
        }
    }

    /// What it is about, if that is for nacre to say something about.
    fn asked(&self) -> Option<ReviewedObject<'_>> {
        let (kind, old) = self.about(&TENANT_KINDS)?;
        let Request { namespace, name, object, .. } = &self.request;
        Some(ReviewedObject { kind, namespace, name, object, old })
    }

    /// The answer that records who asks, as an AdmissionReview. It refuses nothing.
    pub fn record(&self, recorder: &Recorder<'_>) -> Value {
        let Request { uid, namespace, object, user_info, .. } = &self.request;
        let about = self.about(&[&TENANT_KINDS[..], &VELERO_VIEW].concat());
        let asked = about.map(|(kind, old)| Asked { kind, namespace, user: user_info, object, old });
        let patch = asked.map(|asked| recorder.patch(&asked)).unwrap_or_default();
        let mut response = json!({"uid": uid, "allowed": true});
        if !patch.is_empty() {
            response["patchType"] = json!("JSONPatch");
            response["patch"] = json!(ByteString(json!(patch).to_string().into_bytes()));
        }
        reviewed(&response)
    }

    /// The key of a Secret that a location names: whether it is there, and what it holds, decides the answer.
    pub fn credential(&self) -> Option<SecretKey> {
        self.asked().and_then(|asked| credential(&asked))
    }

    /// What has to be found out before it can be answered.
    pub fn asks(&self, view: &State) -> Vec<Ask> {
        self.asked().map(|asked| review(view, &asked).asks).unwrap_or_default()
    }

    /// The answer, as an AdmissionReview.
    pub fn answer(&self, view: &State) -> Value {
        let mut verdict = self.asked().map(|asked| review(view, &asked)).unwrap_or_default();
        verdict.warnings.extend(self.fixed(view));
        let mut response = json!({"uid": self.request.uid, "allowed": verdict.refusal.is_none()});
        if let Some(message) = verdict.refusal {
            response["status"] =
                json!({"status": "Failure", "code": 422, "reason": "Invalid", "message": message});
        }
        if !verdict.warnings.is_empty() {
            response["warnings"] = json!(verdict.warnings);
        }
        reviewed(&response)
    }

    /// The fields of a new backup that the administrators set, for a dry run: whoever sends one wants to know.
    fn fixed(&self, view: &State) -> Vec<String> {
        let Request { namespace, dry_run, .. } = &self.request;
        let is_new = self.about(&[Kind::NonAdminBackup]).is_some_and(|(_, old)| old.is_none());
        let policy = view.policy(namespace).filter(|_| is_new && *dry_run == Some(true));
        policy.map(|policy| fixed::warnings(&policy)).unwrap_or_default()
    }
}

fn reviewed(response: &Value) -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

/// The key of a Secret that an object names, if it is a location.
pub fn credential(asked: &ReviewedObject<'_>) -> Option<SecretKey> {
    if asked.kind != Kind::NonAdminBackupStorageLocation {
        return None;
    }
    let location = Seen::<NonAdminBackupStorageLocation>::read(asked.object).object;
    let (secret, key) = named_key(&location.spec.backup_storage_location_spec)?;
    Some(SecretKey::new(asked.namespace, secret, key))
}
