//! Stories on the real bed.

mod burst;
mod downloads;
mod forged;
mod roundtrip;
mod skeleton;
mod tarball;
mod velero_fields;
