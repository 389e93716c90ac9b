//! Where on the command line the cursor stands.

use clap::{Arg, Command};

/// Where the cursor stands, and what was said before it.
pub(super) struct Spot<'a> {
    /// The commands on the way, without the program.
    pub(super) path: Vec<&'a str>,
    /// The last of them.
    pub(super) command: &'a Command,
    /// What the word could be.
    pub(super) wanted: Wanted<'a>,
    /// What of the last word is settled: `--output=`, or `a,b,`.
    pub(super) before: String,
    /// The rest of it.
    pub(super) word: &'a str,
    /// The values given so far, by the name of their argument in the code.
    given: Vec<(&'a str, String)>,
}

/// What a word could be.
pub(super) enum Wanted<'a> {
    /// The name of a flag.
    Flag,
    /// The value of this flag or in this place.
    Value(&'a Arg),
    /// A command below, if there is any.
    Command,
}

impl Spot<'_> {
    /// The values given for an argument.
    pub(super) fn values(&self, name: &str) -> Vec<String> {
        self.given.iter().filter(|(given, _)| *given == name).map(|(_, value)| value.clone()).collect()
    }
}

/// What the walk along the words knows.
struct Walk<'a> {
    path: Vec<&'a str>,
    command: &'a Command,
    given: Vec<(&'a str, String)>,
    /// A flag that waits for its value.
    pending: Option<&'a Arg>,
    /// How many values without a flag there were.
    places: usize,
    /// Whether `--` was said.
    only_values: bool,
}

/// Finds the spot; the command must have been built.
pub(super) fn find<'a>(program: &'a Command, words: &'a [String]) -> Spot<'a> {
    let mut walk = Walk {
        path: Vec::new(),
        command: program,
        given: Vec::new(),
        pending: None,
        places: 0,
        only_values: false,
    };
    let (last, before) = words.split_last().map_or(("", words), |(last, before)| (last.as_str(), before));
    for word in before {
        walk.pass(word);
    }
    walk.stop(last)
}

impl<'a> Walk<'a> {
    fn pass(&mut self, word: &str) {
        if let Some(flag) = self.pending.take() {
            self.given.push((flag.get_id().as_str(), word.to_owned()));
        } else if self.only_values {
            self.value(word);
        } else if word == "--" {
            self.only_values = true;
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            self.flag(self.long(name), value);
        } else if let Some(shorts) = word.strip_prefix('-').filter(|shorts| !shorts.is_empty()) {
            self.shorts(shorts);
        } else if let Some(below) = self.command.find_subcommand(word).filter(|_| self.places == 0) {
            self.path.push(below.get_name());
            self.command = below;
        } else {
            self.value(word);
        }
    }

    fn flag(&mut self, flag: Option<&'a Arg>, value: Option<&str>) {
        let Some(flag) = flag.filter(|flag| flag.get_action().takes_values()) else { return };
        match value {
            Some(value) => self.given.push((flag.get_id().as_str(), value.to_owned())),
            None if flag.is_require_equals_set() => {}
            None => self.pending = Some(flag),
        }
    }

    /// `-A`, `-nshop`, `-n=shop`, `-wn`.
    fn shorts(&mut self, shorts: &str) {
        for (at, letter) in shorts.char_indices() {
            let flag = self.command.get_arguments().find(|flag| flag.get_short() == Some(letter));
            if let Some(flag) = flag.filter(|flag| flag.get_action().takes_values()) {
                let rest = &shorts[at + letter.len_utf8()..];
                let value = rest.strip_prefix('=').unwrap_or(rest);
                self.flag(Some(flag), (!value.is_empty()).then_some(value));
                return;
            }
        }
    }

