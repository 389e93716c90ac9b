//! Pods whose volumes are saved file by file, and whose restore would fail: Velero adds an init container to each pod that
//! comes back, and gives it the security context of the pod's first container. Without a user there, the container would
//! run as the user of Velero's image, and kubelet does not start it if the pod must not run as root.

use k8s_openapi::api::core::v1::Pod;

/// What to warn of before a backup is made; none if every pod with a claim can come back.
pub fn pods_without_user(pods: &[Pod]) -> Option<String> {
    let stuck: Vec<String> =
        pods.iter().filter(|pod| has_claim(pod) && needs_user(pod)).filter_map(name).collect();
    let (first, more) = stuck.split_first()?;
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    Some(format!(
        "pod {first:?}{more}: has runAsNonRoot and no runAsUser, so after a restore it would not start: Velero's init \
         container, which brings the files back, gets no user either. Set securityContext.runAsUser, or volumes of \
         such pods do not come back"
    ))
}

fn name(pod: &Pod) -> Option<String> {
    pod.metadata.name.clone()
}

fn has_claim(pod: &Pod) -> bool {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.into_iter().any(|volume| volume.persistent_volume_claim.is_some())
}

fn needs_user(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    // Velero copies the context of the first container. If there is none, it has a user of its own.
    let Some(context) = spec.containers.first().and_then(|first| first.security_context.as_ref()) else {
        return false;
    };
    let of_pod = spec.security_context.as_ref();
    let user = context.run_as_user.or_else(|| of_pod?.run_as_user);
    let non_root = context.run_as_non_root.or_else(|| of_pod?.run_as_non_root);
    user.is_none() && non_root == Some(true)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::pods_without_user;

    fn warned(pod_context: &Value, container_context: &Value, claim: bool) -> bool {
        let volume = if claim { json!({"claimName": "data"}) } else { Value::Null };
        let pod = json!({"metadata": {"name": "db"}, "spec": {
            "securityContext": pod_context,
            "containers": [{"name": "main", "securityContext": container_context}],
            "volumes": [{"name": "data", "persistentVolumeClaim": volume}],
        }});
        pods_without_user(&[serde_json::from_value(pod).unwrap()]).is_some()
    }

    #[test]
    fn a_pod_that_must_not_be_root_and_names_no_user_is_warned_of() {
        let (non_root, user) = (json!({"runAsNonRoot": true}), json!({"runAsUser": 1000}));
        assert!(warned(&Value::Null, &non_root, true));
        assert!(warned(&non_root, &json!({"allowPrivilegeEscalation": false}), true));
        assert!(!warned(&non_root, &Value::Null, true), "Velero has a user of its own for it");
        assert!(!warned(&user, &non_root, true), "the pod names a user");
        assert!(!warned(&json!({"runAsNonRoot": true}), &json!({"runAsUser": 7}), true));
        assert!(!warned(&non_root, &json!({"runAsNonRoot": false}), true));
        assert!(!warned(&Value::Null, &non_root, false), "it has no volume to restore");
    }
}
