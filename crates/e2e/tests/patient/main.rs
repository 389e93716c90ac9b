//! Stories that mostly wait, for Velero's and nacre's own clocks. A program of their own, so that they run beside the others.

mod location;
mod rotation;
mod takeover;
mod trouble;
mod velero_view;
