//! Records Kubernetes Events on tenants' objects, with a rate limit.

use std::sync::Arc;
use std::time::Duration;

use api::Kind;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event as KubeEvent;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use kube::{Api, Client};
use planner::Event;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tracing::debug;

use crate::degraded::{Degraded, is_missing_permission};
use crate::error::status;
use crate::supervisor::Supervisor;

/// Maximum number of Events per second.
const BUDGET: u32 = 20;
/// Size of the buffer; Events beyond it are dropped, since nothing depends on them.
const BUFFER: usize = 200;
/// Name of the disabled feature if Events may not be written.
const EVENTS: &str = "Events are not recorded";

/// Records Events, if the buffer is not full.
#[derive(Clone, Debug)]
pub struct EventRecorder(mpsc::Sender<KubeEvent>);

impl EventRecorder {
    /// Starts the recorder, with this reporting instance.
    pub fn start(client: Client, instance: String, degraded: Arc<Degraded>, supervisor: &Supervisor) -> Self {
        let (sender, receiver) = mpsc::channel(BUFFER);
        supervisor.spawn("events", record(client, instance, degraded, receiver));
        Self(sender)
    }

    /// Records one Event on one object.
    pub fn record(&self, kind: Kind, about: &ObjectMeta, event: &Event) {
        // If the buffer is full, the newest Event is dropped.
        let _ = self.0.try_send(shape(kind, about, event));
    }
}

async fn record(
    client: Client,
    instance: String,
    degraded: Arc<Degraded>,
    mut events: mpsc::Receiver<KubeEvent>,
) {
    let mut pace = interval(Duration::from_secs(1) / BUDGET);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while let Some(mut event) = events.recv().await {
        pace.tick().await;
        event.reporting_instance = Some(instance.clone());
        let namespace = event.metadata.namespace.clone().unwrap_or_default();
        let api: Api<KubeEvent> = Api::namespaced(client.clone(), &namespace);
        match api.create(&PostParams::default(), &event).await {
            Ok(_) => degraded.enable(EVENTS),
            // No permission to write Events, or the namespace is being deleted: the conditions hold the same
            // information.
            Err(error) => {
                debug!(%error, namespace, "Event could not be written; dropped");
                if let Some(answer) = status(&error).filter(|status| is_missing_permission(status)) {
                    degraded.disable(EVENTS, &answer.message);
                }
            }
        }
    }
}

fn shape(kind: Kind, about: &ObjectMeta, event: &Event) -> KubeEvent {
    let name = about.name.clone().unwrap_or_default();
    let now = Timestamp::now();
    KubeEvent {
        metadata: ObjectMeta {
            // Named as kubelet and kubectl do: unique by the nanosecond.
            name: Some(format!("{name}.{:x}", now.as_nanosecond())),
            namespace: about.namespace.clone(),
            ..ObjectMeta::default()
        },
        action: Some(event.reason.to_owned()),
        reason: Some(event.reason.to_owned()),
        note: Some(event.note.chars().take(1000).collect()),
        type_: Some(if event.warning { "Warning" } else { "Normal" }.to_owned()),
        event_time: Some(MicroTime(now)),
        reporting_controller: Some("nacre.dev/nacre".to_owned()),
        regarding: Some(ObjectReference {
            api_version: Some(kind.api_version()),
            kind: Some(kind.name().to_owned()),
            name: about.name.clone(),
            namespace: about.namespace.clone(),
            uid: about.uid.clone(),
            ..ObjectReference::default()
        }),
        ..KubeEvent::default()
    }
}
