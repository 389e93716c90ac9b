//! The certificate by which the API server knows nacre: made once, shared by all replicas, replaced in time.
//!
//! An authority signs one certificate and its key is thrown away. To replace them without a single refused connection,
//! the next pair is stored next to the current one first, and its authority into the bundle; when every API server has
//! had time to see that, it becomes the current one. The old authority stays in the bundle until the next time.

use std::collections::BTreeMap;
use std::time::Duration;

use api::{Hidden, HiddenSecret, Kind};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;
use kube::core::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::ownership::annotation;
use crate::{Action, Object, Plan, Target};

/// Name of the Secret, in Velero's namespace.
pub const SECRET: &str = "nacre-webhook";

/// Since when the next certificate has been waiting for its turn.
const NEXT_SINCE: &str = "nacre.dev/next-since";

const END: &str = "-----END CERTIFICATE-----";

/// A certificate with its key, and the authority that signed it, all in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    /// The authority.
    pub authority: String,
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

/// How good a certificate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Validity {
    /// It is not there, not for these names, not by these authorities, or out of date.
    Invalid,
    /// It will be out of date soon.
    Expiring,
    /// It will do.
    Valid,
}

/// A configuration by which API servers call nacre: the one that reviews requests, or the one that records who asks.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Its kind.
    pub kind: Kind,
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Whom to call; what is not about that is kept as it is.
    pub webhooks: Vec<Webhook>,
}

/// Whom API servers call, and everything else that a configuration says of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// Whom to call, and by which authority it is known.
    pub client_config: WebhookClientConfig,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl Configuration {
    /// One that was read. What cannot be understood has no webhooks.
    pub fn of(kind: Kind, found: &impl Serialize) -> Self {
        let found = serde_json::to_value(found).unwrap_or_default();
        let metadata = serde_json::from_value(found["metadata"].clone()).unwrap_or_default();
        let webhooks = serde_json::from_value(found["webhooks"].clone()).unwrap_or_default();
        Self { kind, metadata, webhooks }
    }
}

/// Everything the decision reads.
#[derive(Clone, Copy)]
pub struct Observed<'a> {
    /// Velero's namespace.
    pub namespace: &'a str,
    /// What is stored.
    pub secret: Option<&'a HiddenSecret>,
    /// How good the stored certificate is.
    pub current: Validity,
    /// How good the one is that is to follow it.
    pub next: Validity,
    /// Whom the API server asks.
    pub configurations: &'a [Configuration],
    /// A pair that was made just now, if one is needed: keys are random, and decisions are not.
    pub fresh: Option<&'a Pair>,
    /// How long every API server has to see a new authority before it is relied on.
    pub settle: Duration,
    /// The current time, given by the caller.
    pub now: Timestamp,
}

/// The names by which API servers call nacre, as the configurations have them.
pub fn names(configurations: &[Configuration]) -> Vec<String> {
    let mut names = Vec::new();
    for webhook in configurations.iter().flat_map(|configuration| &configuration.webhooks) {
        let called = &webhook.client_config;
        names.extend(called.service.as_ref().map(|of| format!("{}.{}.svc", of.name, of.namespace)));
        names.extend(called.url.as_deref().and_then(host));
    }
    names.sort();
    names.dedup();
    names
}

/// The host of a URL, without its port.
fn host(url: &str) -> Option<String> {
    let uri: http::Uri = url.parse().ok()?;
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty()).then(|| host.to_owned())
}

/// Whether a new pair is needed, given how good the stored ones are.
pub fn needs_fresh(current: Validity, next: Validity) -> bool {
    next == Validity::Invalid && current < Validity::Valid
}

/// Decides about the certificate and the bundle.
pub fn decide(seen: &Observed<'_>) -> Plan {
    let fresh = seen.fresh.filter(|_| needs_fresh(seen.current, seen.next));
    let Some(secret) = seen.secret else {
        let first = fresh.map(|fresh| Action::Create(first(seen.namespace, fresh)));
        return Plan::done().then_if(first).again_at_once();
    };
    let target = Target::of(Kind::Secret, &secret.metadata);
    let change = match (seen.current, fresh) {
        // Nothing to be careful with.
        (Validity::Invalid, Some(fresh)) => Some(replacement(fresh)),
        (_, Some(fresh)) => Some(staged(seen.now, fresh, secret)),
        (Validity::Invalid, None) if seen.next > Validity::Invalid => Some(promotion(secret)),
        _ if seen.next > Validity::Invalid && seen.settled(secret) => Some(promotion(secret)),
        _ => None,
    };
    let plan = bundle_patches(seen, secret).into_iter().fold(Plan::done(), Plan::then);
    match change {
        Some(change) => plan.then(Action::Patch(target, change)).again_at_once(),
        None => plan,
    }
}

