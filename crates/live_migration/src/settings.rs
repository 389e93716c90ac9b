//! The settings of live migration: a ConfigMap in kube-system, which only administrators can write.
//!
//! The CLI writes it and the controller enforces it.

use std::collections::BTreeMap;

use api::Kind;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::core::ObjectMeta;
use serde_json::{Value, json};

use super::{record::BeforeUpgrade, roles::Era};
use planner::plan::{Action, Object, Plan, Target};

/// Where the ConfigMap is.
pub use planner::kubevirt::{SETTINGS as NAME, SETTINGS_NAMESPACE as NAMESPACE};

const ROLES: &str = "roles";
const GUARD: &str = "guard";
const TAKE_OVER: &str = "takeOver";
const KUBEVIRT_NAMESPACE: &str = "kubevirtNamespace";
const REMEMBERED: &str = "rememberedLabels";
const BEFORE_UPGRADE: &str = "rolesBeforeUpgrade";
/// Where nacre wrote down the rules alone. It is read, and replaced by the key above.
const RULES_BEFORE_UPGRADE: &str = "rulesBeforeUpgrade";
/// The key of the endpoints that machines may be sent to; an admission policy reads it.
pub(crate) const SEND_TO: &str = "sendTo";

/// What the guard does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guard {
    /// No policies.
    #[default]
    Off,
    /// Requests that would be refused pass, with a warning and a line in the audit log; but machines are sent to no other
    /// cluster.
    Warn,
    /// They are refused.
    Deny,
}

/// The settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Which rules the four roles shall have; none where nacre shall leave them alone.
    pub roles: Option<Era>,
    /// What the guard does.
    pub guard: Guard,
    /// Whether roles that a KubeVirt operator left behind are nacre's now. One that still runs is never contested.
    pub take_over: bool,
    /// The namespace of KubeVirt's service accounts.
    pub kubevirt_namespace: String,
    /// The labels others have put on `kubevirt.io:migrate`, so that they come back with the role if it is deleted.
    pub remembered: BTreeMap<String, String>,
    /// What the roles were before an upgrade, if there was one. A rollback restores it.
    pub before_upgrade: Option<BeforeUpgrade>,
    /// The endpoints in other clusters that tenants may send machines to, separated by commas.
    pub send_to: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            roles: None,
            guard: Guard::Off,
            take_over: false,
            kubevirt_namespace: "kubevirt".to_owned(),
            remembered: BTreeMap::new(),
            before_upgrade: None,
            send_to: String::new(),
        }
    }
}

impl Settings {
    /// What a ConfigMap says, or which of its entries cannot be understood. Absent entries mean the defaults.
    pub fn read(config: &ConfigMap) -> Result<Self, String> {
        let entry = |key: &str| config.data.as_ref().and_then(|data| data.get(key)).map(String::as_str);
        let unknown = |key: &str, value: &str| Err(format!("{NAMESPACE}/{NAME}: {key} cannot be {value:?}"));
        let defaults = Self::default();
        Ok(Self {
            roles: match entry(ROLES) {
                None | Some("untouched") => None,
                Some("old") => Some(Era::Old),
                Some("current") => Some(Era::Current),
                Some(other) => return unknown(ROLES, other),
            },
            guard: match entry(GUARD) {
                None => Guard::Off,
                Some(word) => match Guard::named(word) {
                    Some(guard) => guard,
                    None => return unknown(GUARD, word),
                },
            },
            take_over: match entry(TAKE_OVER) {
                None | Some("false") => false,
                Some("true") => true,
                Some(other) => return unknown(TAKE_OVER, other),
            },
            kubevirt_namespace: entry(KUBEVIRT_NAMESPACE).map_or(defaults.kubevirt_namespace, str::to_owned),
            send_to: entry(SEND_TO).unwrap_or_default().to_owned(),
            remembered: match entry(REMEMBERED).map(serde_json::from_str) {
                None => BTreeMap::new(),
                Some(Ok(labels)) => labels,
                Some(Err(_)) => return unknown(REMEMBERED, entry(REMEMBERED).unwrap_or_default()),
            },
            before_upgrade: match (entry(BEFORE_UPGRADE), entry(RULES_BEFORE_UPGRADE)) {
                (Some(text), _) => match serde_json::from_str(text) {
                    Ok(roles) => Some(roles),
                    Err(_) => return unknown(BEFORE_UPGRADE, text),
                },
                (None, Some(text)) => match serde_json::from_str::<BTreeMap<String, Vec<PolicyRule>>>(text) {
                    Ok(rules) => (!rules.is_empty()).then(|| BeforeUpgrade::of_rules(&rules)),
                    Err(_) => return unknown(RULES_BEFORE_UPGRADE, text),
                },
                (None, None) => None,
            },
        })
    }

    /// The entries of the ConfigMap.
    pub fn data(&self) -> BTreeMap<String, String> {
        let roles = match self.roles {
            None => "untouched",
            Some(Era::Old) => "old",
            Some(Era::Current) => "current",
        };
        // Maps with names as keys always become JSON.
        let remembered = serde_json::to_string(&self.remembered).unwrap_or_default();
        let before_upgrade = self.before_upgrade.as_ref().map(serde_json::to_string);
        let before_upgrade = before_upgrade.and_then(Result::ok).unwrap_or_default();
        [
            (ROLES, roles),
            (GUARD, self.guard.name()),
            (TAKE_OVER, if self.take_over { "true" } else { "false" }),
            (KUBEVIRT_NAMESPACE, &self.kubevirt_namespace),
            (REMEMBERED, &remembered),
            (BEFORE_UPGRADE, &before_upgrade),
            (SEND_TO, &self.send_to),
        ]
        .into_iter()
        .filter(|(key, value)| ![SEND_TO, BEFORE_UPGRADE].contains(key) || !value.is_empty())
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
    }

