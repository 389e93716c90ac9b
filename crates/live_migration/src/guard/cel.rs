//! What the authorizer is asked.

/// Whether the caller is infrastructure.
pub(super) const INFRASTRUCTURE: &str = "authorizer.group('kubevirt.io').resource('virtualmachineinstancemigrations').check('administer').allowed()";
/// Whether the caller could bind the permission to migrate anywhere.
pub(super) const MAY_BIND: &str = "authorizer.group('rbac.authorization.k8s.io').resource('clusterroles')\
                                   .name('kubevirt.io:migrate').check('bind').allowed()";
/// Whether the caller may evict any pod.
pub(super) const MAY_EVICT: &str =
    "authorizer.group('').resource('pods').subresource('eviction').check('create').allowed()";
/// Whether the caller may delete any pod.
pub(super) const MAY_DELETE_PODS: &str = "authorizer.group('').resource('pods').check('delete').allowed()";
