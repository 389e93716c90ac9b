//! Stories on the real bed.

mod admission;
mod bomb;
mod csi;
mod csi_driver;
mod dedicated;
mod demo;
mod downloads;
mod drop_in;
mod fence;
mod forged;
mod imported;
mod killed;
mod lease;
mod log;
mod operator;
mod policy;
#[path = "../live_migration/program.rs"]
mod program;
mod reads;
mod relocated;
mod requester;
mod requester_robots;
mod requester_rules;
mod requester_webhook;
mod results;
mod roundtrip;
mod schedules;
mod siege;
mod sizes;
mod skeleton;
mod snapshot_classes;
mod supervision;
mod tarball;
mod turns;
mod velero_fields;
mod webhook;
