//! The decisions.
pub mod migration;
pub mod plan;
