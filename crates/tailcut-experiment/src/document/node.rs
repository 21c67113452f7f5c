//! The nodes and tables of the tree.

use serde_json::Value as Json;

use super::Span;

/// A value, and its place in the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// The place of the value; for a table with a header, the place of the header.
    pub place: Span,
}

/// A TOML value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A floating-point number, which may be infinite or not a number.
    Float(f64),
    /// A string.
    Text(String),
    /// A date or time, which no parameter accepts.
    Datetime(String),
    /// A list.
    Array(Vec<Node>),
    /// A table.
    Table(Table),
}

/// A table: keys and values in the order in which they were written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// The entries, each key at most once.
    pub entries: Vec<Entry>,
}

/// A key of a table with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key, unquoted.
    pub key: String,
    /// The place of the key.
    pub place: Span,
    /// The key's value.
    pub node: Node,
}

impl Table {
    /// Returns the entry of `key`.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.key == key)
    }

    /// Returns the value of `key`.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|e| &e.node)
    }

    /// Returns the value of `key` if it is a table.
    pub fn table(&self, key: &str) -> Option<&Table> {
        match self.get(key) {
            Some(Node { value: Value::Table(table), .. }) => Some(table),
            _ => None,
        }
    }

    /// Adds an entry, or replaces the entry of the same key at its position.
    pub fn put(&mut self, entry: Entry) {
        match self.entries.iter_mut().find(|e| e.key == entry.key) {
            Some(existing) => *existing = entry,
            None => self.entries.push(entry),
        }
    }

    /// Removes and returns the entry of `key`.
    pub fn remove(&mut self, key: &str) -> Option<Entry> {
        let index = self.entries.iter().position(|e| e.key == key)?;
        Some(self.entries.remove(index))
    }

    /// Sets the value at a path of keys. Missing tables on the path are created, and scalars on it
    /// are replaced by tables. Inside a list, a key is the number of an element, from 0. New
    /// entries and the set one take `place`.
    pub fn set(&mut self, path: &[String], place: Span, node: Node) {
        let [key, rest @ ..] = path else { return };
        if rest.is_empty() {
            self.put(Entry { key: key.clone(), place, node });
            return;
        }
        if !self
            .get(key)
            .is_some_and(|child| matches!(child.value, Value::Table(_) | Value::Array(_)))
        {
            let table = Node { value: Value::Table(Table::default()), place };
            self.put(Entry { key: key.clone(), place, node: table });
        }
        if let Some(entry) = self.entries.iter_mut().find(|e| e.key == *key) {
            entry.node.set(rest, place, node);
        }
    }

    /// Returns the value at a path of keys.
    pub fn at(&self, path: &[String]) -> Option<&Node> {
        match path {
            [] => None,
            [key] => self.get(key),
            [key, rest @ ..] => self.get(key)?.at(rest),
        }
    }
}

impl Node {
    fn set(&mut self, path: &[String], place: Span, node: Node) {
        match (&mut self.value, path) {
            (Value::Table(table), _) => table.set(path, place, node),
            (Value::Array(items), [index, rest @ ..]) => {
                let element = index.parse().ok().and_then(|i: usize| items.get_mut(i));
                match (element, rest) {
                    (Some(element), []) => *element = node,
                    (Some(element), rest) => element.set(rest, place, node),
                    (None, _) => {
                        let mut table = Table::default();
                        table.set(path, place, node);
                        *self = Node { value: Value::Table(table), place };
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns the value at a path of keys, which are numbers of elements inside a list.
    pub fn at(&self, path: &[String]) -> Option<&Node> {
        match (&self.value, path) {
            (_, []) => Some(self),
            (Value::Table(table), _) => table.at(path),
            (Value::Array(items), [index, rest @ ..]) => {
                items.get(index.parse::<usize>().ok()?)?.at(rest)
            }
            _ => None,
        }
    }

    /// Returns the text of a string; `None` for any other value.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Describes the value in words that fit after "found".
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Bool(b) => format!("{b}"),
            Value::Integer(i) => format!("the integer {i}"),
            Value::Float(f) => format!("the number {f}"),
            Value::Text(text) => format!("the string {text:?}"),
            Value::Datetime(_) => "a date".to_owned(),
            Value::Array(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }

    /// Returns the label of the value as a point of a sweep: scalars as they are, tables and lists
    /// as compact text.
    pub fn label(&self) -> Json {
        match &self.value {
            Value::Array(_) | Value::Table(_) => Json::from(self.inline()),
            _ => self.to_json(),
        }
    }

    fn inline(&self) -> String {
        match &self.value {
            Value::Array(items) => {
                format!("[{}]", items.iter().map(Node::inline).collect::<Vec<_>>().join(", "))
            }
            Value::Table(table) => {
                let pairs = table.entries.iter().map(|e| format!("{}={}", e.key, e.node.inline()));
                pairs.collect::<Vec<_>>().join(" ")
            }
            Value::Text(text) => text.clone(),
            _ => self.to_json().to_string(),
        }
    }

    /// Converts the value to JSON. Numbers that are not finite become null; the check refuses them
    /// earlier.
    pub fn to_json(&self) -> Json {
        match &self.value {
            Value::Bool(b) => Json::from(*b),
            Value::Integer(i) => Json::from(*i),
            Value::Float(f) => Json::from(*f),
            Value::Text(text) | Value::Datetime(text) => Json::from(text.as_str()),
            Value::Array(items) => items.iter().map(Node::to_json).collect(),
            Value::Table(table) => table.to_json(),
        }
    }
}

impl Table {
    /// Converts the table to a JSON object.
    pub fn to_json(&self) -> Json {
        self.entries.iter().map(|e| (e.key.clone(), e.node.to_json())).collect()
    }
}
