//! The console in a real browser, on a real cluster: what a namespace owner, a viewer, a stranger and an administrator see
//! and do. Pictures of the pages are in target/console.

mod approval;
mod browser;
mod cluster;
mod gate;
mod hostile;
mod inspect;
mod look;
mod many;
mod progress;
mod replace;
mod schedules;
mod tenant;
mod times;
mod token;
mod viewer;
