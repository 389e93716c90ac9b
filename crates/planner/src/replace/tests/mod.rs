mod crash;
mod scope;
mod step;

use serde_json::{Value, json};

use super::objects::{Claim, Workload, WorkloadKind};

/// A workload of these parts of a manifest.
fn workload(kind: WorkloadKind, name: &str, claims: &[&str], more: &Value) -> Workload {
    let volumes: Vec<Value> =
        claims.iter().map(|claim| json!({"persistentVolumeClaim": {"claimName": claim}})).collect();
    let pod = json!({ "volumes": volumes });
    let mut object = match kind {
        WorkloadKind::Pod => json!({ "spec": pod }),
        WorkloadKind::CronJob => json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": pod}}}}}),
        _ => json!({"spec": {"template": {"spec": pod}}}),
    };
    object["metadata"] = json!({"name": name, "uid": format!("uid-{name}")});
    merge(&mut object, more);
    Workload::read(kind, &object)
}

fn merge(into: &mut Value, more: &Value) {
    match (into.as_object_mut(), more.as_object()) {
        (Some(fields), Some(more)) => {
            for (key, value) in more {
                merge(fields.entry(key).or_insert(Value::Null), value);
            }
        }
        _ => *into = more.clone(),
    }
}

/// That something built in, or something else, controls an object.
fn owned_by(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"metadata": {"ownerReferences": [
        {"apiVersion": api_version, "kind": kind, "name": name, "uid": format!("uid-{name}"), "controller": true}]}})
}

fn claim(name: &str) -> Claim {
    let meta =
        json!({"name": name, "uid": format!("uid-{name}"), "creationTimestamp": "2026-11-10T00:00:00Z"});
    Claim::read(&json!({ "metadata": meta }))
}
