//! From a name to the objects that refer to it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::slice;

/// The values by name.
#[derive(Clone, Debug)]
pub(crate) struct Index<V>(HashMap<String, Values<V>>);

/// The values of a name. Most names have one, which needs no set.
#[derive(Clone, Debug)]
enum Values<V> {
    One(V),
    More(BTreeSet<V>),
}

impl<V> Default for Index<V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<V: Ord + Clone> Index<V> {
    /// Moves a value from its old names to its new names.
    pub(crate) fn shift(&mut self, value: &V, before: &[String], after: &[String]) {
        for name in before.iter().filter(|name| !after.contains(name)) {
            let is_last = match self.0.get_mut(name) {
                None => false,
                Some(Values::One(only)) => only == value,
                Some(Values::More(values)) => values.remove(value) && values.is_empty(),
            };
            if is_last {
                self.0.remove(name);
            }
        }
        for name in after.iter().filter(|name| !before.contains(name)) {
            match self.0.get_mut(name) {
                None => _ = self.0.insert(name.clone(), Values::One(value.clone())),
                Some(Values::More(values)) => _ = values.insert(value.clone()),
                Some(values) => values.add(value),
            }
        }
    }

    /// The values of a name, in order.
    pub(crate) fn under(&self, name: &str) -> impl Iterator<Item = &V> + use<'_, V> {
        let (one, more) = match self.0.get(name) {
            None => (&[][..], None),
            Some(Values::One(only)) => (slice::from_ref(only), None),
            Some(Values::More(values)) => (&[][..], Some(values)),
        };
        one.iter().chain(more.into_iter().flatten())
    }
}

impl<V: Ord + Clone> Values<V> {
    /// Adds a value to the only one.
    fn add(&mut self, value: &V) {
        if let Self::One(only) = self
            && only != value
        {
            *self = Self::More([only.clone(), value.clone()].into());
        }
    }
}

/// From a name to values that several objects give it: a value stays until the last of them is gone.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedIndex(HashMap<String, BTreeMap<String, u32>>);

impl SharedIndex {
    /// An object gives a name a value, and gave one before.
    pub(crate) fn shift(&mut self, before: Option<(String, String)>, after: Option<(String, String)>) {
        if before == after {
            return;
        }
        if let Some((name, value)) = before
            && let Some(values) = self.0.get_mut(&name)
        {
            match values.get_mut(&value) {
                Some(number) if *number > 1 => *number -= 1,
                _ => _ = values.remove(&value),
            }
            if values.is_empty() {
                self.0.remove(&name);
            }
        }
        if let Some((name, value)) = after {
            *self.0.entry(name).or_default().entry(value).or_default() += 1;
        }
    }

    /// The values of a name, in order.
    pub(crate) fn under(&self, name: &str) -> impl Iterator<Item = &String> {
        self.0.get(name).into_iter().flat_map(BTreeMap::keys)
    }
}

#[cfg(test)]
mod tests {
    use super::{Index, SharedIndex};

    #[test]
    fn a_shared_value_stays_until_the_last_object_is_gone() {
        let mut index = SharedIndex::default();
        let given = |name: &str| Some((name.to_owned(), "v".to_owned()));
        index.shift(None, given("a"));
        index.shift(None, given("a"));
        index.shift(given("a"), given("b"));
        assert_eq!((index.under("a").count(), index.under("b").count()), (1, 1));
        index.shift(given("a"), None);
        index.shift(given("b"), None);
        assert!(index.0.is_empty());
    }

    #[test]
    fn values_move_with_their_names_and_leave_nothing_behind() {
        let mut index = Index::default();
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        index.shift(&1, &[], &names(&["a", "b"]));
        index.shift(&2, &[], &names(&["b"]));
        index.shift(&1, &names(&["a", "b"]), &names(&["b", "c"]));
        assert_eq!(index.under("a").count(), 0);
        assert_eq!(index.under("b").collect::<Vec<_>>(), [&1, &2]);
        index.shift(&1, &names(&["b", "c"]), &[]);
        index.shift(&2, &names(&["b"]), &[]);
        assert!(index.0.is_empty());
    }
}
