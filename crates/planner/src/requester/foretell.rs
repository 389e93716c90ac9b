//! What somebody would not get of a request, before it is made.

use std::collections::BTreeSet;

use api::velero::{BackupSpec, RestoreSpec};

use super::access::{Access, Ask};
use super::message::create_role;
use super::verdict::{LeftOut, Verdict};
use super::{location, of_backup, of_restore};
use crate::Policy;

/// A request, as somebody would make it.
#[derive(Clone, Copy, Debug)]
pub enum Wish<'a> {
    /// A backup: the tenant's own spec, and the same with what the administrators add.
    Backup(&'a BackupSpec, &'a BackupSpec),
    /// A restore: the tenant's own spec, what Velero would be given, and whether it is from the administrators' storage;
    /// and the resources in the backup, if they are known.
    Restore(&'a RestoreSpec, &'a RestoreSpec, bool, Option<&'a BTreeSet<String>>),
    /// A location with the key in this Secret.
    Location(&'a str),
}

/// What somebody would not get of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Foretold {
    /// Kinds that would be left out, as group-resources.
    pub left_out: Vec<String>,
    /// Why it would not start at all.
    pub refusal: Option<String>,
    /// The commands by which an administrator would permit it.
    pub commands: Vec<String>,
}

/// What somebody would not get, or what has to be asked first.
pub fn foretell(access: &Access, wish: Wish<'_>, policy: &Policy) -> Result<Foretold, Vec<Ask>> {
    let verdict = match wish {
        Wish::Backup(asked, effective) => of_backup(access, asked, effective, policy),
        Wish::Restore(asked, spec, trusted, _) => of_restore(access, asked, spec, policy, trusted),
        Wish::Location(secret) => location::of_location(access, secret, policy),
    };
    match verdict {
        Verdict::Permitted(left_out) => Ok(Foretold {
            left_out: left_out.withheld().to_vec(),
            refusal: None,
            commands: if left_out.enforced { commands(access, wish, policy, &left_out) } else { Vec::new() },
        }),
        Verdict::Ask(asks) => Err(asks),
        // The message has the commands.
        Verdict::Refused(refusal) => {
            Ok(Foretold { refusal: Some(refusal.to_string()), ..Foretold::default() })
        }
    }
}

/// The commands that would permit what is left out. Of a restore only what is in the backup counts: an administrator is not
/// asked for permissions that bring nothing back.
fn commands(access: &Access, wish: Wish<'_>, policy: &Policy, left_out: &LeftOut) -> Vec<String> {
    if let Wish::Restore(asked, spec, trusted, Some(in_backup)) = wish {
        let served = access.served.iter().flat_map(|served| served.iter());
        let served = served.filter(|one| in_backup.contains(&one.name())).cloned().collect();
        let narrowed = Access { served: Some(served), ..access.clone() };
        if let Verdict::Permitted(left_out) = of_restore(&narrowed, asked, spec, policy, trusted) {
            return create_role(access, &left_out.denied);
        }
    }
    create_role(access, &left_out.denied)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::requester::{Answer, Attributes, Identity, Requester};
    use crate::served::Served;

    /// Somebody who may do nothing, in a cluster that serves these resources.
    fn eve(served: &[(&str, &str)]) -> Access {
        let one = |&(group, plural): &(&str, &str)| Served {
            group: group.to_owned(),
            version: "v1".to_owned(),
            plural: plural.to_owned(),
            namespaced: true,
            listable: true,
            writable: true,
            preferred: true,
            ..Served::default()
        };
        Access {
            identity: Identity::Known(Arc::new(Requester { user: "eve".to_owned(), ..Requester::default() })),
            namespace: "shop".to_owned(),
            served: Some(served.iter().map(one).collect()),
            ..Access::default()
        }
    }

    /// Answers no to everything that has to be asked.
    fn foretold(access: &mut Access, wish: Wish<'_>) -> Foretold {
        loop {
            let asks = match foretell(access, wish, &Policy::default()) {
                Ok(foretold) => return foretold,
                Err(asks) => asks,
            };
            let asked = asks.into_iter().filter_map(|ask| match ask {
                Ask::Review(review) => Some(review.attributes),
                Ask::Served => None,
            });
            let no = Answer { allowed: false, at: access.now };
            let answered: Vec<(Attributes, Answer)> = asked.map(|asked| (asked, no)).collect();
            Arc::make_mut(&mut access.answers).extend(answered);
        }
    }

    #[test]
    fn an_administrator_is_asked_only_for_what_brings_something_back() {
        let rbac = "rbac.authorization.k8s.io";
        let mut access = eve(&[("", "configmaps"), ("", "secrets"), (rbac, "roles")]);
        let spec = RestoreSpec::default();
        let mut told = |in_backup: Option<&[&str]>| {
            let names: Option<BTreeSet<String>> =
                in_backup.map(|names| names.iter().map(|&name| name.to_owned()).collect());
            let foretold = foretold(&mut access, Wish::Restore(&spec, &spec, true, names.as_ref()));
            // What Velero is not given does not depend on it.
            assert_eq!(foretold.left_out, ["configmaps", "roles.rbac.authorization.k8s.io", "secrets"]);
            foretold.commands.join("\n")
        };
        let one = told(Some(&["configmaps"]));
        assert!(
            one.contains("--resource=configmaps") && !one.contains("secrets") && !one.contains(rbac),
            "{one}"
        );
        assert_eq!(told(Some(&[])), "");
        let all = told(None);
        assert!(all.contains("--resource=configmaps,secrets") && all.contains(rbac), "{all}");
    }
}
