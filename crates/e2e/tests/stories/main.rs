//! Stories on the real bed.

mod admission;
mod demo;
mod downloads;
mod drop_in;
mod fence;
mod forged;
mod killed;
mod lease;
mod operator;
mod policy;
mod reads;
mod requester;
mod results;
mod roundtrip;
mod sizes;
mod skeleton;
mod snapshot_classes;
mod supervision;
mod tarball;
mod velero_fields;
mod webhook;
