//! What a form chooses: which of its boxes are ticked, and what else it says about one request.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use maud::{Markup, html};

use super::{escaped, given};

/// The fields of a form or an address that a page knows. Others are not passed on.
pub(super) struct Choice(Vec<(String, String)>);

impl Choice {
    /// Reads one whose boxes have this name. All boxes ticked is no restriction, and so are those that the page ticked by
    /// itself: what the page could not list is then not left out. No box ticked is a mistake, and not everything.
    pub(super) fn read(fields: &[(String, String)], known: &[&str], boxes: &str) -> Result<Self> {
        let known = fields.iter().filter(|(name, _)| known.contains(&name.as_str()));
        let filled_in = known.map(|(name, value)| (name.clone(), value.trim().to_owned()));
        let mut kept: Vec<(String, String)> = filled_in.filter(|(_, value)| !value.is_empty()).collect();
        let offered = set(given(fields, "offered"));
        if offered.is_empty() {
            return Ok(Self(kept));
        }
        let ticked = kept.iter().filter(|(name, _)| name == boxes).map(|(_, value)| value.as_str());
        let ticked: BTreeSet<&str> = ticked.collect();
        if ticked.is_empty() {
            bail!(
                "no {boxes} is ticked, so there is nothing to do: tick at least one of {}",
                listed(&offered)
            );
        }
        if ticked.is_superset(&offered) || ticked == set(given(fields, "usual")) {
            kept.retain(|(name, _)| name != boxes);
        }
        Ok(Self(kept))
    }

    pub(super) fn fields(&self) -> &[(String, String)] {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What it says in a field; empty if it says nothing.
    pub(super) fn given(&self, name: &str) -> &str {
        given(&self.0, name)
    }

    /// The same in an address.
    pub(super) fn query(&self) -> String {
        let pairs = self.0.iter().map(|(name, value)| format!("{}={}", escaped(name), escaped(value)));
        pairs.collect::<Vec<_>>().join("&")
    }

    /// The page that shows it.
    pub(super) fn link(&self, path: &str) -> String {
        if self.is_empty() { path.to_owned() } else { format!("{path}?{}", self.query()) }
    }

    /// The page that shows it to somebody who has changed it and was shown something else.
    pub(super) fn changed_link(&self, path: &str) -> String {
        let more = if self.is_empty() { String::new() } else { format!("&{}", self.query()) };
        format!("{path}?changed=yes{more}")
    }

    /// What a form on the page carries: which boxes it has, which of them are ticked without a restriction, and what it was
    /// shown for. The other fields of the choice that the form has no input for are `carried`.
    pub(super) fn hidden<'a>(
        &self,
        boxes: &str,
        offered: impl IntoIterator<Item = (&'a str, bool)>,
        carried: &[&str],
    ) -> Markup {
        let offered: Vec<(&str, bool)> = offered.into_iter().collect();
        let joined = |only_ticked: bool| {
            let names = offered.iter().filter(|(_, ticked)| *ticked || !only_ticked).map(|(name, _)| *name);
            names.collect::<Vec<_>>().join(",")
        };
        html! {
            input type="hidden" name="asked" value=(self.query());
            @if !offered.is_empty() {
                input type="hidden" name="offered" value=(joined(false));
                @if self.given(boxes).is_empty() { input type="hidden" name="usual" value=(joined(true)); }
            }
            @for (name, value) in self.0.iter().filter(|(name, _)| carried.contains(&name.as_str())) {
                input type="hidden" name=(name) value=(value);
            }
        }
    }

    /// Whether it is what the form was shown for.
    pub(super) fn is_as_shown(&self, posted: &[(String, String)]) -> bool {
        given(posted, "asked") == self.query()
    }
}

/// What to say on a page that somebody sees because they changed the form and sent it without looking again.
pub(super) fn changed_notice(fields: &[(String, String)]) -> Markup {
    html! { @if !given(fields, "changed").is_empty() {
        p.notice.warning role="alert" {
            "Nothing was done: you have changed what the page showed. This is what would happen now."
        }
    } }
}

fn set(list: &str) -> BTreeSet<&str> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect()
}

fn listed(names: &BTreeSet<&str>) -> String {
    names.iter().copied().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &[(&str, &str)]) -> Result<String> {
        let fields: Vec<_> = fields.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        Ok(Choice::read(&fields, &["claim", "unsafe"], "claim")?.query())
    }

    #[test]
    fn all_boxes_are_no_restriction_and_no_box_is_a_mistake() {
        let offered = ("offered", "a,b");
        assert_eq!(read(&[offered, ("claim", "b"), ("claim", "a")]).unwrap(), "");
        assert_eq!(read(&[offered, ("claim", "b"), ("unsafe", "")]).unwrap(), "claim=b");
        assert_eq!(
            read(&[offered, ("claim", "b"), ("usual", "b"), ("unsafe", "yes")]).unwrap(),
            "unsafe=yes"
        );
        assert!(read(&[offered, ("unsafe", "yes")]).is_err());
        // A link without boxes restricts nothing by itself.
        assert_eq!(read(&[("unsafe", "yes")]).unwrap(), "unsafe=yes");
    }

    #[test]
    fn what_a_page_does_not_know_is_not_passed_on() {
        assert_eq!(read(&[("confirm", "shop"), ("claim", "a"), ("csrf", "x")]).unwrap(), "claim=a");
    }
}
