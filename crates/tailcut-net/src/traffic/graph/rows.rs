//! The rows of a graph: what each is, and what it waits for.

use tailcut_engine::Time;

use super::super::TrafficError;
use super::MessageEnd;
use super::records::{COLUMNS, Record, Records};
use crate::files::FileReader;
use crate::topology::HostId;

/// A message or a computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Message { src: HostId, dst: HostId, bytes: u64, start: Time },
    Computation { host: HostId, processor: u32, duration: Time },
}

/// A row that another waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct After {
    pub id: String,
    /// The end of the message, if the waiting row names one.
    pub on: Option<MessageEnd>,
}

/// A row of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub id: String,
    pub work: Work,
    pub after: Vec<After>,
}

/// The rows of a file.
#[derive(Debug)]
pub(super) struct Rows {
    file: String,
    /// The word for a row in messages, and the number of each row: `line`, `row`.
    unit: &'static str,
    numbers: Vec<u32>,
    pub rows: Vec<Row>,
}

impl Rows {
    /// Reads a file. Refuses rows that are neither a message nor a computation.
    pub fn read(read: &dyn FileReader, file: &str) -> Result<Rows, TrafficError> {
        let Records { unit, records } = Records::read(read, file)?;
        let mut rows = Rows { file: file.to_owned(), unit, numbers: vec![], rows: vec![] };
        for record in records {
            let place = format!("{file}: {unit} {}", record.number);
            let row = row(&record).map_err(|what| {
                TrafficError::new("graph-row", "file", format!("{place}: {what}"))
            })?;
            rows.numbers.push(record.number);
            rows.rows.push(row);
        }
        if !rows.rows.iter().any(|row| matches!(row.work, Work::Message { .. })) {
            let message = format!("{file}: contains no message");
            return Err(TrafficError::new("graph-empty", "file", message));
        }
        Ok(rows)
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
        let is_number = |id: &str| id.parse::<u64>().is_ok_and(|number| number.to_string() == id);
        let is_message = |row: &&Row| matches!(row.work, Work::Message { .. });
        self.rows.iter().filter(is_message).all(|row| is_number(&row.id))
    }
}

fn row(record: &Record) -> Result<Row, String> {
    let cell = |name: &str| {
        let at = COLUMNS.iter().position(|known| *known == name).expect("the name is known");
        record.cells[at].as_deref().filter(|text| !text.is_empty())
    };
    let whole = |name: &str| {
        let Some(text) = cell(name) else { return Ok(None) };
        let number = text.parse::<u64>();
        number.map(Some).map_err(|_| format!("{name}: {text:?} is not a non-negative integer"))
    };
    let small = |name: &str| match whole(name)? {
        Some(number) => match u32::try_from(number) {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(format!("{name}: {number} is more than {}", u32::MAX)),
        },
        None => Ok(None),
    };
    let time = |name: &str| match whole(name)? {
        Some(ns) if ns > 1_000_000_000_000_000 => Err(format!("{name}: {ns} is over eleven days")),
        ns => Ok(ns.map(Time::from_ns)),
    };
    let (src, dst, bytes, start) =
        (small("src")?, small("dst")?, whole("bytes")?, time("start_ns")?);
    let (host, duration) = (small("host")?, time("duration_ns")?);
    let processor = small("processor")?;
    let after = cell("after").unwrap_or_default().split_whitespace();
    let after: Vec<After> = after.map(parse_after).collect::<Result<_, _>>()?;
    let id = cell("id").ok_or("it has no id")?.to_owned();
    if id.contains('@') || id.contains(char::is_whitespace) {
        return Err(format!("id: {id:?} contains a blank or an @"));
    }
    let work = match (src, dst, bytes, host, duration) {
        (Some(src), Some(dst), Some(bytes), None, None) if processor.is_none() => {
            if start.is_some() && !after.is_empty() {
                return Err("it has both start_ns and after: write only one of them".to_owned());
            }
            let (src, dst) = (HostId(src), HostId(dst));
            Work::Message { src, dst, bytes, start: start.unwrap_or(Time::ZERO) }
        }
        (None, None, None, Some(host), Some(duration)) if start.is_none() => {
            let processor = processor.unwrap_or(0);
            Work::Computation { host: HostId(host), processor, duration }
        }
        _ => {
            return Err("it is neither a message (src, dst, bytes) nor a computation (host, \
                        duration_ns)"
                .to_owned());
        }
    };
    Ok(Row { id, work, after })
}

fn parse_after(word: &str) -> Result<After, String> {
    let (id, on) = match word.split_once('@') {
        None => (word, None),
        Some((id, "received")) => (id, Some(MessageEnd::Received)),
        Some((id, "acknowledged")) => (id, Some(MessageEnd::Acknowledged)),
        Some((_, other)) => {
            return Err(format!("after: {other:?} is neither received nor acknowledged"));
        }
    };
    Ok(After { id: id.to_owned(), on })
}
