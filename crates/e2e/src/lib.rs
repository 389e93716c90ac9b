//! Stories on the real bed, told from outside: a real API server, real Velero, a real S3 store, and nacre as the
//! program that ships.

mod admission;
pub mod bench;
pub mod contest;
mod faults;
mod house;
mod length;
pub mod load;
mod location;
mod oadp;
mod pipe;
mod privileges;
mod tap;
mod tenant;

pub use admission::{refusal, refused_by};
pub use house::{House, NACRE, Nacre, VELERO, command_line, deploy, root};
pub use length::at_length;
pub use pipe::Pipe;
pub use privileges::{Right, Rights};
pub use tap::Tap;
pub use tenant::Tenant;
