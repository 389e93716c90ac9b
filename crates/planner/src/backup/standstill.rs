//! A queue of Velero that stands still.
//!
//! Velero notes a backup as ready after it has made it ready. If it refuses the backup in between, since its storage is not
//! available, the note stays for ever and takes the place of a worker: with one worker no backup of anybody begins until
//! Velero is restarted (velero-io/velero#10519, up to 1.18.3). Whoever owns the storage can bring that about. Velero drops
//! the note when it is made to look at that very backup once more. It refuses it again, by the errors that it wrote down.

use std::time::Duration;

use api::Kind;
use api::velero::Backup;
use serde_json::{Value, json};

use crate::Target;
use crate::state::State;
use crate::volumes::time_left;

/// So long Velero itself may need: it looks at its queue once a minute.
const PATIENCE: Duration = Duration::from_mins(2);
/// So many are tried, the newest first. After that it is something else, and the alert says so.
const TRIES: usize = 8;

/// The Velero Backup to make ready again where Velero's queue stands still, and the write that does it. Velero's Backups
/// have no status subresource.
pub fn standstill(view: &State) -> Option<(Target, Value)> {
    let queue = view.standstill();
    time_left(queue.since()?, PATIENCE, view.now()).is_none().then_some(())?;
    let name = queue.untried().filter(|_| queue.tries() < TRIES)?;
    let velero = view.admin::<Backup>(name)?;
    Some((Target::of(Kind::Backup, &velero.metadata), json!({"status": {"phase": "ReadyToStart"}})))
}
