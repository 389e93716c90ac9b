//! What could stand where the cursor is.

use std::time::Duration;

use api::Kind;
use clap::{Arg, Command, ValueHint};
use tokio::time::timeout;

use super::{
    names,
    spot::{Spot, Wanted},
};
use crate::{
    connect::{Connection, Session},
    output::Format,
};

/// Who waits longer than this for a list has typed the name by then.
const TIMEOUT: Duration = Duration::from_secs(1);

/// What could stand there, each with what it means.
#[derive(Default)]
pub(super) struct Offers {
    pub(super) values: Vec<(String, String)>,
    /// Whether it is a file, which shells know best.
    pub(super) files: bool,
    /// Whether more of the word is to come, so that no space goes after it.
    pub(super) goes_on: bool,
}

/// What an argument names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// A context of the kubeconfig.
    Context,
    /// A namespace.
    Namespace,
    /// An object of this kind in the namespace.
    Object(Kind),
    /// One of this kind in Velero's namespace.
    BesideVelero(Kind),
    /// A Secret and a key in it.
    Key,
    /// A service account, as `namespace:name`.
    Account,
    /// A kind of object, as `plural.group`.
    Resource,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// What an argument names, by its name in the code and the commands before it.
pub(super) fn named(path: &[&str], argument: &str) -> Option<Named> {
    let noun = |noun: &str| match noun {
        "backup" => Some(Kind::NonAdminBackup),
        "restore" => Some(Kind::NonAdminRestore),
        "location" => Some(Kind::NonAdminBackupStorageLocation),
        "schedule" => Some(Kind::NonAdminSchedule),
        _ => None,
    };
    Some(match (path, argument) {
        (_, "context") => Named::Context,
        (_, "namespace" | "velero_namespace" | "kubevirt_namespace") | (["adopt"], "name") => {
            Named::Namespace
        }
        (["backup", "create"], "from_schedule") => Named::Object(Kind::NonAdminSchedule),
        (["backup" | "restore" | "location" | "schedule", verb], "name" | "names") if *verb != "create" => {
            Named::Object(noun(path[0])?)
        }
        (["request", _], "name" | "names") => Named::BesideVelero(Kind::NonAdminBackupStorageLocationRequest),
        (["restore", "create" | "preview"], "from_backup") => Named::Object(Kind::NonAdminBackup),
        (["restore", "create"], "only_claim") => Named::Object(Kind::PersistentVolumeClaim),
        (["backup", "create"], "storage_location") => Named::Object(Kind::NonAdminBackupStorageLocation),
        (["location", "create"], "credential") => Named::Key,
        (["location", "create"], "provider") => Named::Word(&["aws", "azure", "gcp"]),
        (
            ["backup" | "restore", "create" | "preview"],
            "include_resources"
            | "exclude_resources"
            | "include_namespace_scoped_resources"
            | "exclude_namespace_scoped_resources"
            | "exclude_cluster_scoped_resources",
        ) => Named::Resource,
        (["migration", ..], "accounts" | "serviceaccount" | "controller") => Named::Account,
        (["restore", "create" | "preview"], "existing_resource_policy") => Named::Word(&["none", "update"]),
        (["install" | "render"], "log_format") => Named::Word(&["json", "text"]),
        _ => return None,
    })
}

/// Gathers what could stand there; nothing if that takes too long or fails.
pub(super) async fn offers(spot: &Spot<'_>) -> Offers {
    match spot.wanted {
        Wanted::Command => Offers { values: commands(spot.command), ..Offers::default() },
        Wanted::Flag => Offers { values: flags(spot.command), ..Offers::default() },
        Wanted::Value(arg) => value(spot, arg).await,
    }
}

fn commands(command: &Command) -> Vec<(String, String)> {
    let shown = command.get_subcommands().filter(|below| !below.is_hide_set());
    shown
        .map(|below| {
            (below.get_name().to_owned(), below.get_about().map(ToString::to_string).unwrap_or_default())
        })
        .collect()
}

fn flags(command: &Command) -> Vec<(String, String)> {
    let shown = command.get_arguments().filter(|flag| !flag.is_hide_set());
    let reported = |flag: &Arg| {
        let meaning = flag.get_help().map(ToString::to_string).unwrap_or_default();
        Some((format!("--{}", flag.get_long()?), meaning))
    };
    shown.filter_map(reported).collect()
}

