//! A form as a browser sends it: what is hidden, written, ticked and chosen, and the button that was pressed.

use crate::console::pages::escaped;

#[derive(Clone)]
pub(super) struct Form {
    fields: Vec<(String, String, Kind)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Box { ticked: bool },
    Radio { chosen: bool },
}

impl Form {
    /// The form of a page that has this button.
    pub(super) fn with_button(page: &str, button: &str) -> Self {
        let forms = page.split("<form ").skip(1).filter_map(|rest| rest.split("</form>").next());
        let form = forms.filter(|form| form.contains(&format!("value=\"{button}\""))).last();
        let form = form.unwrap_or_else(|| panic!("no form has the button {button}: {page}"));
        let inputs = form.split("<input ").skip(1).filter_map(|rest| rest.split('>').next());
        Self { fields: inputs.filter_map(input).collect() }
    }

    /// Whether a box is ticked; it must be there.
    pub(super) fn tick(&mut self, name: &str, value: &str, tick: bool) {
        let mut found = self.fields.iter_mut().filter(|(at, of, _)| at == name && of == value);
        let (_, _, kind) = found.next().unwrap_or_else(|| panic!("no box {name}={value}"));
        assert!(matches!(kind, Kind::Box { .. }), "{name} is no box");
        *kind = Kind::Box { ticked: tick };
    }

    /// Chooses one of several.
    pub(super) fn choose(&mut self, name: &str, value: &str) {
        assert!(self.fields.iter().any(|(at, of, _)| at == name && of == value), "no {name}={value}");
        for (at, of, kind) in &mut self.fields {
            if at == name && matches!(kind, Kind::Radio { .. }) {
                *kind = Kind::Radio { chosen: of == value };
            }
        }
    }

    pub(super) fn write(&mut self, name: &str, text: &str) {
        let mut found = self.fields.iter_mut().filter(|(at, _, kind)| at == name && *kind == Kind::Text);
        found.next().unwrap_or_else(|| panic!("no field {name}")).1 = text.to_owned();
    }

    /// What a field has.
    pub(super) fn value(&self, name: &str) -> &str {
        let found = self.fields.iter().find(|(at, ..)| at == name);
        &found.unwrap_or_else(|| panic!("no field {name}")).1
    }

    /// What is sent when this button is pressed.
    pub(super) fn press(&self, button: &str) -> String {
        let sent = self.fields.iter().filter(|(.., kind)| {
            matches!(kind, Kind::Text | Kind::Box { ticked: true } | Kind::Radio { chosen: true })
        });
        let pairs = sent.map(|(name, value, _)| format!("{}={}", escaped(name), escaped(value)));
        pairs.chain([format!("do={button}")]).collect::<Vec<_>>().join("&")
    }
}

fn input(text: &str) -> Option<(String, String, Kind)> {
    let attribute = |name: &str| {
        let (_, rest) = text.split_once(&format!("{name}=\""))?;
        Some(rest.split_once('"')?.0.replace("&amp;", "&").replace("&quot;", "\"").replace("&lt;", "<"))
    };
    let is_set = |flag: &str| text.split_whitespace().any(|word| word == flag);
    if is_set("disabled") {
        return None;
    }
    let kind = match attribute("type")?.as_str() {
        "checkbox" => Kind::Box { ticked: is_set("checked") },
        "radio" => Kind::Radio { chosen: is_set("checked") },
        _ => Kind::Text,
    };
    Some((attribute("name")?, attribute("value").unwrap_or_default(), kind))
}
