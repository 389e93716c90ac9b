//! The resources that the cluster serves, for filters that name some: a name that nobody serves selects nothing.

use anyhow::{Result, bail};
use http::{Request, header::ACCEPT};
pub(crate) use planner::served::Served;
use planner::served::{self, DISCOVERY, is_pattern};
use serde_json::Value;

use crate::{connect::Session, output::remark};

/// Asks for everything the cluster serves; none if it does not say, or not all of it.
pub(crate) async fn served(session: &Session) -> Option<Vec<Served>> {
    let (core, groups) = tokio::join!(read(session, "/api"), read(session, "/apis"));
    let mut all = served::read(&core?)?;
    all.extend(served::read(&groups?)?);
    Some(all)
}

async fn read(session: &Session, path: &str) -> Option<Value> {
    let request = Request::get(path).header(ACCEPT, DISCOVERY).body(Vec::new()).ok()?;
    serde_json::from_str(&session.client.request_text(request).await.ok()?).ok()
}

/// What to do about a name that the cluster does not serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// Refuse it: what is not served cannot be backed up.
    Refuse,
    /// Only warn: it may be a resource that is not served at the moment, or not in this cluster.
    Warn,
}

/// A list of resources in a request.
pub(crate) type Named<'a> = (&'static str, Option<&'a [String]>, Unknown);

/// Refuses or warns about names in these fields that the cluster does not serve. If no field has names, nothing is asked.
pub(crate) async fn check(session: &Session, fields: &[Named<'_>]) -> Result<()> {
    if fields.iter().all(|(_, names, _)| names.unwrap_or_default().iter().all(|name| is_pattern(name))) {
        return Ok(());
    }
    let Some(served) = served(session).await else {
        remark("Warning: the cluster does not say which resources it serves; their names were not checked");
        return Ok(());
    };
    for (field, names, unknown) in fields {
        for name in names.unwrap_or_default() {
            match (problem(field, name, &served), unknown) {
                (None, _) => {}
                (Some(problem), Unknown::Warn) => remark(format_args!("Warning: {problem}")),
                (Some(problem), Unknown::Refuse) => bail!("{problem}"),
            }
        }
    }
    Ok(())
}

/// Why this name selects nothing; none if it selects something.
fn problem(field: &str, name: &str, served: &[Served]) -> Option<String> {
    let lower = name.to_lowercase();
    if is_pattern(name) || served.iter().any(|one| one.is_called(&lower)) {
        return None;
    }
    let nearest =
        nearest(&lower, served).map_or_else(String::new, |name| format!("; did you mean {name:?}?"));
    Some(format!(
        "{field}: the cluster serves no resource {name:?}{nearest} (`kubectl api-resources` lists what there is)"
    ))
}

/// The served name that is most like this one, if any is like it at all.
fn nearest(name: &str, served: &[Served]) -> Option<String> {
    let bare = name.split_once('.').map_or(name, |(bare, _)| bare);
    let distance = |one: &Served| {
        let names = std::iter::once(&one.plural).chain(&one.aliases);
        let whole = (name != bare).then(|| edits(name, &one.name()));
        names.map(|alias| edits(bare, alias)).chain(whole).min().unwrap_or(usize::MAX)
    };
    let best = served.iter().min_by_key(|one| (distance(one), one.name()))?;
    // More than a third of the letters wrong is another word.
    (distance(best) <= bare.len().div_ceil(3)).then(|| best.name())
}

/// How many letters have to be added, removed or replaced to make one word of the other.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cluster() -> Vec<Served> {
        let resource = |plural: &str, singular: &str, short: &[&str], scope: &str| json!({"resource": plural, "singularResource": singular, "shortNames": short, "scope": scope, "verbs": ["get", "list"]});
        let list = json!({"items": [
            {"metadata": {}, "versions": [{"version": "v1", "resources": [
                resource("configmaps", "configmap", &["cm"], "Namespaced"),
                resource("persistentvolumes", "persistentvolume", &["pv"], "Cluster"),
            ]}]},
            {"metadata": {"name": "apps"}, "versions": [{"version": "v1", "resources": [
                resource("deployments", "deployment", &["deploy"], "Namespaced"),
            ]}]},
            {"metadata": {"name": "example.com"}, "versions": [
                {"version": "v2", "resources": [resource("widgets", "widget", &[], "Namespaced")]},
                {"version": "v1", "resources": [resource("gadgets", "gadget", &[], "Namespaced")]},
            ]},
        ]});
        served::read(&list).unwrap()
    }

    #[test]
    fn every_way_to_name_a_resource_is_known() {
        let served = cluster();
        for name in [
            "configmaps",
            "configmap",
            "cm",
            "ConfigMaps",
            "deployments.apps",
            "deploy.apps",
            "widgets.example",
            "gadgets.example.com",
            "persistentvolumes",
            "*",
            "*.example.com",
        ] {
            assert_eq!(problem("f", name, &served), None, "{name}");
        }
        let offered: Vec<String> =
            served.iter().filter(|one| one.is_for_backups()).map(Served::name).collect();
        let others = ["widgets.example.com", "gadgets.example.com"];
        assert_eq!(offered, [&["configmaps", "deployments.apps"][..], &others].concat());
    }

    #[test]
    fn a_name_that_is_not_served_is_told_with_the_nearest_that_is() {
        let reported = |name: &str| problem("spec.backupSpec.includedResources", name, &cluster()).unwrap();
        insta::assert_snapshot!(reported("nonsense"), @r#"spec.backupSpec.includedResources: the cluster serves no resource "nonsense" (`kubectl api-resources` lists what there is)"#);
        insta::assert_snapshot!(reported("deployments2"), @r#"spec.backupSpec.includedResources: the cluster serves no resource "deployments2"; did you mean "deployments.apps"? (`kubectl api-resources` lists what there is)"#);
        insta::assert_snapshot!(reported("configmaps.apps"), @r#"spec.backupSpec.includedResources: the cluster serves no resource "configmaps.apps"; did you mean "configmaps"? (`kubectl api-resources` lists what there is)"#);
        insta::assert_snapshot!(reported("widgets.example.net"), @r#"spec.backupSpec.includedResources: the cluster serves no resource "widgets.example.net"; did you mean "widgets.example.com"? (`kubectl api-resources` lists what there is)"#);
    }

    #[test]
    fn an_answer_in_an_older_format_is_none() {
        assert_eq!(served::read(&json!({"kind": "APIGroupList", "groups": []})), None);
    }
}
