//! Many messages that differ only in the object, as one.

/// From how many on lines that differ only in the object become one.
const MANY: usize = 3;
/// How many objects such a line names.
const NAMED: usize = 3;

const COULD_NOT: &str = "could not restore, ";
const EXISTS: &str = " already exists";

/// A thousand objects that exist already are one line, not a thousand, and so are equal lines: it stands where the first
/// of them stood.
pub fn grouped<'a>(all: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut groups: Vec<(Group<'a>, Vec<&'a str>)> = Vec::new();
    let mut known = std::collections::HashMap::new();
    for line in all {
        let (group, object) = Group::of(line);
        let at = *known.entry(group).or_insert_with(|| {
            groups.push((group, Vec::new()));
            groups.len() - 1
        });
        groups[at].1.push(object);
    }
    groups.into_iter().flat_map(|(group, objects)| group.lines(&objects)).collect()
}

/// What lines have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Group<'a> {
    /// Objects that exist already, and what Velero says about them.
    Existing(&'a str),
    /// A line of its own.
    Line(&'a str),
}

impl<'a> Group<'a> {
    /// The group of a line, and the object that it is about.
    fn of(line: &'a str) -> (Self, &'a str) {
        match line.strip_prefix(COULD_NOT).and_then(|rest| rest.split_once(EXISTS)) {
            Some((object, rest)) => (Self::Existing(rest), object),
            None => (Self::Line(line), line),
        }
    }

    fn lines(self, objects: &[&str]) -> Vec<String> {
        match self {
            Self::Line(line) if objects.len() == 1 => vec![line.to_owned()],
            Self::Line(line) => vec![format!("{line} ({} times)", objects.len())],
            Self::Existing(rest) if objects.len() < MANY => {
                objects.iter().map(|object| format!("{COULD_NOT}{object}{EXISTS}{rest}")).collect()
            }
            Self::Existing(rest) => {
                let named = objects.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
                let more = match objects.len().saturating_sub(NAMED) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                vec![format!(
                    "{} objects were not restored, each{EXISTS}{rest}: {named}{more}",
                    objects.len()
                )]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn many_objects_that_exist_are_one_line_with_a_count() {
        let said =
            |name: &str| format!("could not restore, ConfigMap:{name} already exists. Warning: it differs");
        let mut all: Vec<String> = ["a", "b", "c", "d", "e"].map(said).to_vec();
        all.insert(1, "something else".to_owned());
        assert_eq!(
            grouped(all.iter().map(String::as_str)),
            [
                "5 objects were not restored, each already exists. Warning: it differs: ConfigMap:a, ConfigMap:b, ConfigMap:c and 2 more",
                "something else",
            ]
        );
        // As Velero 1.14 writes it.
        let quoted = |name: &str| {
            format!("could not restore, ConfigMap \"{name}\" already exists. Warning: it differs")
        };
        let all: Vec<String> = ["a", "b", "c"].map(quoted).to_vec();
        assert_eq!(
            grouped(all.iter().map(String::as_str)),
            [
                r#"3 objects were not restored, each already exists. Warning: it differs: ConfigMap "a", ConfigMap "b", ConfigMap "c""#
            ]
        );
        let few = [said("a"), said("b")];
        assert_eq!(grouped(few.iter().map(String::as_str)), few);
    }

    #[test]
    fn equal_lines_are_one_with_a_count() {
        assert_eq!(grouped(["a", "b", "a", "a"].into_iter()), ["a (3 times)", "b"]);
    }
}
