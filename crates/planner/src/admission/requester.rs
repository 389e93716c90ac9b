//! Who asked. nacre checks the permissions of the person behind a request, so the record of that person must not be
//! forged: not by hand, not later, not through a subresource, not while nacre is down.
//!
//! The API server writes the record itself where it knows mutating policies (`record`), else nacre's webhook does
//! (`recorder`). This policy refuses every other value. An object without a record may stay without: it is older, or
//! nobody was there to write one.

use api::{Kind, labels};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::Value;

use crate::install::{SERVICE_ACCOUNT, TENANT_KINDS};
use crate::vap::{Draft, cel::at};

/// The most characters of all groups together. The rest is cut off, which only lowers permissions.
pub(super) const GROUPS: usize = 12_000;

/// What OpenShift limits a token to, among the extra fields of a user.
pub(super) const SCOPES: &str = "scopes.authorization.openshift.io";

/// The most bytes of a record. Of a user with a longer one nothing is recorded but that, and nobody has no permissions.
pub(super) const LONGEST: usize = 16 * 1024;

/// The variable with the keys of further extra fields that are recorded, which the installation lists.
const EXTRA_KEYS: &str = "extra_keys";

/// Where an object lists which extra fields of a user are recorded, as JSON: an expression in the policies, an annotation of
/// the webhook's configuration. None in other objects.
pub fn extra_keys(policy: &mut Value) -> Option<&mut Value> {
    if policy["metadata"]["annotations"][labels::REQUESTER_EXTRA].is_string() {
        return Some(&mut policy["metadata"]["annotations"][labels::REQUESTER_EXTRA]);
    }
    let variables = policy.pointer_mut("/spec/variables")?.as_array_mut()?;
    variables.iter_mut().find(|one| one["name"] == EXTRA_KEYS).map(|one| &mut one["expression"])
}

/// Velero's kinds by which tenants ask with Velero's own tools, in their own namespaces.
pub(super) const VELERO_VIEW: [Kind; 5] =
    [Kind::Backup, Kind::Restore, Kind::DeleteBackupRequest, Kind::DownloadRequest, Kind::Schedule];

/// A CEL text as JSON. Control characters stay as they are: then the record cannot be read, and permits nothing.
fn json(text: &str) -> String {
    format!(r#"'"' + {text}.replace('\\', '\\\\').replace('"', '\\"') + '"'"#)
}

/// A CEL list of texts as JSON, without the brackets.
fn json_list(list: &str) -> String {
    format!("({list}).map(one, {}).join(',')", json("one"))
}

/// Adds the words that both policies share: who asks, and whether what is asked for is new or changed.
pub(super) fn described(draft: Draft, namespace: &str) -> Draft {
    let nacre = format!("system:serviceaccount:{namespace}:{SERVICE_ACCOUNT}");
    let backups = Kind::NonAdminBackup.plural();
    let velero = Kind::Backup.group();
    // Whether a backup is to be deleted says nothing about what is in it: whoever asks for that is recorded apart.
    let asked = |object: &str| {
        format!(
            "request.resource.resource == '{backups}' ? dyn({}) : dyn({})",
            at(object, &["spec", "backupSpec"], "{}"),
            at(object, &["spec"], "{}")
        )
    };
    let deletes = |object: &str| {
        format!(
            "request.resource.resource == '{backups}' && dyn({}) == true",
            at(object, &["spec", "deleteBackup"], "false")
        )
    };
    let annotation = |object: &str, name: &str| {
        let all = at(object, &["metadata", "annotations"], "{}");
        format!("'{name}' in ({all}) ? ({all})['{name}'] : ''")
    };
    let user = "request.userInfo";
    let cut = format!(
        "size(variables.all_groups) <= {GROUPS} ? variables.all_groups : \
         variables.all_groups.substring(0, variables.all_groups.lastIndexOf('\",\"', {GROUPS}) + 1)"
    );
    draft
        // Objects that nacre makes for somebody carry that somebody's record.
        .only_if("not-nacre", format!("{user}.username != '{nacre}'"))
        // Velero's own objects, in Velero's namespace, are Velero's.
        .only_if("not-velero", format!("request.resource.group != '{velero}' || request.namespace != '{namespace}'"))
        .with("all_groups", json_list(&format!("has({user}.groups) ? {user}.groups : []")))
        .with("groups", cut)
        .with(
            "scopes",
            json_list(&format!("has({user}.extra) && '{SCOPES}' in {user}.extra ? {user}.extra['{SCOPES}'] : []")),
        )
        .with("uid", format!("has({user}.uid) ? {user}.uid : ''"))
        .with(EXTRA_KEYS, "[]")
        .with(
            "extra",
            format!(
                "has({user}.extra) ? variables.{EXTRA_KEYS}.filter(key, key in {user}.extra)\
                 .map(key, {} + ':[' + {} + ']').join(',') : ''",
                json("key"),
                json_list(&format!("{user}.extra[key]")),
            ),
        )
        .with(
            "whole",
            format!(
                r#"'{{"user":' + {} + ',"uid":' + {} + ',"groups":[' + variables.groups + '],"scopes":[' + variables.scopes + ']' + (variables.extra == '' ? '' : ',"extra":{{' + variables.extra + '}}') + '}}'"#,
                json(&format!("{user}.username")),
                json("variables.uid"),
            ),
        )
        .with(
            "requester",
            format!(r#"size(bytes(variables.whole)) <= {LONGEST} ? variables.whole : '{{"user":""}}'"#),
        )
        .with("asked", asked("object"))
        .with("old_asked", asked("oldObject"))
        .with("news", "request.operation == 'CREATE' || variables.asked != variables.old_asked")
        .with("deletes", deletes("object"))
        .with("deleted_before", deletes("oldObject"))
        .with("deletion_news", "variables.deletes && !variables.deleted_before")
        .with("record", annotation("object", labels::REQUESTER))
        .with("old_record", annotation("oldObject", labels::REQUESTER))
        .with("deletion_record", annotation("object", labels::DELETION_REQUESTER))
        .with("old_deletion_record", annotation("oldObject", labels::DELETION_REQUESTER))
}

/// The record is the requester's own where something new is asked for, and unchanged elsewhere.
pub(super) fn own(namespace: &str) -> ValidatingAdmissionPolicy {
    let mut ours: Vec<String> = TENANT_KINDS.iter().map(|kind| kind.plural().to_owned()).collect();
    ours.extend(TENANT_KINDS.iter().map(|kind| format!("{}/status", kind.plural())));
    let ours: Vec<&str> = ours.iter().map(String::as_str).collect();
    let veleros = VELERO_VIEW.map(Kind::plural);
    let over = [(Kind::NonAdminBackup.group(), ours.as_slice()), (Kind::Backup.group(), veleros.as_slice())];
    let right = |record: &str, news: &str| {
        format!(
            "variables.{news} ? (variables.{record} == variables.requester || \
             (variables.{record} == '' && variables.old_{record} == '')) : variables.{record} == variables.old_{record}"
        )
    };
    described(Draft::over("nacre-requester", &["CREATE", "UPDATE"], &over), namespace)
        .demand(
            right("record", "news"),
            "the annotation nacre.dev/requester is the API server's record of who asked: leave it as it is",
        )
        .demand(
            right("deletion_record", "deletion_news"),
            "the annotation nacre.dev/deletion-requester is the API server's record of who asked: leave it as it is",
        )
        .done()
}