async fn value(spot: &Spot<'_>, arg: &Arg) -> Offers {
    let possible = arg.get_possible_values();
    if !possible.is_empty() {
        let shown = possible.iter().filter(|value| !value.is_hide_set());
        let reported = |value: &clap::builder::PossibleValue| {
            (value.get_name().to_owned(), value.get_help().map(ToString::to_string).unwrap_or_default())
        };
        return Offers { values: shown.map(reported).collect(), ..Offers::default() };
    }
    if matches!(arg.get_value_hint(), ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath) {
        return Offers { files: true, ..Offers::default() };
    }
    let explained = explained(spot, arg);
    let Some(named) = explained.or_else(|| named(&spot.path, arg.get_id().as_str())) else {
        return Offers::default();
    };
    let given: Vec<String> = spot.values(arg.get_id().as_str());
    let asked = timeout(TIMEOUT, ask(spot, named)).await.ok().flatten().unwrap_or_default();
    let fresh = asked.into_iter().filter(|name| !given.contains(name));
    Offers {
        values: fresh.map(|name| (name, String::new())).collect(),
        files: false,
        goes_on: named == Named::Key && !spot.word.contains('='),
    }
}

/// `explain` takes the kind first.
fn explained(spot: &Spot<'_>, arg: &Arg) -> Option<Named> {
    if spot.path != ["explain"] || arg.get_id() != "name" {
        return None;
    }
    let kind = spot.values("kind").pop()?;
    Some(Named::Object(match kind.as_str() {
        "backup" | "nab" | "backups" | "nonadminbackup" => Kind::NonAdminBackup,
        "restore" | "nar" | "restores" | "nonadminrestore" => Kind::NonAdminRestore,
        _ => Kind::NonAdminBackupStorageLocation,
    }))
}

async fn ask(spot: &Spot<'_>, named: Named) -> Option<Vec<String>> {
    let connection = Connection::of(|flag| spot.values(flag));
    match named {
        Named::Word(words) => return Some(words.iter().map(|word| (*word).to_owned()).collect()),
        Named::Context => return Some(names::contexts(&connection)),
        _ => {}
    }
    let session = Session::open(&connection, Format::Name).await.ok()?;
    match named {
        Named::Object(kind) => names::objects(&session, kind, &session.namespace).await,
        Named::BesideVelero(kind) => names::objects(&session, kind, &session.velero_namespace).await,
        Named::Namespace => Some(
            names::objects(&session, Kind::Namespace, "")
                .await
                .unwrap_or_else(|| names::namespaces(&connection)),
        ),
        Named::Account => {
            let found = names::objects(&session, Kind::ServiceAccount, &session.namespace).await?;
            Some(found.into_iter().map(|name| format!("{}:{name}", session.namespace)).collect())
        }
        Named::Key => names::keys(&session, spot.word).await,
        Named::Resource => names::resources(&session).await,
        Named::Word(_) | Named::Context => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args;

    /// Every argument that takes a value, by the commands before it.
    fn arguments(path: &[&str], command: &Command) -> Vec<String> {
        let own = command.get_arguments().filter(|arg| arg.get_action().takes_values() && !arg.is_hide_set());
        let own = own.filter(|arg| {
            let hint = arg.get_value_hint();
            let id = arg.get_id().as_str();
            arg.get_possible_values().is_empty() && hint == ValueHint::Unknown && named(path, id).is_none()
        });
        let own = own.map(|arg| format!("{} {}", path.join(" "), arg.get_id()));
        let below =
            command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
        let below = below.flat_map(|below| arguments(&[path, &[below.get_name()]].concat(), below));
        own.chain(below).collect()
    }

    /// Times, numbers, words of one's own and people cannot be guessed. Whatever else takes a value of the commands for
    /// namespace owners has something to offer.
    #[test]
    fn what_can_be_offered_is_offered() {
        let free = [
            "act_as",
            "act_as_groups",
            "ttl",
            "labels",
            "annotations",
            "selector",
            "or_selector",
            "region",
            "bucket",
            "prefix",
            "config",
            "ordered_resources",
            "data_mover",
        ];
        let ends = ["timeout", "configmap", "period", "frequency", "upload", "download", "key"];
        let mut command = args::command();
        command.build();
        let silent = arguments(&[], &command).into_iter().filter(|one| {
            let id = one.rsplit(' ').next().unwrap_or_default();
            let guessed = free.contains(&id) || ends.iter().any(|end| id.ends_with(end));
            let noun = ["backup", "restore", "location", "status"].iter().any(|noun| one.starts_with(noun));
            noun && !guessed && !one.ends_with("create name")
        });
        assert_eq!(silent.collect::<Vec<_>>(), Vec::<String>::new());
    }
}
