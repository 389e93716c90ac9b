//! Stories on the real bed.

mod downloads;
mod forged;
mod killed;
mod location;
mod many_locations;
mod policy;
mod roundtrip;
mod skeleton;
mod tarball;
mod velero_fields;
mod velero_view;
