//! Reading a tree into a type, strictly: a field that the type does not have is a problem, and every problem is
//! found at once, with its place and with what would be accepted.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};

use super::node::{Entry, Node, Value, join};
use super::problem::Position;

/// What is wrong at a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Complaint {
    pub(crate) position: Option<Position>,
    pub(crate) path: String,
    pub(crate) message: String,
}

/// Reads a tree into a type. What cannot be read is left out and complained about; nothing comes back if there is
/// nothing left. `also` names fields of the root that somebody else has taken out.
pub(crate) fn read<T: DeserializeOwned>(root: &Node, also: &[&str]) -> (Option<T>, Vec<Complaint>) {
    let mut log = Log { root, also, left_out: BTreeSet::new(), unknown: RefCell::default() };
    let mut wrong: Vec<Complaint> = Vec::new();
    loop {
        log.unknown.borrow_mut().clear();
        let error = match T::deserialize(Reader { node: root, log: &log }) {
            Ok(value) => {
                wrong.append(&mut log.unknown.into_inner());
                return (Some(value), wrong);
            }
            Err(error) => error,
        };
        // One bad value must not hide the next: leave it out, and read again.
        let (position, path) = error.place.unwrap_or_else(|| (root.position, root.path.clone()));
        let known = error.missing.is_some_and(|field| log.left_out.contains(&join(&path, field)));
        if !known {
            wrong.push(Complaint { position, path: path.clone(), message: error.message });
        }
        if path == root.path || !log.left_out.insert(path) {
            wrong.append(&mut log.unknown.into_inner());
            return (None, wrong);
        }
    }
}

struct Log<'a> {
    root: &'a Node,
    also: &'a [&'a str],
    left_out: BTreeSet<String>,
    unknown: RefCell<Vec<Complaint>>,
}

impl Log<'_> {
    fn wants(&self, node: &Node) -> bool {
        !self.left_out.contains(&node.path)
    }

    /// The fields that a block can have.
    fn known(&self, node: &Node, fields: &[&str]) -> String {
        let also = if std::ptr::eq(node, self.root) { self.also } else { &[] };
        [fields, also].concat().join(", ")
    }
}

/// Why a value could not be read, and where.
#[derive(Debug)]
struct Error {
    place: Option<(Option<Position>, String)>,
    missing: Option<&'static str>,
    message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { place: None, missing: None, message: message.to_string() }
    }

    fn missing_field(field: &'static str) -> Self {
        Self { place: None, missing: Some(field), message: format!("{field} is missing") }
    }
}

#[derive(Clone, Copy)]
struct Reader<'a> {
    node: &'a Node,
    log: &'a Log<'a>,
}

impl Reader<'_> {
    fn expected<T>(self, what: &str) -> Result<T, Error> {
        let message = format!("{} was found where {what} belongs", shown(&self.node.value));
        self.placed(Err(de::Error::custom(message)))
    }

    /// Whoever complained without knowing where: here.
    fn placed<T>(self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|mut error| {
            error.place.get_or_insert_with(|| (self.node.position, self.node.path.clone()));
            error
        })
    }

    fn whole<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.node.value {
            Value::Whole(number) if number >= 0 => self.placed(visitor.visit_i64(number)),
            _ => self.expected("a whole number, 0 or more,"),
        }
    }

    fn text<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::Text(text) => self.placed(visitor.visit_str(text)),
            // The one duration that needs no unit.
            Value::Whole(0) => self.placed(visitor.visit_str("0")),
            Value::Bool(_) | Value::Whole(_) | Value::Number(_) => self.expected("text (put it in quotes)"),
            _ => self.expected("text"),
        }
    }

    fn block<'de, V: Visitor<'de>>(self, entries: Vec<&Entry>, visitor: V) -> Result<V::Value, Error> {
        let wanted = entries.into_iter().filter(|entry| self.log.wants(&entry.node));
        let fields = wanted.map(|entry| (entry.name.as_str(), Reader { node: &entry.node, log: self.log }));
        self.placed(visitor.visit_map(MapDeserializer::new(fields)))
    }

    fn list<'de, V: Visitor<'de>>(self, items: &[Node], visitor: V) -> Result<V::Value, Error> {
        let wanted = items.iter().filter(|node| self.log.wants(node));
        self.placed(
            visitor.visit_seq(SeqDeserializer::new(wanted.map(|node| Reader { node, log: self.log }))),
        )
    }
}

impl IntoDeserializer<'_, Error> for Reader<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// A value in a message: enough to find it, not more.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(is) => is.to_string(),
        Value::Whole(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Text(text) if text.chars().count() > 40 => {
            format!("{:?}...", text.chars().take(40).collect::<String>())
        }
        Value::Text(text) => format!("{text:?}"),
        Value::List(_) => "a list".to_owned(),
        Value::Block(_) => "a block of fields".to_owned(),
    }
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::Null => self.placed(visitor.visit_unit()),
            Value::Bool(is) => self.placed(visitor.visit_bool(*is)),
            Value::Whole(number) => self.placed(visitor.visit_i64(*number)),
            Value::Number(number) => self.placed(visitor.visit_f64(*number)),
            Value::Text(text) => self.placed(visitor.visit_str(text)),
            Value::List(items) => self.list(items, visitor),
            Value::Block(entries) => self.block(entries.iter().collect(), visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.node.value {
            Value::Bool(is) => self.placed(visitor.visit_bool(is)),
            _ => self.expected("true or false"),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.whole(visitor)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.whole(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.text(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.text(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.node.value {
            Value::Null => self.placed(visitor.visit_none()),
            _ => self.placed(visitor.visit_some(self)),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.placed(visitor.visit_newtype_struct(self))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::List(items) => self.list(items, visitor),
            _ => self.expected("a list"),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::Block(entries) => self.block(entries.iter().collect(), visitor),
            _ => self.expected("a block of names and values"),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let Value::Block(entries) = &self.node.value else {
            return self.expected(&format!("a block with {}", self.log.known(self.node, fields)));
        };
        let (known, unknown): (Vec<_>, Vec<_>) =
            entries.iter().partition(|entry| fields.contains(&entry.name.as_str()));
        for entry in unknown {
            let message =
                format!("there is no such field; known here: {}", self.log.known(self.node, fields));
            let path = entry.node.path.clone();
            self.log.unknown.borrow_mut().push(Complaint { position: entry.position, path, message });
        }
        // A field with nothing in it is one that was left out.
        let known = known.into_iter().filter(|entry| entry.node.value != Value::Null).collect();
        self.block(known, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let word = match &self.node.value {
            Value::Text(text) => text.as_str(),
            // Tools that rewrite documents take these two words for switches.
            Value::Bool(true) => "on",
            Value::Bool(false) => "off",
            _ => "",
        };
        match words.iter().find(|known| **known == word) {
            Some(word) => self.placed(visitor.visit_enum(StrDeserializer::new(word))),
            None => self.expected(&format!("one of {}", words.join(", "))),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.text(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.placed(visitor.visit_unit())
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i128 u8 u16 u32 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct
    }
}
