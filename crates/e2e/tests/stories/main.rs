//! Stories on the real bed.

mod downloads;
mod forged;
mod killed;
mod lease;
mod location;
mod many_locations;
mod operator;
mod policy;
mod roundtrip;
mod skeleton;
mod tarball;
mod velero_fields;
