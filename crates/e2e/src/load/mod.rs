//! Loads, and what they cost. The tests that require figures and the benchmark share this code. Velero's server is
//! stopped, and Velero is played by hand: what is measured is the controller and the API server.

mod contender;
mod drain;
mod kinds;
mod locations;
mod meter;
mod people;
pub mod raw;
mod requests;
mod restart;
mod settled;
mod ticks;
mod turns;

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};

pub use contender::Contender;
pub use drain::{drain, ended, in_order};
pub use kinds::{
    LoadKind, NAMESPACES, SAMPLE, SHOPS, Sample, done, finished_backups, make_namespaces, namespace,
    numbered, sample, velero_says,
};
pub use locations::{AtRest, at_rest, bring, bring_to, make_available};
pub use meter::{Cost, Meter, Reached};
pub use people::{Destination, People};
pub use requests::{burst, delete};
pub use restart::restart;
pub use settled::settle;
pub use ticks::Ticker;
pub use turns::turns;

/// As many as nacre has workers: beyond 16 the API server takes no more in the same time.
const AT_A_TIME: usize = 32;

/// Does something for each number below, so many at a time.
pub async fn each<F: Future<Output = Result<()>>>(many: usize, step: impl Fn(usize) -> F) -> Result<()> {
    stream::iter(0..many).map(step).buffer_unordered(AT_A_TIME).try_collect().await
}
