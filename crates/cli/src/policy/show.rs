//! `policy show`: the settings in effect, and their source.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use planner::{
    Policy,
    policy::{Policies, Reading, Readings, Setting, load},
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    allowed,
    changes::brief,
    connect::Session,
    describe::page::{Page, section, top},
    output::{Format, Outcome, lines, print, remark},
    style,
    table::{Cell, Table},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre policy show                            for all namespaces, and what overrides differ in
  kubectl nacre policy show -n shop                    as it holds in this namespace
  kubectl nacre policy show -n shop -o yaml

FROM is the source: the ConfigMap nacre-policy with line and column, the DataProtectionApplication, or none
(default). What is not listed is not limited. Exit code 3 if a source has a problem.")]
pub(super) struct Show {}

/// What holds, for programs.
#[derive(Serialize)]
struct PolicyInEffect {
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    /// Whether this namespace may ask for anything at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<bool>,
    /// Which override holds, counted from 0.
    #[serde(rename = "override", skip_serializing_if = "Option::is_none")]
    over: Option<usize>,
    /// The same as one policy, as it could be written.
    policy: Option<Policy>,
    settings: Vec<Line>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    overrides: Vec<Override>,
    problems: Vec<String>,
}

#[derive(Serialize)]
struct Line {
    field: String,
    value: Value,
    from: String,
}

#[derive(Serialize)]
struct Override {
    selector: String,
    settings: Vec<Line>,
}

impl From<Setting> for Line {
    fn from(setting: Setting) -> Self {
        let from: Vec<String> = setting.from.iter().map(ToString::to_string).collect();
        Self { field: setting.field, value: setting.value, from: from.join(" and ") }
    }
}

pub(super) async fn run(session: &Session, given: Option<&str>) -> Result<Outcome> {
    let answer = read(session, given).await?;
    let page = || page(&answer, session.format).to_string().trim_start_matches('\n').to_owned();
    let names = || answer.settings.iter().map(|line| line.field.clone()).collect();
    print(session.format, &answer, page, names)?;
    for problem in &answer.problems {
        remark(format_args!("policy: {problem}"));
    }
    if answer.policy.is_none() {
        remark(INVALID);
    }
    Ok(Outcome::attention_if(!answer.problems.is_empty()))
}

const INVALID: &str =
    "the policy is invalid: nacre continues with the last valid one, which only nacre knows";

/// What holds for all namespaces.
pub(crate) async fn look(session: &Session) -> Result<Page> {
    let answer = read(session, None).await?;
    let invalid = answer.policy.is_none().then(|| INVALID.to_owned());
    let problems: Vec<String> = answer.problems.iter().cloned().chain(invalid).collect();
    Ok(section("Problems", lines(problems)) + page(&answer, Format::Wide))
}

async fn read(session: &Session, given: Option<&str>) -> Result<PolicyInEffect> {
    let namespace = match given {
        Some(name) => Some(find(session, name).await?),
        None => None,
    };
    let readings = allowed::from_cluster(session).await?;
    if let (Reading::Forbidden, _) | (_, Reading::Forbidden) = (&readings.config_map, &readings.applications)
    {
        bail!(
            "you may not read the administrators' policy in namespace {}: it takes get on configmaps and list on \
             dataprotectionapplications.oadp.openshift.io there",
            session.velero_namespace
        );
    }
    Ok(answer(&readings, namespace.as_ref(), &session.velero_namespace))
}

/// The namespace, whose labels decide which override holds.
async fn find(session: &Session, name: &str) -> Result<Namespace> {
    let api: Api<Namespace> = Api::all(session.client.clone());
    match api.get(name).await {
        Ok(found) => Ok(found),
        Err(kube::Error::Api(status)) if status.is_not_found() => bail!("there is no namespace {name:?}"),
        Err(kube::Error::Api(status)) if status.is_forbidden() => {
            remark("the namespace's labels are not for you to read; overrides are matched by its name alone");
            Ok(allowed::namespace(&session.within(name)).await)
        }
        Err(error) => Err(error.into()),
    }
}

