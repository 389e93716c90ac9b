//! Who may live-migrate, shown on a real API server and controller manager: every denial has its positive control, and is seen both
//! by a real request and by SubjectAccessReview.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod ask;
mod cluster;
mod controller;
mod grants;
mod guard;
mod poller;
mod program;
mod roles;
mod upgrade;
mod velero;
mod who_can;
