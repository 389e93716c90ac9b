//! Stories on the real bed.

mod demo;
mod downloads;
mod forged;
mod killed;
mod location;
mod policy;
mod reads;
mod roundtrip;
mod skeleton;
mod tarball;
mod velero_fields;