fn answer(readings: &Readings, namespace: Option<&Namespace>, velero_namespace: &str) -> PolicyInEffect {
    let loaded = load(None, readings);
    let name = namespace.map(|space| space.metadata.name.clone().unwrap_or_default());
    let none = BTreeMap::new();
    let labels = namespace.and_then(|space| space.metadata.labels.as_ref()).unwrap_or(&none);
    let policies = loaded.policies.as_ref();
    let over = policies.zip(name.as_ref()).and_then(|(policies, name)| policies.override_for(name, labels));
    let policy = policies.map(|policies| match &name {
        Some(name) => Policy::clone(&policies.for_namespace(name, labels)),
        None => Policy::clone(policies.base()),
    });
    let open = policy.as_ref().zip(name.as_ref());
    let listed = |settings: Vec<Setting>| settings.into_iter().map(Line::from).collect();
    let overrides = policies.filter(|_| name.is_none()).map(Policies::overridden).unwrap_or_default();
    PolicyInEffect {
        open: open.map(|(policy, name)| policy.namespaces.allows(name) && name != velero_namespace),
        namespace: name,
        over,
        policy,
        settings: policies.map(|policies| listed(policies.settings(over))).unwrap_or_default(),
        overrides: overrides
            .into_iter()
            .map(|(selector, settings)| Override { selector, settings: listed(settings) })
            .collect(),
        problems: loaded.problems.iter().map(|problem| format!("{}: {problem}", problem.source)).collect(),
    }
}

fn page(answer: &PolicyInEffect, format: Format) -> Page {
    let title = match (&answer.namespace, answer.over) {
        (None, _) => "For all namespaces".to_owned(),
        (Some(name), None) => format!("In namespace {name}"),
        (Some(name), Some(over)) => format!("In namespace {name}, by overrides[{over}]"),
    };
    let mut page = Page::default();
    if answer.open == Some(false) {
        let closed = "closed: the policy allows no requests in this namespace, whatever is listed below";
        page += top(vec![style::bad(closed)]);
    }
    page += section(&title, table(&answer.settings, format));
    for (at, over) in answer.overrides.iter().enumerate() {
        let title = format!("Differing in namespaces with {} (overrides[{at}])", over.selector);
        page += section(&title, table(&over.settings, format));
    }
    page
}

fn table(settings: &[Line], format: Format) -> Table {
    let mut table = Table::new(&["FIELD", "VALUE", "FROM"]);
    for line in settings {
        // What nobody said is there for completeness.
        let style = if line.from == "default" { style::QUIET } else { anstyle::Style::new() };
        let value = match &line.value {
            Value::Array(none) if none.is_empty() => "none".to_owned(),
            all if format == Format::Wide => whole(all),
            value => brief(value),
        };
        table.row([
            Cell::from(line.field.as_str()),
            Cell::from(value),
            Cell::painted(style, line.from.as_str()),
        ]);
    }
    table
}

