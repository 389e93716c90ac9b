//! Stories on the real bed, told from outside: a real API server, real Velero, a real S3 store, and nacre as the
//! program that ships.

mod admission;
mod house;
mod location;
mod tap;
mod tenant;

pub use admission::{refusal, refused_by};
pub use house::{House, NACRE, Nacre, VELERO, command_line};
pub use tap::Tap;
pub use tenant::Tenant;
