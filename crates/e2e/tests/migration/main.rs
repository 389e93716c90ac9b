//! Who may live-migrate, shown on a real API server and controller manager: every denial has its positive control, and is seen both
//! by a real request and by SubjectAccessReview.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod ask;
mod cluster;
mod door;
mod poller;
mod program;
mod roles;
mod upgrade;
mod who_can;
