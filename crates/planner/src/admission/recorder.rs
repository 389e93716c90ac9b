//! The record of who asked, written by nacre's webhook where the API server has no policies that change objects
//! (`record`, `finalizers`).
//!
//! The rule is that of the policies, which cannot be shared: they are written in CEL. `requester` refuses every record
//! that differs from its own in a single byte, so this one has to build the same text, and a test compares the two.

use api::{Kind, labels};
use serde::Deserialize;
use serde_json::{Value, json};

use super::requester::{GROUPS, LONGEST, NOBODY, VELERO_VIEW};
use crate::install::uninstall::FINALIZERS;
use crate::install::{SERVICE_ACCOUNT, TENANT_KINDS};
use crate::requester::extra::SCOPES;

/// Who sends a request, as the authenticator says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UserInfo {
    username: String,
    uid: String,
    groups: Vec<String>,
    extra: std::collections::BTreeMap<String, Vec<String>>,
}

/// A request of somebody.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) kind: Kind,
    pub(super) namespace: &'a str,
    pub(super) user: &'a UserInfo,
    pub(super) object: &'a Value,
    /// The old object, on update.
    pub(super) old: Option<&'a Value>,
}

/// Which extra fields of users are recorded, and where Velero is.
#[derive(Clone, Copy, Debug)]
pub struct Recorder<'a> {
    /// Velero's namespace.
    pub admin_namespace: &'a str,
    /// Keys of the extra fields.
    pub extra: &'a [String],
}

impl Recorder<'_> {
    /// The changes to an object, as a JSON patch.
    pub(super) fn patch(&self, asked: &Asked<'_>) -> Vec<Value> {
        let nacre = format!("system:serviceaccount:{}:{SERVICE_ACCOUNT}", self.admin_namespace);
        let ours = TENANT_KINDS.contains(&asked.kind);
        let view = VELERO_VIEW.contains(&asked.kind) && asked.namespace != self.admin_namespace;
        // Objects that nacre makes for somebody carry that somebody's record.
        if !(ours || view) || asked.user.username == nacre {
            return Vec::new();
        }
        let mut patch = Vec::new();
        let annotations = asked.object["metadata"]["annotations"].as_object();
        if annotations.is_none() {
            patch.push(json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
        }
        for (name, value) in self.records(asked) {
            let place = format!("/metadata/annotations/{}", name.replace('~', "~0").replace('/', "~1"));
            patch.push(json!({"op": "add", "path": place, "value": value}));
        }
        if annotations.is_none() && patch.len() == 1 {
            patch.clear();
        }
        patch.extend(finalizer(asked));
        patch
    }

    /// The records that are written, by their annotations.
    fn records(&self, asked: &Asked<'_>) -> Vec<(&'static str, String)> {
        let news = asked.old.is_none_or(|old| asked.wish(asked.object) != asked.wish(old));
        let deletes = |object: &Value| {
            asked.kind == Kind::NonAdminBackup && object["spec"]["deleteBackup"] == Value::Bool(true)
        };
        let deletion_news = deletes(asked.object) && !asked.old.is_some_and(deletes);
        [(labels::REQUESTER, news), (labels::DELETION_REQUESTER, deletion_news)]
            .into_iter()
            .filter_map(|(name, news)| {
                let found =
                    |object: &Value| object["metadata"]["annotations"][name].as_str().map(str::to_owned);
                let value = if news {
                    Some(self.record(asked.user))
                } else {
                    // Whoever replaces the whole object without it gets it back.
                    asked.old.and_then(found).filter(|_| found(asked.object).unwrap_or_default().is_empty())
                };
                value.filter(|value| !value.is_empty()).map(|value| (name, value))
            })
            .collect()
    }

    /// The record of a user.
    pub(super) fn record(&self, user: &UserInfo) -> String {
        let fields = |key: &String| {
            let values = user.extra.get(key).filter(|values| !values.is_empty())?;
            Some(format!("{}:[{}]", text(key), list(values)))
        };
        let extra: Vec<_> = self.extra.iter().filter_map(fields).collect();
        let extra =
            if extra.is_empty() { String::new() } else { format!(",\"extra\":{{{}}}", extra.join(",")) };
        let scopes = user.extra.get(SCOPES).map(|scopes| list(scopes)).unwrap_or_default();
        let whole = format!(
            "{{\"user\":{},\"uid\":{},\"groups\":[{}],\"scopes\":[{scopes}]{extra}}}",
            text(&user.username),
            text(&user.uid),
            cut(list(&user.groups)),
        );
        if whole.len() <= LONGEST { whole } else { NOBODY.to_owned() }
    }
}

impl Asked<'_> {
    /// What is asked for; none for nothing. Whether a backup is to be deleted says nothing about what is in it.
    fn wish<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        let spec = &object["spec"];
        let wish = if self.kind == Kind::NonAdminBackup { &spec["backupSpec"] } else { spec };
        Some(wish).filter(|wish| !wish.is_null() && **wish != json!({}))
    }
}

/// nacre is there, or it would not answer: so somebody is there to remove it.
fn finalizer(asked: &Asked<'_>) -> Option<Value> {
    // nacre puts none onto schedules: it has nothing to do when one goes.
    let held = FINALIZERS.iter().filter(|(kind, _)| *kind != Kind::NonAdminSchedule);
    let (_, own) = held.into_iter().find(|(kind, _)| *kind == asked.kind && asked.old.is_none())?;
    let mut all = asked.object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    if all.iter().any(|one| one == own) {
        return None;
    }
    all.push(json!(own));
    Some(json!({"op": "add", "path": "/metadata/finalizers", "value": all}))
}

/// A text as JSON, as the policies write it.
fn text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\u0022"))
}

fn list(texts: &[String]) -> String {
    let texts: Vec<_> = texts.iter().map(|one| text(one)).collect();
    texts.join(",")
}

/// Cuts groups off between two of them. CEL counts characters, not bytes.
fn cut(groups: String) -> String {
    let Some((limit, _)) = groups.char_indices().nth(GROUPS) else { return groups };
    // The separator may begin at the limit and be two more characters long.
    let most = groups[limit..].char_indices().nth(3).map_or(groups.len(), |(more, _)| limit + more);
    let end = groups[..most].rfind("\",\"").map_or(0, |at| at + 1);
    groups[..end].to_owned()
}
