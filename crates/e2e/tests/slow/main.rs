//! Slow stories: they mostly wait for Velero's and nacre's timers. A test program of their own, so that they run in
//! parallel with the others.

mod huge;
mod location;
mod native_snapshots;
mod rejected_writes;
mod rotation;
mod standstill;
mod takeover;
mod velero_view;
