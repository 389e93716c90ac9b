//! The decisions.
pub mod plan;
