//! Stories on the real bed.

mod admission;
mod demo;
mod downloads;
mod drop_in;
mod forged;
mod killed;
mod lease;
mod location;
mod new_cluster;
mod operator;
mod policy;
mod reads;
mod rotation;
mod roundtrip;
mod skeleton;
mod takeover;
mod tarball;
mod trouble;
mod velero_fields;
mod velero_view;
mod webhook;
