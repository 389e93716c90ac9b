//! From a name to the objects that refer to it.

use std::collections::{BTreeSet, HashMap};

/// The values by name.
#[derive(Clone, Debug)]
pub(crate) struct Index<V>(HashMap<String, BTreeSet<V>>);

impl<V> Default for Index<V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<V: Ord + Clone> Index<V> {
    /// Moves a value from its old names to its new names.
    pub(crate) fn shift(&mut self, value: &V, before: &[String], after: &[String]) {
        for name in before.iter().filter(|name| !after.contains(name)) {
            if let Some(values) = self.0.get_mut(name) {
                values.remove(value);
                if values.is_empty() {
                    self.0.remove(name);
                }
            }
        }
        for name in after.iter().filter(|name| !before.contains(name)) {
            self.0.entry(name.clone()).or_default().insert(value.clone());
        }
    }

    /// The values of a name, in order.
    pub(crate) fn under(&self, name: &str) -> impl Iterator<Item = &V> {
        self.0.get(name).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::Index;

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
