//! `make bench`: the loads of [`crate::load`] at several sizes, for nacre and for whoever is measured beside it; the figures
//! as a table and as plots, and a verdict on those that are promised.

mod chart;
mod machine;
mod page;
mod results;
mod story;
mod table;
mod verdict;

pub use page::{read, write};
pub use results::{Load, Record, Results, Who};
pub use story::{Bench, say};
pub use verdict::{Finding, SLACK, THOUSAND, beside_bare, findings};
