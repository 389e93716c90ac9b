//! Container images without a registry and without a daemon.
//!
//! [`Image`] writes an archive that `podman load`, `docker load`, `skopeo` and containerd accept. [`nacre`] is the
//! image of nacre that ships, with an [`sbom`] inside; [`release`] is everything else that ships with it; the test cluster makes its own images with the same code.

mod archive;
mod libraries;
pub mod nacre;
pub mod release;
pub mod sbom;

pub use archive::{Image, architecture};
pub use libraries::libraries;
