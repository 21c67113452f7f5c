//! Encodes the tables of a run: the length of the header (32 bits, little-endian), the header
//! (JSON), and the cells of every column (little-endian), each column at a multiple of 8 bytes from
//! the start.

use serde_json::{Map, Value, json};
use tailcut_experiment::{Column, RunResult, Values};
use tailcut_net::measure::records::RunCounters;

/// The cells of all columns, to which the header refers.
#[derive(Default)]
struct Cells(Vec<u8>);

impl Cells {
    /// Adds cells and returns their offset.
    fn add<const N: usize>(&mut self, cells: impl Iterator<Item = [u8; N]>) -> usize {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        let at = self.0.len();
        self.0.extend(cells.flatten());
        at
    }

    fn column(&mut self, column: &Column) -> Value {
        let mut categories = Value::Null;
        let (kind, rows, at) = match &column.values {
            Values::U64(v) => ("u64", v.len(), self.add(v.iter().map(|x| x.to_le_bytes()))),
            Values::I64(v) => ("i64", v.len(), self.add(v.iter().map(|x| x.to_le_bytes()))),
            Values::U32(v) => ("u32", v.len(), self.add(v.iter().map(|x| x.to_le_bytes()))),
            Values::U8(v) => ("u8", v.len(), self.add(v.iter().map(|x| [*x]))),
            Values::F64(v) => ("f64", v.len(), self.add(v.iter().map(|x| x.to_le_bytes()))),
            Values::Bool(v) => ("bool", v.len(), self.add(v.iter().map(|x| [u8::from(*x)]))),
            Values::Text(texts) => {
                categories = json!(texts);
                ("u32", texts.len(), self.add((0..texts.len() as u32).map(u32::to_le_bytes)))
            }
            Values::Label { codes, categories: names } => {
                categories = json!(names);
                ("label", codes.len(), self.add(codes.iter().map(|x| [*x])))
            }
        };
        let valid = column.valid.as_ref().map(|v| self.add(v.iter().map(|x| [u8::from(*x)])));
        json!({ "name": column.name, "kind": kind, "rows": rows, "at": at, "valid": valid, "categories": categories })
    }

    fn table(&mut self, columns: &[Column]) -> Value {
        columns.iter().map(|column| self.column(column)).collect()
    }
}

/// Encodes the results of a run. Offsets in the header count from the first byte after it.
pub(crate) fn of_run(result: &RunResult) -> serde_json::Result<Vec<u8>> {
    let mut cells = Cells::default();
    let mut tables = Map::new();
    tables.insert("flows".to_owned(), cells.table(&result.flows));
    tables.insert("tiers".to_owned(), cells.table(&result.tiers));
    for (name, columns) in &result.extra_tables {
        tables.insert((*name).to_owned(), cells.table(columns));
    }
    let series = result.series.iter().map(|series| {
        let times: Vec<u64> = series.times.iter().map(|time| time.as_ns()).collect();
        let (flow, copy) = (series.of.map(|of| of.flow), series.of.map(|of| of.copy));
        json!({ "name": series.name, "flow": flow, "copy": copy, "time_ns": times, "value": series.values, "truncated": series.truncated })
    });
    let facts: Map<String, Value> =
        result.facts.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let header = json!({
        "tables": tables,
        "counters": counters(&result.counters),
        "facts": facts,
        "series": series.collect::<Vec<_>>(),
    });
    let mut header = serde_json::to_vec(&header)?;
    // JSON may end in blanks, so they pad the header.
    header.resize((header.len() + 4).next_multiple_of(8) - 4, b' ');
    let length = header.len() as u32;
    Ok([&length.to_le_bytes(), header.as_slice(), cells.0.as_slice()].concat())
}

fn counters(totals: &RunCounters) -> Map<String, Value> {
    let everywhere = [
        ("events", totals.events),
        ("packet_hops", totals.packet_hops),
        ("sent", totals.sent),
        ("delivered", totals.delivered),
        ("dropped", totals.dropped),
        ("lost_on_links", totals.lost_on_links),
        ("in_flight", totals.in_flight),
        ("needless_retransmissions", totals.needless_retransmissions),
        ("recoveries_undone", totals.recoveries_undone),
        ("end_ns", totals.end.as_ns()),
    ];
    let all = everywhere.iter().chain(&totals.scheme_counters);
    all.map(|&(name, number)| (name.to_owned(), json!(number))).collect()
}