    fn long(&self, name: &str) -> Option<&'a Arg> {
        self.command.get_arguments().find(|flag| {
            flag.get_long() == Some(name) || flag.get_all_aliases().is_some_and(|all| all.contains(&name))
        })
    }

    fn value(&mut self, word: &str) {
        if let Some(place) = self.place() {
            self.given.push((place.get_id().as_str(), word.to_owned()));
        }
        self.places += 1;
    }

    /// The argument without a flag whose turn it is; the last may take all that come.
    fn place(&self) -> Option<&'a Arg> {
        let places: Vec<&'a Arg> = self.command.get_positionals().collect();
        places.get(self.places).copied().or_else(|| {
            let many = |place: &&Arg| place.get_num_args().is_some_and(|number| number.max_values() > 1);
            places.last().copied().filter(many)
        })
    }

    fn stop(self, last: &'a str) -> Spot<'a> {
        let long = last.strip_prefix("--").and_then(|long| long.split_once('='));
        let is_flag = !self.only_values && last.starts_with('-');
        let (wanted, before, word) = match (self.pending, long.filter(|_| is_flag)) {
            (Some(flag), _) => (Wanted::Value(flag), String::new(), last),
            (None, Some((name, value))) => match self.long(name) {
                Some(flag) => (Wanted::Value(flag), format!("--{name}="), value),
                None => (Wanted::Flag, String::new(), last),
            },
            (None, None) if is_flag => (Wanted::Flag, String::new(), last),
            (None, None) if self.command.has_subcommands() => (Wanted::Command, String::new(), last),
            (None, None) => match self.place() {
                Some(place) => (Wanted::Value(place), String::new(), last),
                None => (Wanted::Command, String::new(), last),
            },
        };
        let (settled, word) = match &wanted {
            Wanted::Value(arg) => several(arg, word),
            Wanted::Flag | Wanted::Command => ("", word),
        };
        let Self { path, command, given, .. } = self;
        Spot { path, command, wanted, before: before + settled, word, given }
    }
}

/// What of a list is settled, and its last entry.
fn several<'a>(arg: &Arg, word: &'a str) -> (&'a str, &'a str) {
    let end = arg.get_value_delimiter().and_then(|comma| Some(word.rfind(comma)? + comma.len_utf8()));
    word.split_at(end.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::{Wanted, find};
    use crate::args;

    fn spot(words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let mut command = args::command();
        command.build();
        let spot = find(&command, &words);
        let wanted = match spot.wanted {
            Wanted::Flag => "a flag".to_owned(),
            Wanted::Value(arg) => format!("the value of {}", arg.get_id()),
            Wanted::Command => "a command".to_owned(),
        };
        let namespace = spot.values("namespace").pop().unwrap_or_default();
        format!("{} | {wanted} | {}[{}] | {namespace}", spot.path.join(" "), spot.before, spot.word)
    }

    #[test]
    fn the_spot_is_found_whatever_stands_before_it() {
        let lines = [
            &[][..],
            &["ba"],
            &["backup", ""],
            &["nab", "get", "da"],
            &["-n", "shop", "backup", "describe", ""],
            &["backup", "-nshop", "delete", "--yes", "a", "b"],
            &["backup", "get", "--namespace=shop", "-o", "j"],
            &["backup", "get", "--output=j"],
            &["backup", "create", "daily", "--include-resources", "pods,con"],
            &["backup", "create", "--snapshot-volumes", "d"],
            &["backup", "create", "--st"],
            &["backup", "create", "x", "y"],
            &["-n"],
            &["explain", "backup", "d"],
            &["backup", "wait", "--", "-d"],
        ];
        insta::assert_snapshot!(lines.map(spot).join("\n"), @r"
         | a command | [] | 
         | a command | [ba] | 
        backup | a command | [] | 
        backup get | the value of names | [da] | 
        backup describe | the value of name | [] | shop
        backup delete | the value of names | [b] | shop
        backup get | the value of output | [j] | shop
        backup get | the value of output | --output=[j] | 
        backup create | the value of include_resources | pods,[con] | 
        backup create | the value of name | [d] | 
        backup create | a flag | [--st] | 
        backup create | a command | [y] | 
         | a flag | [-n] | 
        explain | the value of name | [d] | 
        backup wait | the value of name | [-d] | 
        ");
    }
}
