//! Names of objects on the command line: `daily`, or `nonadminbackup.oadp.openshift.io/daily` as `-o name` prints it.

use std::str::FromStr;

use anyhow::{Result, bail};
use kube::Resource;

/// A name, and the kind that was written before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectName {
    kind: Option<String>,
    name: String,
}

impl FromStr for ObjectName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, name) = match text.split_once('/') {
            Some((kind, name)) => (Some(kind.to_lowercase()), name),
            None => (None, text),
        };
        if name.is_empty() || kind.as_deref() == Some("") || name.contains('/') {
            return Err("a name is like daily, or KIND/daily as -o name prints it".to_owned());
        }
        Ok(Self { kind, name: name.to_owned() })
    }
}

impl ObjectName {
    /// The name, if it is one of this kind.
    pub(crate) fn of<K: Resource<DynamicType = ()>>(&self) -> Result<&str> {
        let Some(given) = &self.kind else { return Ok(&self.name) };
        let (singular, plural, group) = (K::kind(&()).to_lowercase(), K::plural(&()), K::group(&()));
        let without_group = given.strip_suffix(&*group).and_then(|rest| rest.strip_suffix('.'));
        let kind = without_group.unwrap_or(given);
        if kind != singular && kind != plural {
            bail!("{given}/{} is not a {}: write {singular}.{group}/NAME or NAME", self.name, K::kind(&()));
        }
        Ok(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use api::{NonAdminBackup, NonAdminRestore};

    use super::ObjectName;

    fn parse(text: &str) -> ObjectName {
        text.parse().unwrap()
    }

    #[test]
    fn what_o_name_prints_is_read_back() {
        for text in [
            "daily",
            "nonadminbackup.oadp.openshift.io/daily",
            "nonadminbackups/daily",
            "NonAdminBackup/daily",
        ] {
            assert_eq!(parse(text).of::<NonAdminBackup>().unwrap(), "daily", "{text}");
        }
        let printed = crate::list::qualified::<NonAdminRestore>("back");
        assert_eq!(parse(&printed).of::<NonAdminRestore>().unwrap(), "back");
    }

    #[test]
    fn another_kind_is_refused() {
        let refused = parse("nonadminrestore.oadp.openshift.io/back").of::<NonAdminBackup>().unwrap_err();
        assert_eq!(
            refused.to_string(),
            "nonadminrestore.oadp.openshift.io/back is not a NonAdminBackup: \
             write nonadminbackup.oadp.openshift.io/NAME or NAME"
        );
        for wrong in ["", "/x", "nonadminbackup/", "a/b/c"] {
            assert!(wrong.parse::<ObjectName>().is_err(), "{wrong:?}");
        }
    }
}
