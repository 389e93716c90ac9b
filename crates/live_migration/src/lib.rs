//! Who may live-migrate a KubeVirt machine: least privilege by default, more only by an administrator's grant.
//!
//! | file | what it decides |
//! | --- | --- |
//! | `roles` | the four roles, as they are and as they were before KubeVirt 1.5 |
//! | `narrow` | what an upgrade takes out of a role's rules, and a rollback puts back |
//! | `record` | what the roles were before an upgrade |
//! | `settings` | what the administrator asked of nacre, as kept in the cluster |
//! | `reconcile` | roles: install, adopt, upgrade, roll back, repair |
//! | `contest` | when to stop repairing what somebody keeps changing |
//! | `bridge` | the temporary roles that keep an upgrade from disrupting anyone |
//! | `grant` | grants and revocations; `expiry` ends them |
//! | `who_can`, `indirect` | every subject with a live-migration permission, and by which path |
//! | `audit` | watches that answer, and reports when it changes |
//! | `preview`, `explain`, `report` | who would lose what; why somebody is refused; how far the roles have got |
//! | `guard` | admission policies for what RBAC cannot say |
//! | `access` | what the controller itself has to be allowed |
//!
//! The rule of this crate is the planner's: synchronous functions of what was seen, without a client, a clock or randomness.
//! Plans, admission policies as values and the reading of RBAC come from `planner`, which knows nothing of this crate.

pub mod access;
#[cfg(test)]
mod aggregation_tests;
pub mod audit;
pub mod bridge;
pub mod contest;
pub mod expiry;
pub mod explain;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod grant;
pub mod guard;
pub mod indirect;
#[cfg(test)]
pub(crate) mod kubevirt_versions;
pub mod narrow;
pub mod preview;
pub mod reconcile;
pub mod record;
pub mod report;
pub mod roles;
pub mod settings;
pub mod who_can;
#[cfg(test)]
pub(crate) mod world;