/// All of a list.
fn whole(value: &Value) -> String {
    match value.as_array() {
        Some(list) => list.iter().map(brief).collect::<Vec<_>>().join(", "),
        None => brief(value),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    const TEXT: &str = "backup: { ttl: { max: 48h } }\noverrides:\n  - selector: { matchLabels: { nacre.dev/tier: gold } }\n    backup: { ttl: { max: 96h } }\n";

    fn readings(text: &str) -> Readings {
        let map = serde_json::from_value(
            json!({"metadata": {"name": "nacre-policy"}, "data": {"policy.yaml": text}}),
        );
        Readings { config_map: Reading::Found(Arc::new(map.unwrap())), applications: Reading::Absent }
    }

    fn shown(text: &str, namespace: Option<&Namespace>) -> String {
        let text = page(&answer(&readings(text), namespace, "velero"), Format::Table).to_string();
        anstream::adapter::strip_str(text.trim_start_matches('\n')).to_string()
    }

    fn space(name: &str, labels: &Value) -> Namespace {
        serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}})).unwrap()
    }

    #[test]
    fn what_holds_is_told_with_who_wants_it() {
        insta::assert_snapshot!(shown(TEXT, None), @r"
        For all namespaces:
          FIELD                                           VALUE                         FROM
          backup.atLimit                                  wait                          default
          backup.delete                                   anyone                        default
          backup.hookTimeout                              10m                           default
          backup.hooks                                    allow                         default
          backup.ttl.max                                  48h                           nacre-policy 1:23
          backup.volumes                                  auto                          default
          downloads.platformStorage                       none                          default
          garbageCollection.period                        24h                           default
          namespaces.excluded                             kube-*, openshift-*           default
          namespaces.included                             *                             default
          queue.priority                                  0                             default
          queue.weight                                    100                           default
          requester.extra                                 none                          default
          requester.maxAge                                2160h                         default
          requester.mode                                  enforce                       default
          requester.notPermitted                          leaveOut                      default
          requester.rolesFromPlatformStorage              false                         default
          requester.unrecorded                            ignore                        default
          restore.fromPlatformStorage.excludedResources   resourcequotas, limitranges   default
          restore.fromTenantStorage.allowedResources      configmaps and 17 more        default
          restore.fromTenantStorage.finalizeTimeout       30m                           default
          restore.fromTenantStorage.maxItems              100000                        default
          restore.fromTenantStorage.pods                  auto                          default
          restore.hookTimeout                             10m                           default
          restore.hooks                                   exec                          default
          schedules.defaults                              none                          default
          schedules.minInterval                           0                             default
          schedules.spread                                5m                            default
          schedules.windows                               none                          default
          storageLocations.allowInsecureSkipTLSVerify     false                         default
          storageLocations.endpoints.allow                none                          default
          storageLocations.endpoints.deny                 none                          default
          storageLocations.import                         auto                          default
          storageLocations.mode                           any                           default
          storageLocations.nativeSnapshots                refuse                        default
          storageLocations.providers                      aws, azure, gcp               default
          storageLocations.requireApproval                false                         default
          sync.adoption                                   approval                      default
          sync.period                                     2m                            default
          views.velero                                    labelled                      default
          volumes.longest                                 24h                           default
          volumes.noProgress                              30m                           default
          volumes.podGone                                 2m                            default
          volumes.podPending                              5m                            default

        Differing in namespaces with nacre.dev/tier=gold (overrides[0]):
          FIELD            VALUE   FROM
          backup.ttl.max   96h     nacre-policy 4:27, overrides[0]
        ");
    }

    #[test]
    fn a_namespace_has_its_override_or_none_and_may_be_closed() {
        let gold = shown(TEXT, Some(&space("shop", &json!({"nacre.dev/tier": "gold"}))));
        assert!(gold.starts_with("In namespace shop, by overrides[0]:\n"), "{gold}");
        assert!(gold.contains("96h") && gold.contains("nacre-policy 4:27, overrides[0]"), "{gold}");
        let plain = shown(TEXT, Some(&space("shop", &json!({}))));
        assert!(plain.starts_with("In namespace shop:\n") && plain.contains("48h"), "{plain}");
        for closed in ["kube-system", "velero"] {
            assert!(shown(TEXT, Some(&space(closed, &json!({})))).starts_with("closed: "), "{closed}");
        }
    }

    #[test]
    fn a_policy_without_sense_is_told_and_none_is_made_up() {
        let odd = answer(&readings("backup: { tll: 1h }"), None, "velero");
        assert!(odd.policy.is_none() && odd.settings.is_empty());
        assert!(
            odd.problems[0].starts_with("ConfigMap: 1:11: backup.tll: there is no such field"),
            "{:?}",
            odd.problems
        );
    }
}
