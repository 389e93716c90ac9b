//! Making an object: the name if none was given, a manifest instead of an object if that is all that is wanted, and
//! the wait for what becomes of it.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher as _, Hasher as _, RandomState},
    time::Duration,
};

use anyhow::Result;
use clap::ValueEnum;
use jiff::Timestamp;
use kube::api::PostParams;
use serde::Serialize;

use crate::{
    connect::Session,
    list::qualified,
    live::{self, ShowsProgress},
    output::{Format, Outcome, print, remark, say},
    warnings,
};

/// What every `create` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Sending {
    /// Change nothing. `client` prints the manifest, `server` asks the API server too.
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "client")]
    #[arg(value_enum, hide_possible_values = true)]
    pub(crate) dry_run: Option<DryRun>,

    #[command(flatten)]
    waiting: Waiting,

    /// Labels for the object: app=shop,tier=gold.
    #[arg(long, value_name = "KEY=VALUE,...", value_delimiter = ',', value_parser = pair)]
    labels: Vec<(String, String)>,

    /// Annotations for the object.
    #[arg(long, value_name = "KEY=VALUE,...", value_delimiter = ',', value_parser = pair)]
    annotations: Vec<(String, String)>,
}

/// Who looks at an object that is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DryRun {
    /// Nobody: the manifest is printed.
    Client,
    /// The API server and nacre's webhook; a restore is previewed.
    Server,
}

/// Whether to wait, and for how long.
#[derive(Debug, clap::Args)]
pub(crate) struct Waiting {
    /// Wait until it is finished; the exit code is its outcome.
    #[arg(short, long)]
    pub(crate) wait: bool,

    /// How long to wait. Default: forever. Exit code 4 on timeout.
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "wait")]
    pub(crate) timeout: Option<Duration>,
}

impl Sending {
    /// How long to wait at most.
    pub(crate) const fn timeout(&self) -> Option<Duration> {
        self.waiting.timeout
    }

    /// Makes the object under the name it has, and waits for it.
    pub(crate) async fn send_and_wait<K: ShowsProgress>(
        &self,
        session: &Session,
        object: K,
    ) -> Result<Outcome> {
        let name = object.meta().name.clone().unwrap_or_default();
        session.api::<K>().create(&PostParams::default(), &object).await?;
        conclude::<K>(session, &name, self.waiting.timeout).await
    }

    /// Makes the object, or prints it.
    pub(crate) async fn send<K: ShowsProgress>(
        &self,
        session: &Session,
        mut object: K,
        named: bool,
    ) -> Result<Outcome> {
        let meta = object.meta_mut();
        meta.namespace = Some(session.namespace.clone());
        meta.labels = map(&self.labels);
        meta.annotations = map(&self.annotations);
        let asked = meta.name.clone().unwrap_or_default();
        let api = session.api::<K>();
        if let Some(mode) = self.dry_run {
            if mode == DryRun::Server {
                let params = PostParams { dry_run: true, ..PostParams::default() };
                object = api.create(&params, &object).await?;
                object.meta_mut().managed_fields = None;
            }
            // A manifest is what was asked for, and a table is none.
            let format = if session.format == Format::Table { Format::Yaml } else { session.format };
            print(format, &object, String::new, || vec![qualified::<K>(&asked)])?;
            return Ok(Outcome::Good);
        }
        let made = match api.create(&PostParams::default(), &object).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() && !named => {
                // Two in one second: the second one gets a suffix.
                object.meta_mut().name = Some(format!("{asked}-{}", random()));
                api.create(&PostParams::default(), &object).await?
            }
            made => made?,
        };
        for warning in warnings::received() {
            remark(format_args!("Warning: {warning}"));
        }
        let name = made.meta().name.clone().unwrap_or_default();
        let people = matches!(session.format, Format::Table | Format::Wide);
        if people {
            say(&format!("{} created\n", qualified::<K>(&name)))?;
        } else if !self.waiting.wait || session.format == Format::Name {
            print(session.format, &made, String::new, || vec![qualified::<K>(&name)])?;
        }
        if !self.waiting.wait {
            if people {
                remark(format_args!("`kubectl nacre {} wait {name}` shows how it goes", K::NOUN));
            }
            return Ok(Outcome::Good);
        }
        conclude::<K>(session, &name, self.waiting.timeout).await
    }
}

