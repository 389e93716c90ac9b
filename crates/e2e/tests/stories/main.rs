//! Stories on the real bed.

#![expect(clippy::print_stdout, reason = "measured figures belong in the output of a test run")]

mod burst;
mod downloads;
mod forged;
mod killed;
mod policy;
mod restore_burst;
mod roundtrip;
mod skeleton;
mod tarball;
mod velero_fields;
