//! What Velero itself would refuse about lists of resources, so that it is refused before Velero has it.

use crate::Refusal;
use crate::served::{Served, is_pattern, selects};

/// Why Velero refuses a list of what is in together with a list of what is out.
///
/// `fields` are the names of the two lists; `lone_star` says whether everything may be left out by a star.
pub(crate) fn refusal(
    fields: (String, String),
    included: Option<&[String]>,
    excluded: Option<&[String]>,
    lone_star: bool,
) -> Option<Refusal> {
    let (included, excluded) = (included.unwrap_or_default(), excluded.unwrap_or_default());
    let star = |list: &[String]| list.iter().any(|name| name == "*");
    if star(included) && included.iter().any(|name| name != "*") {
        let message =
            "a star stands for everything and must stand alone; name resources or write only a star";
        return Some(Refusal::new(fields.0, message));
    }
    if star(excluded) && !(lone_star && included.is_empty() && excluded.iter().all(|name| name == "*")) {
        let message = "a star would leave nothing; name the resources to leave out";
        return Some(Refusal::new(fields.1, message));
    }
    let both = included.iter().find(|name| excluded.contains(name))?;
    Some(Refusal::new(fields.0, format!("{both:?} is also in {}; take it out of one of them", fields.1)))
}

/// Refuses a list that names what is always left out: Velero rejects a name in both lists.
pub(crate) fn fenced_off(field: String, included: Option<&[String]>, fence: &[String]) -> Option<Refusal> {
    let named = included?.iter().find(|name| fence.iter().any(|out| same(name, out)))?;
    Some(Refusal::new(field, format!("{named:?} is always left out; remove it from the list")))
}

/// Whether two spellings mean the same resource: in capitals, with a dot too many, or without the group.
fn same(given: &str, fenced: &str) -> bool {
    let given = given.to_ascii_lowercase();
    let given = given.trim_end_matches('.');
    given == fenced || fenced.split_once('.').is_some_and(|(plural, _)| plural == given && plural != "*")
}

/// Whether each of these names means a resource that is left out.
pub(crate) fn all_left_out(names: &[String], left_out: &[String], served: &[Served]) -> bool {
    names.iter().all(|name| is_left_out(name, left_out, served))
}

fn is_left_out(name: &str, left_out: &[String], served: &[Served]) -> bool {
    !is_pattern(name) && left_out.iter().any(|out| selects(name, out, served))
}

/// Takes resources that are left out off a list of what is in: Velero rejects a name in both lists.
pub(crate) fn take_off(list: &mut Option<Vec<String>>, left_out: &[String], served: &[Served]) {
    if let Some(list) = list {
        list.retain(|name| !is_left_out(name, left_out, served));
    }
}

/// Adds names to a list that says what is left out. A star already says all there is to say.
pub(crate) fn leave_out(list: &mut Option<Vec<String>>, more: impl IntoIterator<Item = String>) {
    let list = list.get_or_insert_default();
    if list.iter().any(|name| name == "*") {
        return;
    }
    for name in more {
        if !list.contains(&name) {
            list.push(name);
        }
    }
}
