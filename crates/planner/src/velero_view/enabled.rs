//! For which namespaces the Velero view is enabled.

use api::labels;

use crate::ownership::label;
use crate::policy::VeleroView;
use crate::state::State;

/// Whether the Velero view is enabled for a namespace; none while the policy is unknown. Only administrators may set
/// the label.
pub fn enabled_in(view: &State, namespace: &str) -> Option<bool> {
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
