//! The rows of a graph: what each is, and what it waits for.

use tailcut_engine::Time;

use super::super::TrafficError;
use super::super::demand::{RowId, Signal};
use super::MessageEnd;
use super::names::{Name, Names};
use super::records::{self, COLUMNS, Record};
use crate::files::FileReader;
use crate::topology::HostId;

/// A message or a computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Message { src: HostId, dst: HostId, bytes: u64, start: Time },
    Computation { host: HostId, processor: u32, duration: Time },
}

/// A row that another waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct After {
    pub name: Name,
    /// The end of the message, if the waiting row names one.
    pub on: Option<MessageEnd>,
}

/// The pool of a message, how many of its messages may run at once, and the event by which one makes
/// room for the next, if the row names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pooled {
    pub name: Name,
    pub at_once: u32,
    pub until: Option<Signal>,
}

/// The rows of a file.
#[derive(Debug)]
pub(super) struct Rows {
    file: String,
    /// The word for a row in messages, and the number of each row: `line`, `row`.
    unit: &'static str,
    numbers: Vec<u32>,
    names: Names,
    pub ids: Vec<Name>,
    pub works: Vec<Work>,
    /// The waits of row i are `after[first[i]..first[i + 1]]`.
    first: Vec<u32>,
    after: Vec<After>,
    /// The pools of rows, ordered by row.
    pub pools: Vec<(u32, Pooled)>,
}

impl Rows {
    /// Reads a file. Refuses rows that are neither a message nor a computation.
    pub fn read(read: &dyn FileReader, file: &str) -> Result<Rows, TrafficError> {
        let mut rows = Rows {
            file: file.to_owned(),
            unit: records::unit(file),
            numbers: vec![],
            names: Names::default(),
            ids: vec![],
            works: vec![],
            first: vec![0],
            after: vec![],
            pools: vec![],
        };
        records::read(read, file, &mut |record| {
            rows.add(record).map_err(|what| {
                let place = format!("{file}: {} {}", rows.unit, record.number);
                TrafficError::new("graph-row", "file", format!("{place}: {what}"))
            })
        })?;
        if !rows.works.iter().any(|work| matches!(work, Work::Message { .. })) {
            let message = format!("{file}: contains no message");
            return Err(TrafficError::new("graph-empty", "file", message));
        }
        Ok(rows)
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.works.len()
    }

    /// Returns what a row waits for.
    pub fn after(&self, row: usize) -> &[After] {
        &self.after[self.first[row] as usize..self.first[row + 1] as usize]
    }

    /// Returns the id of a row.
    pub fn id(&self, row: usize) -> String {
        self.names.text(self.ids[row])
    }

    /// Returns the id of a row for messages of a run.
    pub fn row_id(&self, row: usize) -> RowId {
        self.names.row_id(self.ids[row])
    }

    /// Returns the text of a name.
    pub fn text(&self, name: Name) -> String {
        self.names.text(name)
    }

    /// Returns the place of a row: `line 3`.
    pub fn place(&self, row: usize) -> String {
        format!("{} {}", self.unit, self.numbers[row])
    }

    /// Returns the error of a row.
    pub fn refuse(&self, code: &'static str, row: usize, what: &str) -> TrafficError {
        TrafficError::new(code, "file", format!("{}: {}: {what}", self.file, self.place(row)))
    }

    /// Returns whether the ids of all messages are numbers, written in the shortest way.
    pub fn numbered(&self) -> bool {
        let mut rows = self.works.iter().zip(&self.ids);
        rows.all(|(work, id)| !matches!(work, Work::Message { .. }) || id.number().is_some())
    }

