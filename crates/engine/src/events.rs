//! Telling tenants what happens, as Kubernetes Events, within a budget.

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

use crate::error::status;
use crate::lacking::{Lacking, is_missing_right};
use crate::supervisor::Supervisor;

/// Events a second, in all.
const BUDGET: u32 = 20;
/// How many may wait; what comes on top is dropped, since Events tell a story and hold nothing up.
const ROOM: usize = 200;
/// What is off where they may not be written.
const EVENTS: &str = "Events are not told";

/// Tells what happens, if there is room.
#[derive(Clone, Debug)]
pub struct Teller(mpsc::Sender<KubeEvent>);

impl Teller {
    /// Starts telling, as this instance.
    pub fn start(client: Client, instance: String, lacking: Arc<Lacking>, supervisor: &Supervisor) -> Self {
        let (sender, receiver) = mpsc::channel(ROOM);
        supervisor.spawn("events", tell(client, instance, lacking, receiver));
        Self(sender)
    }

    /// Tells one thing about one object.
    pub fn tell(&self, kind: Kind, about: &ObjectMeta, event: &Event) {
        // A full channel means that we are behind: the newest is the one to drop, the rest is on its way.
        let _ = self.0.try_send(shape(kind, about, event));
    }
}

async fn tell(
    client: Client,
    instance: String,
    lacking: Arc<Lacking>,
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
            Ok(_) => lacking.on(EVENTS),
            // No right to write Events, or a namespace on its way out: the conditions say the same.
            Err(error) => {
                debug!(%error, namespace, "an Event was not written");
                if let Some(answer) = status(&error).filter(|status| is_missing_right(status)) {
                    lacking.off(EVENTS, &answer.message);
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
            // As kubelet and kubectl name theirs: unique by the nanosecond.
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
