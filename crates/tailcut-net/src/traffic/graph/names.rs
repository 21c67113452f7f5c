//! Ids of a graph's rows, as numbers: ten million take 80 MB.

use std::collections::BTreeMap;

use super::super::demand::RowId;

/// An id. Ids that are numbers, written in the shortest way, stand for themselves; the others are
/// counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name(u64);

/// Marks ids that are no numbers.
const TEXT: u64 = 1 << 63;

impl Name {
    /// Returns the id as a number, if it is one.
    pub fn number(self) -> Option<u64> {
        (self.0 < TEXT).then_some(self.0)
    }
}

/// The ids of a graph that are no numbers.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: BTreeMap<Box<str>, u64>,
    texts: Vec<Box<str>>,
}

impl Names {
    /// Returns the name of an id.
    pub fn of(&mut self, id: &str) -> Name {
        if let Some(number) = shortest(id) {
            return Name(number);
        }
        if let Some(&number) = self.known.get(id) {
            return Name(TEXT | number);
        }
        let number = self.texts.len() as u64;
        self.known.insert(id.into(), number);
        self.texts.push(id.into());
        Name(TEXT | number)
    }

    /// Returns the id of a name.
    pub fn row_id(&self, name: Name) -> RowId {
        match name.number() {
            Some(number) => RowId::Number(number),
            None => RowId::Text(self.texts[(name.0 & !TEXT) as usize].clone()),
        }
    }

    /// Returns the id of a name, as text.
    pub fn text(&self, name: Name) -> String {
        self.row_id(name).to_string()
    }
}

/// Returns a number below [`TEXT`] that is written in the shortest way.
fn shortest(id: &str) -> Option<u64> {
    let digits = id.bytes().all(|byte| byte.is_ascii_digit());
    let is_shortest = digits && (id == "0" || !id.starts_with('0'));
    is_shortest.then(|| id.parse().ok())?.filter(|number| *number < TEXT)
}
