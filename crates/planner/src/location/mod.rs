//! Storage that namespace owners bring.

pub mod credentials;
mod provider;
pub mod table;

pub use provider::Provider;
