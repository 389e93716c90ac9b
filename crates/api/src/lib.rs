//! The nouns.
mod kind;
pub use kind::Kind;
