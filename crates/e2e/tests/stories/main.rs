//! Stories on the real bed.

mod burst;
mod location;
mod skeleton;
mod velero_fields;
