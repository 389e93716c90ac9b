//! Stories on the real bed.

mod burst;
mod skeleton;
mod velero_fields;
