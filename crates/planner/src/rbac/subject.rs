//! Subjects of RBAC: users, groups and service accounts, in one notation.

use std::fmt;

use k8s_openapi::api::rbac::v1::Subject;
use serde::{Serialize, Serializer};

/// The API group of users and groups in a binding.
pub const RBAC: &str = "rbac.authorization.k8s.io";
const ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// Somebody a binding can name. A user whose name is that of a service account is that service account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Who {
    /// A person, or whatever authenticates by name.
    User(String),
    /// Everybody in it.
    Group(String),
    /// A program.
    ServiceAccount {
        /// Its namespace.
        namespace: String,
        /// Its name in that namespace.
        name: String,
    },
}

/// A request's identity, as the API server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// `ada`, or `system:serviceaccount:NAMESPACE:NAME`.
    pub user: String,
    /// The groups.
    pub groups: Vec<String>,
}

impl Who {
    /// Whoever a binding in this namespace names; empty for a binding without one.
    pub fn of(subject: &Subject, binding_namespace: &str) -> Option<Self> {
        match subject.kind.as_str() {
            "User" => Some(Self::named(&subject.name)),
            "Group" => Some(Self::Group(subject.name.clone())),
            "ServiceAccount" => {
                let own = subject.namespace.as_deref().filter(|namespace| !namespace.is_empty());
                let namespace = own.unwrap_or(binding_namespace);
                (!namespace.is_empty()).then(|| Self::account(namespace, &subject.name))
            }
            _ => None,
        }
    }

    /// Whoever authenticates under this name.
    pub fn named(user: &str) -> Self {
        match user.strip_prefix(ACCOUNT_PREFIX).and_then(|rest| rest.split_once(':')) {
            Some((namespace, name)) => Self::account(namespace, name),
            None => Self::User(user.to_owned()),
        }
    }

    /// A service account.
    pub fn account(namespace: &str, name: &str) -> Self {
        Self::ServiceAccount { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// As a binding names it.
    pub fn subject(&self) -> Subject {
        let plain = |kind: &str, name: &String| Subject {
            api_group: Some(RBAC.to_owned()),
            kind: kind.to_owned(),
            name: name.clone(),
            namespace: None,
        };
        match self {
            Self::User(name) => plain("User", name),
            Self::Group(name) => plain("Group", name),
            Self::ServiceAccount { namespace, name } => Subject {
                api_group: None,
                kind: "ServiceAccount".to_owned(),
                name: name.clone(),
                namespace: Some(namespace.clone()),
            },
        }
    }

    /// The identity that has what this subject has and, but for the groups every service account is in, nothing else.
    pub fn identity(&self) -> Identity {
        match self {
            Self::User(name) => Identity { user: name.clone(), groups: Vec::new() },
            // No binding can name the empty user, so that only the group is asked about.
            Self::Group(name) => Identity { user: String::new(), groups: vec![name.clone()] },
            Self::ServiceAccount { namespace, name } => Identity {
                user: format!("{ACCOUNT_PREFIX}{namespace}:{name}"),
                groups: vec![
                    "system:serviceaccounts".to_owned(),
                    format!("system:serviceaccounts:{namespace}"),
                    "system:authenticated".to_owned(),
                ],
            },
        }
    }

    /// Whether a right of this subject is a right of that identity.
    pub fn includes(&self, identity: &Identity) -> bool {
        match self {
            Self::Group(name) => identity.groups.contains(name),
            one => *one == Self::named(&identity.user),
        }
    }

    /// As `grant` takes it on the command line, quoted for a shell.
    pub fn flag(&self) -> String {
        match self {
            Self::User(name) => format!("--user {}", quoted(name)),
            Self::Group(name) => format!("--group {}", quoted(name)),
            Self::ServiceAccount { namespace, name } => format!("--serviceaccount {namespace}:{name}"),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(name) => write!(out, "user {name}"),
            Self::Group(name) => write!(out, "group {name}"),
            Self::ServiceAccount { namespace, name } => write!(out, "serviceaccount {namespace}:{name}"),
        }
    }
}

impl Serialize for Who {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.subject().serialize(serializer)
    }
}

fn quoted(name: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.:@/+=".contains(letter);
    if !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_account_is_the_same_under_both_its_names() {
        let account =
            Subject { kind: "ServiceAccount".to_owned(), name: "robot".to_owned(), ..Subject::default() };
        assert_eq!(Who::of(&account, "shop"), Some(Who::named("system:serviceaccount:shop:robot")));
        assert_eq!(Who::of(&account, ""), None);
    }

    #[test]
    fn commands_survive_odd_names() {
        assert_eq!(Who::User("it's me".to_owned()).flag(), r"--user 'it'\''s me'");
        assert_eq!(Who::Group("corp:devs".to_owned()).flag(), "--group corp:devs");
    }
}