/// Waits for an object and says how it ended.
pub(crate) async fn conclude<K: ShowsProgress>(
    session: &Session,
    name: &str,
    timeout: Option<Duration>,
) -> Result<Outcome> {
    let (outcome, last) = live::follow::<K>(session, name, timeout).await?;
    let Some(last) = last else { return Ok(outcome) };
    let moment = last.moment();
    match session.format {
        Format::Table | Format::Wide => say(&live::verdict::<K>(name, &moment))?,
        // Standard output is for programs, and how it ended is for people.
        format => {
            remark(live::verdict::<K>(name, &moment).trim_end());
            // Its name was printed when it was made.
            if format != Format::Name {
                print(format, &last, String::new, Vec::new)?;
            }
        }
    }
    if outcome != Outcome::Good {
        for hint in last.next() {
            remark(format_args!("  {hint}"));
        }
    }
    Ok(outcome)
}

/// A name for an object that got none: what it is about, and when.
pub(crate) fn generated(stem: &str, now: Timestamp) -> String {
    format!("{stem}-{}", now.strftime("%Y%m%d-%H%M%S"))
}

/// A few characters that nobody else has, from those Kubernetes itself uses for it.
pub(crate) fn random() -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut left = RandomState::new().build_hasher().finish();
    let mut next = || {
        let at = usize::try_from(left % 27).unwrap_or_default();
        left /= 27;
        char::from(ALPHABET[at])
    };
    (0..5).map(|_| next()).collect()
}

fn map(pairs: &[(String, String)]) -> Option<BTreeMap<String, String>> {
    (!pairs.is_empty()).then(|| pairs.iter().cloned().collect())
}

/// Reads `key=value`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

/// Reads the name of a Secret and the key in it.
pub(crate) fn secret_key(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((secret, key)) if !secret.is_empty() && !key.is_empty() => {
            Ok((secret.to_owned(), key.to_owned()))
        }
        _ => Err("write SECRET=KEY, the Secret and the key in it, such as bucket-key=cloud".to_owned()),
    }
}

/// Reads `24h`, `1h30m`, `90s`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    api::Duration::from(text).to_std().ok_or_else(|| "a duration is like 90s, 1h30m or 24h".to_owned())
}

/// Reads how long to keep something. Velero takes 0 for its default, which nobody means who writes it.
pub(crate) fn lifetime(text: &str) -> Result<api::Duration, String> {
    match api::Duration::from(text).nanos() {
        Some(nanos) if nanos > 0 => Ok(text.into()),
        Some(_) => Err("must be more than 0; leave --ttl out for the default".to_owned()),
        None => Err("a duration is like 90s, 1h30m or 24h".to_owned()),
    }
}

/// The same, kept as it was written.
pub(crate) fn written_duration(text: &str) -> Result<api::Duration, String> {
    duration(text).map(|_| text.into())
}

/// What goes over the wire must be an object with only what was said in it.
pub(crate) fn given<T: Serialize>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_name_says_what_and_when() {
        assert_eq!(generated("backup", "2026-11-15T17:04:05Z".parse().unwrap()), "backup-20261115-170405");
    }

    #[test]
    fn two_random_ends_differ() {
        let (one, other) = (random(), random());
        assert!(one.len() == 5 && one != other, "{one} {other}");
    }

    #[test]
    fn a_lifetime_is_more_than_nothing() {
        assert_eq!(lifetime("72h"), Ok("72h".into()));
        for nothing in ["0", "0s", "-1h"] {
            assert!(lifetime(nothing).unwrap_err().contains("more than 0"), "{nothing}");
        }
        assert!(lifetime("3 days").unwrap_err().contains("24h"));
    }

    #[test]
    fn a_credential_names_a_secret_and_a_key() {
        assert_eq!(secret_key("bucket-key=cloud"), Ok(("bucket-key".to_owned(), "cloud".to_owned())));
        for half in ["bucket-key", "bucket-key=", "=cloud"] {
            assert!(secret_key(half).unwrap_err().contains("SECRET=KEY"), "{half}");
        }
    }

    #[test]
    fn a_pair_needs_a_key() {
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(pair("=b").is_err() && pair("a").is_err());
    }
}
