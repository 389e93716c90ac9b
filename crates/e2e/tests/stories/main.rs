//! Stories on the real bed.

mod downloads;
mod drop_in;
mod forged;
mod killed;
mod location;
mod many_locations;
mod new_cluster;
mod policy;
mod rotation;
mod roundtrip;
mod skeleton;
mod takeover;
mod tarball;
mod trouble;
mod velero_fields;
