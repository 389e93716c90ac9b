//! Deleting what was asked for, after asking back.

use std::fmt::Debug;

use anyhow::{Result, bail};
use kube::{
    Api, Resource,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use planner::requester::{self, Identity};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::{
    confirm::Consent,
    connect::Session,
    list::{self, qualified},
    live::{self, ShowsProgress},
    object_name::ObjectName,
    output::{Format, Outcome, lines, print, remark},
    send::Waiting,
};

/// Which objects shall go.
#[derive(Debug, clap::Args)]
pub(crate) struct DeleteArgs {
    /// The names of what to delete, as `get` lists them.
    #[arg(value_name = "NAME", required_unless_present = "all")]
    names: Vec<ObjectName>,

    /// All of them in the namespace.
    #[arg(long, conflicts_with = "names")]
    all: bool,

    #[command(flatten)]
    consent: Consent,

    #[command(flatten)]
    waiting: Waiting,
}

/// How an object goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The object itself is deleted.
    Plainly,
    /// nacre is asked to delete it with its data, and the object goes when the data is gone.
    WithData,
}

impl DeleteArgs {
    /// Deletes them. `consequence` says, for the objects it is given, what follows "Delete backup daily of namespace shop ".
    pub(crate) async fn delete<K: ShowsProgress>(
        &self,
        session: &Session,
        how: How,
        consequence: impl AsyncFnOnce(&[K]) -> String,
    ) -> Result<Outcome> {
        let objects = self.find::<K>(session).await?;
        if objects.is_empty() {
            remark(format_args!("No {}s found in namespace {}.", K::NOUN, session.namespace));
            return Ok(Outcome::Good);
        }
        let names: Vec<&str> = objects.iter().map(|object| name_of(object)).collect();
        let consequence = consequence(&objects).await;
        if !self.consent.given(&question(K::NOUN, &names, &session.namespace, &consequence))? {
            remark("nothing was deleted");
            return Ok(Outcome::Failed);
        }
        for object in &objects {
            send(session, object, how).await?;
        }
        let result = match how {
            How::Plainly => "deleted",
            How::WithData => "asked to be deleted with its data",
        };
        let qualified: Vec<String> = names.iter().map(|name| qualified::<K>(name)).collect();
        let table = || lines(qualified.iter().map(|name| format!("{name} {result}")));
        let format = if session.format == Format::Wide { Format::Table } else { session.format };
        print(format, &qualified, table, || qualified.clone())?;
        let mut outcome = Outcome::Good;
        if self.waiting.wait {
            for name in names {
                outcome = live::until_gone::<K>(session, name, self.waiting.timeout).await?;
                if outcome != Outcome::Good {
                    break;
                }
            }
        }
        Ok(outcome)
    }

    async fn find<K: ShowsProgress>(&self, session: &Session) -> Result<Vec<K>> {
        if self.all {
            let found = list::all::<K>(session, Some(&session.namespace), None, false).await?;
            return Ok(found.items.into_iter().map(|(object, _)| object).collect());
        }
        let mut objects = Vec::new();
        for name in &self.names {
            objects.push(list::one::<K>(session, name.of::<K>()?).await?.0);
        }
        Ok(objects)
    }
}

fn name_of<K: Resource>(object: &K) -> &str {
    object.meta().name.as_deref().unwrap_or_default()
}

fn question(noun: &str, names: &[&str], namespace: &str, consequence: &str) -> String {
    let many = if names.len() == 1 { "" } else { "s" };
    format!("Delete {noun}{many} {} of namespace {namespace} {consequence}?", names.join(", "))
}

/// The uid goes along, so that a namesake made meanwhile is never meant.
async fn send<K: ShowsProgress>(session: &Session, object: &K, how: How) -> Result<()> {
    let api = session.api::<K>();
    let (name, uid) = (name_of(object), object.meta().uid.clone());
    let done = match how {
        How::Plainly => {
            let preconditions = Preconditions { uid, resource_version: None };
            let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
            api.delete(name, &params).await.map(|_| ())
        }
        How::WithData => delete_with_data(&api, object).await,
    };
    match done {
        // Somebody was faster.
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(kube::Error::Api(status)) if status.is_conflict() => {
            bail!("{name} has just been replaced by another of that name; look again")
        }
        done => Ok(done?),
    }
}

/// Asks for the data of a backup to be deleted. What retention asked for is asked for again: nacre may take its own word back.
pub(crate) async fn delete_with_data<K>(api: &Api<K>, object: &K) -> kube::Result<()>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let asks: &[bool] = match requester::of_deletion(object.meta()) {
        Identity::Policy => &[false, true],
        _ => &[true],
    };
    for ask in asks {
        let change = json!({"metadata": {"uid": object.meta().uid}, "spec": {"deleteBackup": ask}});
        api.patch(name_of(object), &PatchParams::default(), &Patch::Merge(change)).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_question_says_what_is_lost() {
        let question = super::question("backup", &["a", "b"], "shop", "with their data");
        assert_eq!(question, "Delete backups a, b of namespace shop with their data?");
    }
}
