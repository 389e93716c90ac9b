//! Carrying out plans, one request per action.

use anyhow::{Context as _, Result};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions},
};
use planner::plan::{Action, Plan, Target};

/// Whether everything was done, or what was seen has changed meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// All of it.
    Yes,
    /// Look again and decide anew.
    Stale,
}

/// Carries out the actions of a plan in their order.
pub(super) async fn carry_out(client: &Client, plan: &Plan) -> Result<Done> {
    for action in &plan.actions {
        match one(client, action).await {
            Ok(()) => {}
            Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => {
                return Ok(Done::Stale);
            }
            Err(error) => return Err(error).with_context(|| super::show::action(action)),
        }
    }
    Ok(Done::Yes)
}

async fn one(client: &Client, action: &Action) -> kube::Result<()> {
    match action {
        Action::Create(object) => {
            let api = api(client, object.kind, object.namespace());
            let body: DynamicObject =
                serde_json::from_value(object.body.clone()).map_err(kube::Error::SerdeError)?;
            match api.create(&PostParams::default(), &body).await {
                Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
                other => other.map(drop),
            }
        }
        Action::Patch(target, change) => {
            let mut change = change.clone();
            change["metadata"]["uid"] = target.uid.clone().into();
            let api = api(client, target.kind, &target.namespace);
            api.patch(&target.name, &PatchParams::default(), &Patch::Merge(change)).await.map(drop)
        }
        Action::Delete(target) => delete(client, target).await,
        // The planner of migrations makes no other.
        Action::Hold(..) | Action::Release(..) | Action::PatchStatus(..) => Ok(()),
    }
}

async fn delete(client: &Client, target: &Target) -> kube::Result<()> {
    let exactly = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(target.uid.clone()),
            resource_version: Some(target.resource_version.clone()),
        }),
        ..DeleteParams::default()
    };
    match api(client, target.kind, &target.namespace).delete(&target.name, &exactly).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(drop),
    }
}

fn api(client: &Client, kind: api::Kind, namespace: &str) -> Api<DynamicObject> {
    if kind.namespaced() {
        Api::namespaced_with(client.clone(), namespace, &kind.resource())
    } else {
        Api::all_with(client.clone(), &kind.resource())
    }
}
