//! What the planner knows of KubeVirt live migration: its permissions, and the names under which nacre keeps its
//! settings and its own permissions for it. The decisions are in the crate `live_migration`.

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde::Serialize;

use crate::rbac::rules::{self, Request};

/// The group of machines and migrations.
pub const KUBEVIRT: &str = "kubevirt.io";
/// The group of what is done to machines.
pub const SUBRESOURCES: &str = "subresources.kubevirt.io";
/// The plural of migrations.
pub const MIGRATIONS: &str = "virtualmachineinstancemigrations";
/// Name of the ConfigMap with the settings of live migration.
pub const SETTINGS: &str = "nacre-migration";
/// Namespace of that ConfigMap.
pub const SETTINGS_NAMESPACE: &str = "kube-system";
/// The cluster role for live migration, its binding, and the role and binding for the settings.
pub const ACCESS: &str = "nacre:migration-controller";

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
    /// Every power that can be granted.
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
