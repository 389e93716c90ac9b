//! Which requests have errors and warnings of Velero that nobody has read yet, and what was read.

use api::{NonAdminBackup, NonAdminDownloadRequest, NonAdminRestore};

use super::State;
use crate::Key;
use crate::results::{Results, backup_is_unread, download_is_unread, restore_is_unread};

impl State {
    pub(super) fn note_results_of_backup(&mut self, key: &Key, backup: Option<&NonAdminBackup>) {
        let unread = backup.is_some_and(|backup| backup_is_unread(backup, self.now));
        self.note_results(key, unread);
    }

    pub(super) fn note_results_of_restore(&mut self, key: &Key, restore: Option<&NonAdminRestore>) {
        let unread = restore.is_some_and(|restore| restore_is_unread(restore, self.now));
        self.note_results(key, unread);
    }

    pub(super) fn note_results_of_download(&mut self, key: &Key, request: Option<&NonAdminDownloadRequest>) {
        self.note_results(key, request.is_some_and(download_is_unread));
    }

    fn note_results(&mut self, key: &Key, unread: bool) {
        if unread {
            self.unread_results.entry(key.clone()).or_default();
        } else {
            self.unread_results.remove(key);
        }
    }

    /// The requests whose files are to be read: those of the namespaces after this one come first, so that nobody waits for
    /// all the files of another.
    pub fn unread_results(&self, after: &str) -> Vec<Key> {
        let unread = self.unread_results.iter().filter(|(_, read)| read.is_none());
        let mut keys: Vec<Key> = unread.map(|(key, _)| key.clone()).collect();
        keys.sort_by_cached_key(|key| (*key.namespace <= *after, key.namespace.clone()));
        keys
    }

    /// Keeps what was read until it is published. Returns the request, which is decided about then.
    pub fn set_results(&mut self, key: &Key, results: Results) -> Vec<Key> {
        let Some(unread) = self.unread_results.get_mut(key) else { return Vec::new() };
        *unread = Some(results);
        vec![key.clone()]
    }

    /// There is nothing that nacre may read about this request.
    pub fn forget_results(&mut self, key: &Key) -> Vec<Key> {
        self.unread_results.remove(key);
        Vec::new()
    }

    /// What was read and is not published yet.
    pub fn results(&self, key: &Key) -> Option<Results> {
        self.unread_results.get(key).cloned().flatten()
    }
}