    fn add(&mut self, record: &Record) -> Result<(), String> {
        let cell = |name: &str| {
            let at = COLUMNS.iter().position(|known| *known == name).expect("the name is known");
            record.cells[at].as_deref().filter(|text| !text.is_empty())
        };
        let work = work(&cell)?;
        let id = cell("id").ok_or("it has no id")?;
        if id.contains('@') || id.contains(char::is_whitespace) {
            return Err(format!("id: {id:?} contains a blank or an @"));
        }
        if let Some(name) = cell("pool") {
            let is_message = matches!(work, Work::Message { .. });
            let at_once = small(&cell, "at_once")?.filter(|at_once| *at_once > 0);
            let Some(at_once) = at_once.filter(|_| is_message && cell("start_ns").is_none()) else {
                return Err("pool: a message with at_once above 0, and without start_ns, has one"
                    .to_owned());
            };
            let (name, until) = (self.names.of(name), cell("until").map(parse_until).transpose()?);
            self.pools.push((self.works.len() as u32, Pooled { name, at_once, until }));
        } else if let Some(column) = ["at_once", "until"].into_iter().find(|it| cell(it).is_some())
        {
            return Err(format!("it has {column}, but no pool"));
        }
        for word in cell("after").unwrap_or_default().split_whitespace() {
            let (id, on) = parse_after(word)?;
            let name = self.names.of(id);
            self.after.push(After { name, on });
        }
        let name = self.names.of(id);
        self.ids.push(name);
        self.numbers.push(record.number);
        self.works.push(work);
        self.first.push(self.after.len() as u32);
        Ok(())
    }
}

fn whole(cell: &CellsByName, name: &str) -> Result<Option<u64>, String> {
    let Some(text) = cell(name) else { return Ok(None) };
    // Other programs write integers of columns with gaps as 3.0.
    let (digits, part) = text.split_once('.').unwrap_or((text, ""));
    let is_whole = part.bytes().all(|byte| byte == b'0');
    let number = if is_whole { digits } else { text }.parse::<u64>();
    number.map(Some).map_err(|_| format!("{name}: {text:?} is not a non-negative integer"))
}

fn small(cell: &CellsByName, name: &str) -> Result<Option<u32>, String> {
    match whole(cell, name)? {
        Some(number) => match u32::try_from(number) {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(format!("{name}: {number} is more than {}", u32::MAX)),
        },
        None => Ok(None),
    }
}

fn time(cell: &CellsByName, name: &str) -> Result<Option<Time>, String> {
    match whole(cell, name)? {
        Some(ns) if ns > 1_000_000_000_000_000 => Err(format!("{name}: {ns} is over eleven days")),
        ns => Ok(ns.map(Time::from_ns)),
    }
}

/// Returns the cell of a column, if it is not empty.
type CellsByName<'a> = dyn Fn(&str) -> Option<&'a str> + 'a;

fn work(cell: &CellsByName) -> Result<Work, String> {
    let (src, dst) = (small(cell, "src")?, small(cell, "dst")?);
    let (bytes, start) = (whole(cell, "bytes")?, time(cell, "start_ns")?);
    let (host, duration) = (small(cell, "host")?, time(cell, "duration_ns")?);
    let processor = small(cell, "processor")?;
    match (src, dst, bytes, host, duration) {
        (Some(src), Some(dst), Some(bytes), None, None) if processor.is_none() => {
            if start.is_some() && cell("after").is_some_and(|after| !after.trim().is_empty()) {
                return Err("it has both start_ns and after: write only one of them".to_owned());
            }
            let (src, dst) = (HostId(src), HostId(dst));
            Ok(Work::Message { src, dst, bytes, start: start.unwrap_or(Time::ZERO) })
        }
        (None, None, None, Some(host), Some(duration)) if start.is_none() => {
            let processor = processor.unwrap_or(0);
            Ok(Work::Computation { host: HostId(host), processor, duration })
        }
        _ => Err("it is neither a message (src, dst, bytes) nor a computation (host, duration_ns)"
            .to_owned()),
    }
}

fn parse_until(word: &str) -> Result<Signal, String> {
    Signal::ALL
        .into_iter()
        .find(|signal| signal.word() == word)
        .ok_or_else(|| format!("until: {word:?} is neither sent, received nor acknowledged"))
}

fn parse_after(word: &str) -> Result<(&str, Option<MessageEnd>), String> {
    match word.split_once('@') {
        None => Ok((word, None)),
        Some((id, "received")) => Ok((id, Some(MessageEnd::Received))),
        Some((id, "acknowledged")) => Ok((id, Some(MessageEnd::Acknowledged))),
        Some((_, other)) => Err(format!("after: {other:?} is neither received nor acknowledged")),
    }
}
