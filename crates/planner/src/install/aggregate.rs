//! Which of Kubernetes' user-facing roles include nacre's permissions, by the labels that its controller manager goes by.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A role that Kubernetes gives to the owners of namespaces. What `view` includes, `edit` includes too, and what `edit`
/// includes, `admin` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UserRole {
    /// `admin`
    Admin,
    /// `edit`
    Edit,
    /// `view`
    View,
}

/// The role that may ask for backups.
pub(crate) const EDIT: &str = "nacre:edit";
/// The role that may look at them.
pub(crate) const VIEW: &str = "nacre:view";

impl UserRole {
    /// The three roles, the strongest first.
    pub const ALL: [Self; 3] = [Self::Admin, Self::Edit, Self::View];

    /// As Kubernetes calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Edit => "edit",
            Self::View => "view",
        }
    }

    /// The label by which a ClusterRole becomes part of it.
    pub fn label(self) -> String {
        format!("rbac.authorization.k8s.io/aggregate-to-{}", self.name())
    }

    /// The role of nacre that is made part of it.
    const fn source(self) -> &'static str {
        match self {
            Self::Admin | Self::Edit => EDIT,
            Self::View => VIEW,
        }
    }
}

/// The labels of a role that may ask.
pub(crate) fn ask_labels(to: &[UserRole]) -> Value {
    labels(to, &[UserRole::Admin, UserRole::Edit])
}

/// The labels of a role that may look.
pub(crate) fn look_labels(to: &[UserRole]) -> Value {
    labels(to, &[UserRole::View])
}

/// A label that must not count says so: one that is only left out would stay where it is there already.
fn labels(to: &[UserRole], roles: &[UserRole]) -> Value {
    let mut labels = json!({});
    for role in roles {
        labels[role.label()] = to.contains(role).to_string().into();
    }
    labels
}

/// What the labels of nacre's roles say, given each role's label if that role is there; nothing if neither role is.
pub(crate) fn from_labels(label: impl Fn(&str, &str) -> Option<Option<String>>) -> Option<Vec<UserRole>> {
    let is_there = [EDIT, VIEW].iter().any(|role| label(role, "").is_some());
    let included = |role: &UserRole| {
        // A role that is missing was not left out on purpose.
        label(role.source(), &role.label()).is_none_or(|value| value.as_deref() == Some("true"))
    };
    is_there.then(|| UserRole::ALL.into_iter().filter(included).collect())
}

#[cfg(test)]
mod tests {
    use super::{EDIT, UserRole, VIEW, ask_labels, from_labels, look_labels};

    #[test]
    fn labels_read_back_as_they_were_written() {
        let choices =
            [vec![], vec![UserRole::Admin], vec![UserRole::Admin, UserRole::View], UserRole::ALL.to_vec()];
        for to in choices {
            let of = |role: &str| if role == EDIT { ask_labels(&to) } else { look_labels(&to) };
            let read = from_labels(|role, label| Some(of(role)[label].as_str().map(str::to_owned)));
            assert_eq!(read, Some(to.clone()), "{to:?}");
        }
    }

    #[test]
    fn a_missing_role_was_not_left_out_on_purpose() {
        assert_eq!(from_labels(|_, _| None), None);
        let only_view = |role: &str, _: &str| (role == VIEW).then_some(None);
        assert_eq!(from_labels(only_view), Some(vec![UserRole::Admin, UserRole::Edit]));
    }
}
