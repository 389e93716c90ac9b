//! Kubernetes' RBAC, as its own authorizer reads it.
//!
//! | file | what it answers |
//! | --- | --- |
//! | `rules` | what one rule allows, and when two rule sets say the same |
//! | `subject` | users, groups and service accounts |
//! | `aggregate` | what the aggregation controller makes of labelled roles, and where a permission came from |
//! | `holdings` | who may make a given request, and by which path |

pub mod aggregate;
mod holdings;
pub mod rules;
pub mod subject;

pub use holdings::{Holding, Path, Rbac, Scope, holdings};
