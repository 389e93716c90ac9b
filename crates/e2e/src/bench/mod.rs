//! `make bench`: the loads of [`crate::load`] at several sizes, for nacre and for the program it is compared with; the
//! figures as a table and as plots, and a verdict on those that are promised.

mod chart;
mod machine;
mod measure;
mod page;
mod results;
mod table;
mod verdict;

pub use measure::{Bench, say};
pub use page::{read, write};
pub use results::{Load, Record, Results, Scope, Who};
pub use verdict::{Finding, SLACK, THOUSAND, beside_bare, findings};
