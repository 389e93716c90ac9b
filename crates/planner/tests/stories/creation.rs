//! From a tenant's wish to a Velero Backup.

use insta::assert_snapshot;

use crate::world::World;
use crate::world::manifests::nab;

#[test]
fn a_backup_is_made_in_three_writes() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    assert_snapshot!(world.trace(), @"");
}
