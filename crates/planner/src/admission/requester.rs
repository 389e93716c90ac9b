//! Who asked. nacre checks the permissions of the person behind a request, so the record of that person must not be
//! forged: not by hand, not later, not through a subresource, not while nacre is down.
//!
//! Which extra fields of users are recorded is the policy's to say. nacre keeps the list in a ConfigMap, which is the
//! parameter of both policies. Each policy has two bindings: one holds in any case and knows no list, and one knows the
//! list and does nothing without the ConfigMap.
//!
//! The API server writes the record itself where it knows mutating policies (`record`), else nacre's webhook does
//! (`recorder`). This policy refuses every other value. An object without a record may stay without: it is older, or
//! nobody was there to write one.

use api::{Kind, labels};
use k8s_openapi::api::admissionregistration::v1::{
    ParamRef, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};

use crate::install::{SERVICE_ACCOUNT, TENANT_KINDS};
use crate::requester::extra::{KEY, LIST, SCOPES, SEPARATOR};
use crate::vap::{self, Draft, cel::at};

/// The name of both policies, and of the bindings that hold in any case.
pub(super) const NAME: &str = "nacre-requester";
/// The name of the bindings that know which extra fields are recorded.
pub(super) const NAME_WITH_LIST: &str = "nacre-requester-extra";

/// The most characters of all groups together. The rest is cut off, which only lowers permissions.
pub(super) const GROUPS: usize = 12_000;

/// The most bytes of a record. Of a user with a longer one nothing is recorded but that, and nobody has no permissions.
pub(super) const LONGEST: usize = 16 * 1024;

/// What is recorded of a user with a longer one.
pub(super) const NOBODY: &str = r#"{"user":""}"#;

/// The binding that knows the list.
pub(super) fn with_list(namespace: &str) -> ValidatingAdmissionPolicyBinding {
    let mut binding = vap::binding(NAME, &["Deny"], Some(list(namespace)));
    binding.metadata.name = Some(NAME_WITH_LIST.to_owned());
    binding
}

/// Where the list is. Without it nobody is locked out: the other bindings hold.
pub(super) fn list(namespace: &str) -> ParamRef {
    ParamRef {
        name: Some(LIST.to_owned()),
        namespace: Some(namespace.to_owned()),
        parameter_not_found_action: Some("Allow".to_owned()),
        selector: None,
    }
}

/// Velero's kinds by which tenants ask with Velero's own tools, in their own namespaces.
pub(super) const VELERO_VIEW: [Kind; 5] =
    [Kind::Backup, Kind::Restore, Kind::DeleteBackupRequest, Kind::DownloadRequest, Kind::Schedule];

/// A CEL text as in JSON, without the quotes around it. A quote in it is written so that none is in the record but those
/// around texts. Control characters stay as they are: then the record cannot be read, and permits nothing.
fn escaped(text: &str) -> String {
    format!(r#"{text}.replace('\\', '\\\\').replace('"', '\\u0022')"#)
}

/// A CEL text as JSON.
fn json(text: &str) -> String {
    format!(r#"'"' + {} + '"'"#, escaped(text))
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
        .for_each(Kind::ConfigMap)
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
        .with("extra_keys", format!("({}).split('{SEPARATOR}')", at("params", &["data", KEY], "''")))
        // Each field without its first quote, its last quote and the bracket after that.
        .with("extra", format!("{}.join('{BETWEEN}')", fields("variables.extra_keys")))
        .with(
            "base",
            format!(
                r#"'{{"user":' + {} + ',"uid":' + {} + ',"groups":[' + variables.groups + '],"scopes":[' + variables.scopes + ']'"#,
                json(&format!("{user}.username")),
                json("variables.uid"),
            ),
        )
        .with(
            "whole",
            format!(
                "variables.base + (variables.extra == '' ? '}}' : '{OPEN}' + variables.extra + '{CLOSE}')"
            ),
        )
        .with(
            "requester",
            format!("size(bytes(variables.whole)) <= {LONGEST} ? variables.whole : '{NOBODY}'"),
        )
        .with("all_extra", fields(&format!("(has({user}.extra) ? {user}.extra : {{}})")))
        .with(
            "with_all_extra",
            format!("variables.base + '{OPEN}' + variables.all_extra.join('{BETWEEN}') + '{CLOSE}'"),
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
        .with("record_of_some_list", of_some_list("record"))
        .with("deletion_record_of_some_list", of_some_list("deletion_record"))
}

/// What is before, between and after the extra fields of a record.
const OPEN: &str = r#","extra":{""#;
const BETWEEN: &str = r#""],""#;
const CLOSE: &str = r#""]}}"#;

/// Those extra fields of the user whose keys are in a CEL list or map, as they are in a record.
fn fields(keys: &str) -> String {
    let extra = "request.userInfo.extra";
    format!(
        "{keys}.filter(key, has({extra}) && key in {extra} && size({extra}[key]) > 0)\
         .map(key, {} + '\":[\"' + {extra}[key].map(one, {}).join('\",\"'))",
        escaped("key"),
        escaped("one"),
    )
}

/// Without the list, whether a record is the requester's own for some list of extra fields. So nobody forges anything, and
/// the bindings that know the list leave no other. Nobody is only somebody whose record would be too long by some list.
fn of_some_list(record: &str) -> String {
    let fields = format!("variables.{record}.replace(variables.base + '{OPEN}', '').replace('{CLOSE}', '')");
    format!(
        "params == null && (variables.{record} == '{NOBODY}' ? \
         size(bytes(variables.with_all_extra)) > {LONGEST} : \
         size(bytes(variables.{record})) <= {LONGEST} && \
         variables.{record} == variables.base + '{OPEN}' + {fields} + '{CLOSE}' && \
         {fields}.split('{BETWEEN}').all(one, one in variables.all_extra))"
    )
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
            "variables.{news} ? (variables.{record} == variables.requester || variables.{record}_of_some_list || \
             (variables.{record} == '' && variables.old_{record} == '')) : variables.{record} == variables.old_{record}"
        )
    };
    described(Draft::over(NAME, &["CREATE", "UPDATE"], &over), namespace)
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
