//! `install`, `uninstall` and `render`: nacre itself, into and out of a cluster.

mod apply;
mod changes;
mod remove;
mod render;
mod settings;

pub(crate) use apply::{Install, install};
pub(crate) use remove::{Uninstall, uninstall};
pub(crate) use render::{Render, render};
