//! What a store keeps of what is written to it.

use api::NonAdminBackup;
use kube::core::ObjectMeta;

use std::time::Duration;

use super::{Change, Seen, Store};

fn meta(uid: &str, version: u64) -> ObjectMeta {
    ObjectMeta {
        name: Some("daily".into()),
        namespace: Some("shop".into()),
        uid: Some(uid.into()),
        resource_version: Some(version.to_string()),
        ..ObjectMeta::default()
    }
}

fn read(meta: &ObjectMeta) -> Seen<NonAdminBackup> {
    let object = NonAdminBackup { metadata: meta.clone(), ..NonAdminBackup::default() };
    Seen { object: object.into(), unreadable: None }
}

const SOON: Duration = Duration::from_secs(1);

type Backups = Store<NonAdminBackup>;

fn observed(store: &mut Backups, meta: &ObjectMeta) -> Option<Change<NonAdminBackup>> {
    store.observed(meta, || read(meta))
}

fn wrote(store: &mut Backups, meta: &ObjectMeta) -> Option<Change<NonAdminBackup>> {
    store.wrote(meta, SOON, || read(meta))
}

fn version(store: &Store<NonAdminBackup>) -> Option<String> {
    store.get("shop", "daily")?.object.metadata.resource_version.clone()
}

#[test]
fn the_echo_of_our_own_write_is_no_news() {
    let mut store = Store::default();
    assert!(observed(&mut store, &meta("a", 1)).is_some());
    assert!(wrote(&mut store, &meta("a", 3)).is_some());
    assert!(observed(&mut store, &meta("a", 2)).is_none(), "older than what we wrote");
    assert!(observed(&mut store, &meta("a", 3)).is_none(), "the echo");
    assert_eq!(version(&store).as_deref(), Some("3"));
    assert!(observed(&mut store, &meta("a", 4)).is_some());
}

#[test]
fn what_is_no_news_is_not_even_read() {
    let mut store = Backups::default();
    wrote(&mut store, &meta("a", 3));
    assert!(store.observed(&meta("a", 3), || panic!("the echo was read")).is_none());
    assert!(store.wrote(&meta("a", 3), SOON, || panic!("the answer was read")).is_none());
}

#[test]
fn the_end_of_an_older_namesake_does_not_remove_the_newer() {
    let mut store = Store::default();
    observed(&mut store, &meta("a", 1));
    wrote(&mut store, &meta("b", 5));
    assert!(store.observed_gone(&meta("a", 4), SOON).is_none());
    assert_eq!(version(&store).as_deref(), Some("5"));
}

#[test]
fn what_we_deleted_does_not_come_back_by_an_older_event() {
    let mut store = Store::default();
    observed(&mut store, &meta("a", 1));
    assert!(store.deleted(&meta("a", 1)).is_some());
    assert!(observed(&mut store, &meta("a", 2)).is_none());
    assert!(store.observed_gone(&meta("a", 3), SOON).is_none());
    assert!(observed(&mut store, &meta("b", 4)).is_some(), "a new one of that name");
}

#[test]
fn a_deletion_that_the_watch_reports_before_the_answer_is_not_remembered() {
    let mut store = Backups::default();
    observed(&mut store, &meta("a", 1));
    assert!(store.observed_gone(&meta("a", 2), SOON).is_some());
    assert!(store.deleted(&meta("a", 1)).is_none());
    assert!(store.deleted.is_empty(), "the watch has nothing more to report about it");
}

#[test]
fn the_answer_to_a_write_that_comes_after_the_end_brings_nothing_back() {
    let mut store = Store::default();
    observed(&mut store, &meta("a", 1));
    assert!(store.observed_gone(&meta("a", 2), SOON).is_some());
    assert!(wrote(&mut store, &meta("a", 2)).is_none(), "letting go of it was what ended it");
    assert!(version(&store).is_none());
    assert!(wrote(&mut store, &meta("b", 3)).is_some(), "a new one of that name");
}

#[test]
fn a_list_removes_what_it_does_not_show_but_not_what_we_just_wrote() {
    let mut store = Store::default();
    observed(&mut store, &meta("a", 1));
    store.list_begins(Duration::ZERO);
    assert_eq!(store.list_ends().len(), 1);
    assert!(version(&store).is_none());

    store.list_begins(Duration::ZERO);
    wrote(&mut store, &meta("b", 9));
    assert!(store.list_ends().is_empty());
    assert_eq!(version(&store).as_deref(), Some("9"));

    // Written before the list began, and gone before the watch could report it.
    store.list_begins(SOON * 2);
    assert_eq!(store.list_ends().len(), 1);
    assert!(version(&store).is_none());
}

#[test]
fn a_late_reply_is_ignored_for_a_minute_and_no_longer_remembered_after() {
    let mut store = Backups::default();
    store.observed_gone(&meta("a", 2), Duration::ZERO);
    assert!(store.wrote(&meta("a", 2), SOON, || panic!("it was read")).is_none());
    store.observed_gone(&meta("b", 3), Duration::from_mins(2));
    assert_eq!(store.gone.0.len(), 1, "only the recent one is remembered");
}

#[test]
fn a_namespace_is_not_confused_with_one_whose_name_it_begins() {
    let mut store = Store::default();
    let other = ObjectMeta { namespace: Some("shop-two".into()), ..meta("b", 2) };
    observed(&mut store, &meta("a", 1));
    observed(&mut store, &other);
    assert_eq!(store.within("shop").count(), 1);
    assert_eq!(store.len(), 2);
}

#[test]
fn a_packed_object_is_found_changed_and_removed_like_any_other() {
    let mut store = Store::packing();
    let named = |number: usize, version: u64| ObjectMeta {
        name: Some(format!("daily-{number:04}")),
        ..meta(&format!("uid-{number}"), version)
    };
    let count = super::DECODED + 10;
    (0..count).for_each(|number| assert!(observed(&mut store, &named(number, 1)).is_some()));
    let packed = |store: &Backups| {
        store.objects.values().filter(|entry| matches!(entry.kept, super::Kept::Packed(_))).count()
    };
    assert_eq!(packed(&store), 10);
    let found = store.get("shop", "daily-0003").unwrap();
    assert_eq!(found, read(&named(3, 1)));
    assert_eq!(store.within("shop").count(), count);
    assert!(observed(&mut store, &named(3, 1)).is_none(), "it is known");
    let (before, after) = observed(&mut store, &named(3, 2)).unwrap();
    assert_eq!((before.unwrap(), after), (found.object, Some(read(&named(3, 2)))));
    assert!(store.observed_gone(&meta("other", 3), SOON).is_none());
    assert!(store.observed_gone(&named(4, 2), SOON).is_some());
    assert!(store.get("shop", "daily-0004").is_none());
    // What changed since it was noted is packed only when its last change is the oldest.
    (0..super::DECODED).for_each(|number| {
        let meta = ObjectMeta { name: Some(format!("new-{number}")), ..meta(&format!("new-{number}"), 5) };
        assert!(observed(&mut store, &meta).is_some());
    });
    assert_eq!(store.len() - packed(&store), super::DECODED);
}
