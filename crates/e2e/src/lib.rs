//! Stories on the real bed, told from outside: a real API server, real Velero, a real S3 store, and nacre as the
//! program that ships.

mod faults;
mod house;
mod location;
mod oadp;
mod tap;
mod tenant;

pub use house::{House, NACRE, Nacre, VELERO, command_line};
pub use tap::Tap;
pub use tenant::Tenant;