impl Observed<'_> {
    /// Whether every API server knows the authority of the next certificate by now.
    fn settled(&self, secret: &HiddenSecret) -> bool {
        // Who knows since when is as good as since long ago.
        let since =
            annotation(&secret.metadata, NEXT_SINCE).and_then(|since| since.parse::<Timestamp>().ok());
        let waited = since.is_none_or(|since| self.now.duration_since(since).unsigned_abs() >= self.settle);
        waited && bundle_patches(self, secret).is_empty()
    }
}

/// What one key of the Secret holds.
pub fn stored<'a>(secret: &'a HiddenSecret, key: &str) -> &'a [u8] {
    secret.data.get(key).map(Hidden::reveal).unwrap_or_default()
}

fn first(namespace: &str, fresh: &Pair) -> Object {
    let Pair { authority, certificate, key } = fresh;
    let hidden = |text: &String| Hidden::from(text.clone().into_bytes());
    let secret = HiddenSecret {
        metadata: ObjectMeta {
            name: Some(SECRET.to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        type_: Some("kubernetes.io/tls".to_owned()),
        data: BTreeMap::from([
            ("ca.crt".to_owned(), hidden(authority)),
            ("tls.crt".to_owned(), hidden(certificate)),
            ("tls.key".to_owned(), hidden(key)),
        ]),
    };
    let mut object = Object::of(Kind::Secret, &secret);
    object.body["apiVersion"] = json!(Kind::Secret.api_version());
    object.body["kind"] = json!(Kind::Secret.name());
    object
}

fn encoded(bytes: &[u8]) -> Value {
    // Bytes always become JSON.
    serde_json::to_value(ByteString(bytes.to_vec())).unwrap_or_default()
}

fn replacement(fresh: &Pair) -> Value {
    json!({
        "metadata": {"annotations": {NEXT_SINCE: null}},
        "data": {
            "ca.crt": encoded(fresh.authority.as_bytes()),
            "tls.crt": encoded(fresh.certificate.as_bytes()),
            "tls.key": encoded(fresh.key.as_bytes()),
            "next.crt": null,
            "next.key": null,
        },
    })
}

/// The newest authority comes first in the bundle; the one before it is the current one's.
fn staged(now: Timestamp, fresh: &Pair, secret: &HiddenSecret) -> Value {
    let bundle = String::from_utf8_lossy(stored(secret, "ca.crt"));
    let current = bundle.find(END).map_or("", |end| &bundle[..end + END.len()]);
    let both = format!("{}\n{}\n", fresh.authority.trim_end(), current.trim());
    json!({
        "metadata": {"annotations": {NEXT_SINCE: now.to_string()}},
        "data": {
            "ca.crt": encoded(both.as_bytes()),
            "next.crt": encoded(fresh.certificate.as_bytes()),
            "next.key": encoded(fresh.key.as_bytes()),
        },
    })
}

fn promotion(secret: &HiddenSecret) -> Value {
    json!({
        "metadata": {"annotations": {NEXT_SINCE: null}},
        "data": {
            "tls.crt": encoded(stored(secret, "next.crt")),
            "tls.key": encoded(stored(secret, "next.key")),
            "next.crt": null,
            "next.key": null,
        },
    })
}

/// Updates the caBundle of each configuration in which it differs.
fn bundle_patches(seen: &Observed<'_>, secret: &HiddenSecret) -> Vec<Action> {
    let bundle = stored(secret, "ca.crt");
    let known =
        |webhook: &Webhook| webhook.client_config.ca_bundle.as_ref().is_some_and(|given| given.0 == bundle);
    let stale = |one: &&Configuration| !bundle.is_empty() && !one.webhooks.iter().all(known);
    let patch = |configuration: &Configuration| {
        let mut webhooks = configuration.webhooks.clone();
        for webhook in &mut webhooks {
            webhook.client_config.ca_bundle = Some(ByteString(bundle.to_vec()));
        }
        // A list is replaced as a whole, so the patch counts only for what was seen: the executor sends its version along.
        let target = Target::of(configuration.kind, &configuration.metadata);
        Action::Patch(target, json!({ "webhooks": webhooks }))
    };
    seen.configurations.iter().filter(stale).map(patch).collect()
}

#[cfg(test)]
#[path = "certificate_tests.rs"]
mod tests;