    /// The change that makes a ConfigMap say this. Entries of others stay.
    pub(crate) fn patch(&self, found: &ConfigMap) -> Value {
        let mut data = json!(self.data());
        if found.data.as_ref().is_some_and(|data| data.contains_key(RULES_BEFORE_UPGRADE)) {
            data[RULES_BEFORE_UPGRADE] = Value::Null;
        }
        json!({ "metadata": { "resourceVersion": found.metadata.resource_version }, "data": data })
    }

    /// The whole ConfigMap.
    pub fn object(&self) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(NAME.to_owned()),
                namespace: Some(NAMESPACE.to_owned()),
                ..ObjectMeta::default()
            },
            data: Some(self.data()),
            ..ConfigMap::default()
        }
    }
}

/// Decides how to write down what is asked for; nothing is left to do if it stands there.
pub fn decide(found: Option<&ConfigMap>, asked: &Settings) -> Plan {
    match found {
        None => Plan::done().then(Action::Create(Object::of(Kind::ConfigMap, &asked.object()))),
        Some(found) if stands(found, asked) => Plan::done(),
        Some(found) => {
            Plan::done().then(Action::Patch(Target::of(Kind::ConfigMap, &found.metadata), asked.patch(found)))
        }
    }
}

/// Whether a ConfigMap says what is asked for.
fn stands(found: &ConfigMap, asked: &Settings) -> bool {
    let data = found.data.clone().unwrap_or_default();
    !data.contains_key(RULES_BEFORE_UPGRADE)
        && asked.data().iter().all(|(key, value)| data.get(key) == Some(value))
}

impl Guard {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Warn => "warn",
            Self::Deny => "deny",
        }
    }

    fn named(word: &str) -> Option<Self> {
        [Self::Off, Self::Warn, Self::Deny].into_iter().find(|guard| guard.name() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{record::RoleBefore, roles::Role};

    #[test]
    fn what_was_asked_for_is_read_back() {
        let asked = Settings {
            roles: Some(Era::Current),
            guard: Guard::Deny,
            take_over: true,
            kubevirt_namespace: "openshift-cnv".to_owned(),
            remembered: [("a".to_owned(), "b".to_owned())].into(),
            before_upgrade: Some(BeforeUpgrade {
                roles: [("kubevirt.io:edit".to_owned(), RoleBefore::of(&Role::Edit.object(Era::Old)))].into(),
                rolled_back: true,
            }),
            send_to: "migrations.example.com:9185".to_owned(),
        };
        assert_eq!(Settings::read(&asked.object()), Ok(asked));
        assert_eq!(Settings::read(&ConfigMap::default()), Ok(Settings::default()));
    }

    #[test]
    fn it_is_written_once() {
        let asked = Settings { guard: Guard::Warn, ..Settings::default() };
        assert!(matches!(decide(None, &asked).actions.as_slice(), [Action::Create(_)]));
        assert_eq!(decide(Some(&asked.object()), &asked), Plan::done());
        let stricter = Settings { guard: Guard::Deny, ..asked.clone() };
        assert!(matches!(decide(Some(&asked.object()), &stricter).actions.as_slice(), [Action::Patch(..)]));
    }

    #[test]
    fn the_rules_that_an_earlier_nacre_wrote_down_are_read_and_replaced() {
        let rules = BTreeMap::from([("kubevirt.io:edit", Role::Edit.rules(Era::Old))]);
        let mut config = Settings::default().object();
        let data = config.data.as_mut().unwrap();
        data.insert(RULES_BEFORE_UPGRADE.to_owned(), serde_json::to_string(&rules).unwrap());
        let read = Settings::read(&config).unwrap();
        let record = read.before_upgrade.clone().unwrap();
        assert_eq!(record.roles["kubevirt.io:edit"], RoleBefore::of(&Role::Edit.object(Era::Old)));
        let plan = decide(Some(&config), &read);
        let [Action::Patch(_, patch)] = plan.actions.as_slice() else { panic!("{plan:?}") };
        assert_eq!(patch["data"][RULES_BEFORE_UPGRADE], Value::Null);
        assert_eq!(decide(Some(&read.object()), &read), Plan::done());
        // An empty one names nothing to restore: what the roles are is written down before the next change.
        config.data.as_mut().unwrap().insert(RULES_BEFORE_UPGRADE.to_owned(), "{}".to_owned());
        assert_eq!(Settings::read(&config).unwrap().before_upgrade, None);
    }

    #[test]
    fn entries_of_others_are_no_reason_to_write() {
        let mut config = Settings::default().object();
        config.data.as_mut().unwrap().insert("note".to_owned(), "mine".to_owned());
        assert_eq!(decide(Some(&config), &Settings::default()), Plan::done());
    }

    #[test]
    fn a_word_nobody_knows_is_told_and_not_guessed() {
        let mut config = Settings::default().object();
        config.data.as_mut().unwrap().insert("guard".to_owned(), "perhaps".to_owned());
        assert_eq!(
            Settings::read(&config),
            Err("kube-system/nacre-migration: guard cannot be \"perhaps\"".to_owned())
        );
    }
}
