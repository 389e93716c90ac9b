//! Checks of values.

/// A truth value as Go reads it.
pub(super) fn switch(value: &str) -> Option<bool> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

pub(super) fn is_switch(value: &str) -> Option<String> {
    switch(value).is_none().then(|| "must be \"true\" or \"false\"".to_owned())
}

/// Refuses whatever is not one of these.
pub(super) fn one_of(value: &str, words: &[&str]) -> Option<String> {
    (!words.contains(&value)).then(|| format!("must be one of {}", words.join(", ")))
}

/// Refuses what is longer than this or has anything but letters, digits and these.
pub(super) fn word(value: &str, longest: usize, also: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || also.contains(c);
    (value.len() > longest || !value.chars().all(plain)).then(|| {
        let signs: Vec<String> = also.chars().map(String::from).collect();
        let signs = if signs.is_empty() { String::new() } else { format!(" and {}", signs.join(" ")) };
        format!("may have at most {longest} characters: letters, digits{signs}")
    })
}
