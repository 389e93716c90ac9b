//! A document as a tree that remembers where each part was written.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;
use serde_saphyr::{Location, Spanned};

use super::problem::Position;

/// A value, where it was written, and its path there. A tree can be put together from several places of a document:
/// the path says where the value came from, not where it ended up.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) position: Option<Position>,
    pub(crate) path: String,
    pub(crate) value: Value,
}

/// What a value can be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Whole(i64),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Block(Vec<Entry>),
}

/// A field and what it holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) position: Option<Position>,
    pub(crate) name: String,
    pub(crate) node: Node,
}

impl Default for Node {
    fn default() -> Self {
        Self { position: None, path: String::new(), value: Value::Block(Vec::new()) }
    }
}

impl Node {
    /// The same from JSON, which does not know where it was written.
    pub(crate) fn from_json(path: &str, json: &Json) -> Self {
        let mut node = Self::placeless(json);
        node.name(path);
        node
    }

    fn placeless(json: &Json) -> Self {
        let value = match json {
            Json::Null => Value::Null,
            Json::Bool(is) => Value::Bool(*is),
            Json::Number(number) => number
                .as_i64()
                .map_or_else(|| Value::Number(number.as_f64().unwrap_or_default()), Value::Whole),
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(items) => Value::List(items.iter().map(Self::placeless).collect()),
            Json::Object(fields) => Value::Block(
                fields
                    .iter()
                    .map(|(name, value)| Entry {
                        position: None,
                        name: name.clone(),
                        node: Self::placeless(value),
                    })
                    .collect(),
            ),
        };
        Self { position: None, path: String::new(), value }
    }

    /// Gives this node and all below it their paths.
    pub(crate) fn name(&mut self, path: &str) {
        path.clone_into(&mut self.path);
        match &mut self.value {
            Value::List(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    item.name(&format!("{path}[{at}]"));
                }
            }
            Value::Block(entries) => {
                for entry in entries {
                    entry.node.name(&join(path, &entry.name));
                }
            }
            _ => {}
        }
    }

    /// The fields, if it is a block.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Block(entries) => entries,
            _ => &[],
        }
    }

    /// What a field holds.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        self.entries().iter().find(|entry| entry.name == name).map(|entry| &entry.node)
    }

    /// The node at a path, or the last one on the way to it.
    pub(crate) fn nearest(&self, path: &str) -> &Self {
        let steps = path.split(['.', '[']).map(|step| step.trim_end_matches(']'));
        let mut node = self;
        for step in steps {
            match node.step(step) {
                Some(next) => node = next,
                None => break,
            }
        }
        node
    }

    fn step(&self, step: &str) -> Option<&Self> {
        match &self.value {
            Value::List(items) => items.get(step.parse::<usize>().ok()?),
            _ => self.get(step),
        }
    }

    /// Takes a field out.
    pub(crate) fn take(&mut self, name: &str) -> Option<Self> {
        let Value::Block(entries) = &mut self.value else {
            return None;
        };
        let at = entries.iter().position(|entry| entry.name == name)?;
        Some(entries.remove(at).node)
    }
}

/// A path one step longer.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Where the parser says something is.
pub(crate) fn position(location: Location) -> Option<Position> {
    let (line, column) = (u32::try_from(location.line()).ok()?, u32::try_from(location.column()).ok()?);
    (line > 0).then_some(Position { line, column })
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self { position: position(referenced), path: String::new(), value })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Anything)
    }
}

struct Anything;

impl<'de> Visitor<'de> for Anything {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, is: bool) -> Result<Value, E> {
        Ok(Value::Bool(is))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Whole(number))
    }

    #[expect(clippy::cast_precision_loss, reason = "no field takes a number this large; it is only shown")]
    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(i64::try_from(number).map_or(Value::Number(number as f64), Value::Whole))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = from.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, node)) = from.next_entry::<Spanned<String>, Node>()? {
            entries.push(Entry { position: position(key.referenced), name: key.value, node });
        }
        Ok(Value::Block(entries))
    }
}
