//! Stories on the real bed.

mod killed;
mod policy;
mod skeleton;
mod velero_fields;
