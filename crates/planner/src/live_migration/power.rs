//! The permissions about migrations.

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde::Serialize;

use super::{
    roles::{KUBEVIRT, MIGRATIONS, SUBRESOURCES},
    rules::{self, Request},
};

/// One thing that can be done to migrations. Any of the first and the last is enough to start one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Power {
    /// Make a migration object.
    Create,
    /// Change one.
    Update,
    /// Change a part of one.
    Patch,
    /// Delete one, which cancels it.
    Delete,
    /// Delete all of a namespace at once.
    DeleteCollection,
    /// Ask KubeVirt's API to migrate a machine, as `virtctl migrate` does.
    Migrate,
}

impl Power {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Create, Self::Update, Self::Patch, Self::Delete, Self::DeleteCollection, Self::Migrate];

    /// What the API server is asked.
    pub const fn request(self) -> Request {
        match self {
            Self::Migrate => Request {
                group: SUBRESOURCES,
                resource: "virtualmachines",
                subresource: "migrate",
                verb: "update",
            },
            _ => Request { group: KUBEVIRT, resource: MIGRATIONS, subresource: "", verb: self.name() },
        }
    }

    /// As it is printed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Migrate => "migrate",
        }
    }

    /// Those that these rules give for every object.
    pub fn given_by(rules: &[PolicyRule]) -> Vec<Self> {
        Self::ALL.into_iter().filter(|power| rules::allow(rules, &power.request())).collect()
    }
}
