//! Stories on the real bed.

#![expect(clippy::print_stdout, reason = "measured figures belong in the output of a test run")]

mod burst;
mod killed;
mod location;
mod many_locations;
mod policy;
mod skeleton;
mod velero_fields;
