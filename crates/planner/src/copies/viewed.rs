//! Where tenants have Velero's objects before them.

use api::labels;

use crate::ownership::label;
use crate::policy::VeleroView;
use crate::state::State;

/// Whether a namespace has copies of the Velero objects that are its own; none while that cannot be told. Labels of
/// namespaces are an administrator's.
pub fn viewed(view: &State, namespace: &str) -> Option<bool> {
    let Some(space) = view.namespace(namespace) else {
        return Some(false);
    };
    if namespace == view.admin_namespace() || space.metadata.deletion_timestamp.is_some() {
        return Some(false);
    }
    let policy = view.policy(namespace)?;
    let wanted = match policy.views.velero {
        VeleroView::Off => false,
        VeleroView::Labelled => label(&space.metadata, labels::VELERO_VIEW) == Some("true"),
        VeleroView::All => true,
    };
    Some(wanted && policy.namespaces.allows(namespace))
}
