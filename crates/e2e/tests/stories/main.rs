//! Stories on the real bed.

mod skeleton;
mod velero_fields;
