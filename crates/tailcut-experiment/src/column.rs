//! Result tables as typed columns, which any data frame can take.

use tailcut_engine::{Bytes, Time};
use tailcut_net::measure::attribution::{Attribution, PARTS, Part};
use tailcut_net::measure::fair_shares::fair_shares;
use tailcut_net::measure::records::{FlowRecord, JobRecord, TierRecord};
use tailcut_net::measure::segments::{Histogram, SegmentObserver, Worst};
use tailcut_net::topology::{Graph, HostId};
use tailcut_net::traffic::Flow;
use tailcut_net::traffic::demand::CollectiveJob;

use crate::config::TableOptions;
use crate::file::FctClock;

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Unsigned 64-bit integers.
    U64(Vec<u64>),
    /// Signed 64-bit integers.
    I64(Vec<i64>),
    /// Unsigned 32-bit integers.
    U32(Vec<u32>),
    /// Unsigned 8-bit integers.
    U8(Vec<u8>),
    /// Floating point.
    F64(Vec<f64>),
    /// Truth values.
    Bool(Vec<bool>),
    /// Texts, one per row.
    Text(Vec<String>),
    /// Labels: `codes[i]` indexes `categories`.
    Label {
        /// One code per row.
        codes: Vec<u8>,
        /// The labels, in their natural order.
        categories: Vec<String>,
    },
}

/// A named column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The column's name in the Parquet file.
    pub name: &'static str,
    /// One value per row; rows without a value hold the type's default.
    pub values: Values,
    /// One flag per row, false where the value is missing; `None` if every row has a value.
    pub valid: Option<Vec<bool>>,
}

impl Column {
    pub(crate) fn all(name: &'static str, values: Values) -> Column {
        Column { name, values, valid: None }
    }

    fn some<T: Default, O>(
        name: &'static str,
        optional: impl Iterator<Item = Option<O>>,
        convert: impl Fn(O) -> T,
        wrap: impl FnOnce(Vec<T>) -> Values,
    ) -> Column {
        let (values, valid) = optional
            .map(|o| (o.is_some(), o.map(&convert).unwrap_or_default()))
            .map(|(v, x)| (x, v))
            .unzip();
        Column { name, values: wrap(values), valid: Some(valid) }
    }
}

pub(crate) fn ns(time: Time) -> i64 {
    time.as_ns() as i64
}

/// Returns a function that gives a flow's completion time by `clock`, and its ideal time.
pub(crate) fn clock_of(clock: FctClock) -> fn(&FlowRecord) -> (Option<Time>, Time) {
    match clock {
        FctClock::Receiver => |f| (f.fct, f.ideal_fct),
        FctClock::Sender => |f| (f.fct_ack, f.ideal_fct_ack),
    }
}

/// Returns the flow table: one row per flow, in the order of `flows`. The columns of duplicate ACKs
/// and reordering are empty without `segments`; the parts of completion times are left out without
/// `attribution`.
pub(crate) fn flow_columns(
    flows: &[FlowRecord],
    labels: &TableOptions,
    segments: Option<&SegmentObserver>,
    attribution: Option<&Attribution>,
) -> Vec<Column> {
    let u64s = |get: fn(&FlowRecord) -> u64| Values::U64(flows.iter().map(get).collect());
    let u32s = |get: fn(&FlowRecord) -> u32| Values::U32(flows.iter().map(get).collect());
    let u8s = |get: fn(&FlowRecord) -> u8| Values::U8(flows.iter().map(get).collect());
    let times = |get: fn(&FlowRecord) -> Option<Time>| flows.iter().map(get);
    let worst: Vec<Option<Worst>> =
        flows.iter().map(|f| segments.map(|s| s.worst_of(f.flow.id))).collect();
    let seen = |get: fn(Worst) -> u64| worst.iter().map(move |worst| worst.map(get));
    let normalised = flows.iter().map(clock_of(labels.clock));
    let normalised =
        normalised.map(|(fct, ideal)| fct.map(|t| t.as_secs_f64() / ideal.as_secs_f64()));
    let columns = vec![
        Column::all("id", u64s(|f| f.flow.id)),
        Column::all("src", u32s(|f| f.flow.src.0)),
        Column::all("dst", u32s(|f| f.flow.dst.0)),
        Column::all("bytes", u64s(|f| f.flow.bytes)),
        Column::all("start_ns", Values::I64(flows.iter().map(|f| ns(f.flow.start)).collect())),
        Column::some("connect_ns", times(|f| f.connect), ns, Values::I64),
        Column::some("fct_ns", times(|f| f.fct), ns, Values::I64),
        Column::some("fct_ack_ns", times(|f| f.fct_ack), ns, Values::I64),
        Column::all("ideal_fct_ns", Values::I64(flows.iter().map(|f| ns(f.ideal_fct)).collect())),
        Column::all(
            "ideal_fct_ack_ns",
            Values::I64(flows.iter().map(|f| ns(f.ideal_fct_ack)).collect()),
        ),
        Column::some("normalised_fct", normalised, |x| x, Values::F64),
        Column::all("class", size_class(flows, labels.short)),
        Column::all("size_group", size_group(flows, &labels.size_groups)),
        Column::all("data_packets", u64s(|f| f.data_packets)),
        Column::all("retransmissions", u64s(|f| f.retransmissions)),
        Column::all("timeouts", u32s(|f| f.timeouts)),
        Column::all("fast_recoveries", u32s(|f| f.fast_recoveries)),
        Column::all("recoveries_undone", u32s(|f| f.recoveries_undone)),
        Column::all("needless_retransmissions", u64s(|f| f.needless_retransmissions)),
        Column::some("most_duplicate_acks", seen(|w| w.duplicate_acks), |x| x, Values::U64),
        Column::some("reordering_extent", seen(|w| w.reordering), |x| x, Values::U64),
        Column::all("copies", u8s(|f| f.copies)),
        Column::some("winner", flows.iter().map(|f| f.winner), |x| x, Values::U8),
        Column::some("shared_hops", flows.iter().map(|f| f.shared_hops), |x| x, Values::U8),
        Column::all("hops", u8s(|f| f.hops)),
        Column::all("finished", Values::Bool(flows.iter().map(|f| f.fct.is_some()).collect())),
    ];
    let parts = attribution.map_or_else(Vec::new, |attribution| part_columns(flows, attribution));
    columns.into_iter().chain(parts).collect()
}

/// Returns a column for each part of the completion times, empty where a flow has not finished.
fn part_columns(flows: &[FlowRecord], attribution: &Attribution) -> Vec<Column> {
    let split = |flow: &FlowRecord| {
        let parts = attribution.parts_of(flow.flow.id).map(|parts| parts.in_ns());
        let total = parts.map(|parts| parts.iter().sum());
        assert_eq!(total, flow.fct.map(|fct| fct.as_ns()), "flow {}: parts add up", flow.flow.id);
        parts
    };
    let rows: Vec<Option<[u64; PARTS]>> = flows.iter().map(split).collect();
    let column = |(index, name): (usize, &&'static str)| {
        let part = rows.iter().map(|row| row.map(|parts| parts[index] as i64));
        Column::some(name, part, |ns| ns, Values::I64)
    };
    Part::COLUMNS.iter().enumerate().map(column).collect()
}

fn size_class(flows: &[FlowRecord], short: Bytes) -> Values {
    Values::Label {
        codes: flows.iter().map(|f| u8::from(f.flow.bytes > short.0)).collect(),
        categories: vec!["short".to_owned(), "long".to_owned()],
    }
}

/// Returns the size groups, named by their bounds: `(0,10KB]`, `(10KB,100KB]`, …, `>10MB`.
fn size_group(flows: &[FlowRecord], bounds: &[Bytes]) -> Values {
    let mut categories: Vec<String> = Vec::new();
    let mut from = "0".to_owned();
    for bound in bounds {
        categories.push(format!("({from},{bound}]"));
        from = bound.to_string();
    }
    categories.push(format!(">{from}"));
    let code = |f: &FlowRecord| bounds.partition_point(|bound| bound.0 < f.flow.bytes) as u8;
    Values::Label { codes: flows.iter().map(code).collect(), categories }
}

/// Turns texts into labels; categories are in order of appearance.
pub(crate) fn labels<'a>(texts: impl Iterator<Item = &'a str>) -> Values {
    let mut categories: Vec<String> = Vec::new();
    let code = |text: &str| {
        let known = categories.iter().position(|known| known == text);
        known.unwrap_or_else(|| {
            categories.push(text.to_owned());
            categories.len() - 1
        }) as u8
    };
    let codes = texts.map(code).collect();
    Values::Label { codes, categories }
}

/// Returns the job table: one row per job that has begun, and no column if there is none.
pub(crate) fn job_columns(jobs: &[JobRecord]) -> Vec<Column> {
    if jobs.is_empty() {
        return vec![];
    }
    let completions = jobs.iter().map(|job| job.completion);
    let mut columns = vec![
        Column::all("id", Values::U64(jobs.iter().map(|job| job.id).collect())),
        Column::all("kind", labels(jobs.iter().map(|job| job.kind))),
        Column::all("start_ns", Values::I64(jobs.iter().map(|job| ns(job.start)).collect())),
        Column::some("completion_ns", completions, ns, Values::I64),
        Column::all("flows", Values::U32(jobs.iter().map(|job| job.flows).collect())),
        Column::all("bytes", Values::U64(jobs.iter().map(|job| job.bytes).collect())),
        Column::all(
            "finished",
            Values::Bool(jobs.iter().map(|j| j.completion.is_some()).collect()),
        ),
    ];
    if jobs.iter().any(|job| job.collective.is_some()) {
        columns.extend(collective_columns(jobs));
    }
    columns
}

/// Returns the columns of collective operations, with bandwidths as nccl-tests define them.
fn collective_columns(jobs: &[JobRecord]) -> [Column; 4] {
    let about = |job: &JobRecord| job.collective;
    let bandwidth = |job: &JobRecord| {
        let (about, took) = (job.collective?, job.completion?);
        Some((about, about.bytes as f64 / (took.0 as f64 / 1_000.0)))
    };
    let bus = |(about, algorithm): (CollectiveJob, f64)| {
        algorithm * f64::from(about.bus_links) / f64::from(about.ranks)
    };
    let collectives = || jobs.iter().map(about);
    let group = |about: CollectiveJob| u64::from(about.group);
    let iteration = |about: CollectiveJob| about.iteration;
    let bandwidths = || jobs.iter().map(bandwidth);
    [
        Column::some("collective", collectives(), group, Values::U64),
        Column::some("iteration", collectives(), iteration, Values::U32),
        Column::some("algbw_gb_per_s", bandwidths(), |(_, algorithm)| algorithm, Values::F64),
        Column::some("busbw_gb_per_s", bandwidths(), bus, Values::F64),
    ]
}

/// Returns the segment table: one row per quantity and value.
pub(crate) fn segment_columns(segments: &SegmentObserver, flows: &[FlowRecord]) -> Vec<Column> {
    let mut timeouts = Histogram::new();
    for flow in flows {
        *timeouts.entry(u64::from(flow.timeouts)).or_default() += 1;
    }
    let quantities = [
        ("duplicate ACKs", &segments.duplicate_acks),
        ("reordering extent", &segments.reordering),
        ("needless transmissions", &segments.duplicates),
        ("timeouts per flow", &timeouts),
    ];
    let rows: Vec<(&str, u64, u64)> = quantities
        .into_iter()
        .flat_map(|(name, counts)| counts.iter().map(move |(&value, &count)| (name, value, count)))
        .collect();
    vec![
        Column::all("quantity", labels(rows.iter().map(|row| row.0))),
        Column::all("value", Values::U64(rows.iter().map(|row| row.1).collect())),
        Column::all("count", Values::U64(rows.iter().map(|row| row.2).collect())),
    ]
}

/// Returns the throughput table of the long flows that start before `arrivals`: one row per flow,
/// in the order of `flows`. `payload_share` returns the payload's share of a flow's full packets on
/// the wire.
pub(crate) fn throughput_columns(
    flows: &[FlowRecord],
    graph: &Graph,
    arrivals: Time,
    payload_share: &dyn Fn(&Flow) -> f64,
    labels: &TableOptions,
) -> Vec<Column> {
    let long = |f: &&FlowRecord| f.flow.bytes > labels.short.0 && f.flow.start < arrivals;
    let flows: Vec<&FlowRecord> = flows.iter().filter(long).collect();
    let end = |f: &FlowRecord| f.fct.map_or(arrivals, |fct| (f.flow.start + fct).min(arrivals));
    let rate = |f: &&FlowRecord| {
        f.delivered_in_arrivals as f64 * 8.0 / (end(f) - f.flow.start).as_secs_f64()
    };
    // The ideal is the fair share among the flows that are still active when the arrivals end.
    let stays = |f: &FlowRecord| end(f) == arrivals;
    let staying: Vec<(HostId, HostId)> =
        flows.iter().filter(|f| stays(f)).map(|f| (f.flow.src, f.flow.dst)).collect();
    let mut shares = fair_shares(graph, &staying).into_iter();
    let ideal = |f: &&FlowRecord| match stays(f) {
        true => shares.next().map(|rate| rate * payload_share(&f.flow)),
        false => None,
    };
    let ideals = flows.iter().map(ideal);
    vec![
        Column::all("id", Values::U64(flows.iter().map(|f| f.flow.id).collect())),
        Column::all("bytes", Values::U64(flows.iter().map(|f| f.flow.bytes).collect())),
        Column::all(
            "delivered_bytes",
            Values::U64(flows.iter().map(|f| f.delivered_in_arrivals).collect()),
        ),
        Column::all("throughput_bps", Values::F64(flows.iter().map(rate).collect())),
        Column::some("ideal_bps", ideals, |rate: f64| rate, Values::F64),
    ]
}

/// Returns the link table: one row per tier and direction.
pub(crate) fn tier_columns(tiers: &[TierRecord]) -> Vec<Column> {
    let directions = vec!["down".to_owned(), "up".to_owned()];
    let u64s = |get: fn(&TierRecord) -> u64| Values::U64(tiers.iter().map(get).collect());
    let u32s = |get: fn(&TierRecord) -> u32| Values::U32(tiers.iter().map(get).collect());
    let f64s = |get: fn(&TierRecord) -> f64| Values::F64(tiers.iter().map(get).collect());
    vec![
        Column::all("tier", labels(tiers.iter().map(|tier| tier.tier.as_str()))),
        Column::all(
            "direction",
            Values::Label {
                codes: tiers.iter().map(|t| u8::from(t.up)).collect(),
                categories: directions,
            },
        ),
        Column::all("links", u32s(|t| t.links)),
        Column::all("packets", u64s(|t| t.packets)),
        Column::all("wire_bytes", u64s(|t| t.wire_bytes)),
        Column::all("drops", u64s(|t| t.drops)),
        Column::all("mean_utilisation", f64s(|t| t.mean_utilisation)),
        Column::all("max_utilisation", f64s(|t| t.max_utilisation)),
        Column::all("max_queue", u32s(|t| t.max_queue)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(bytes: u64, fct_us: Option<u64>) -> FlowRecord {
        FlowRecord {
            flow: Flow { src: HostId(0), dst: HostId(1), bytes, start: Time::ZERO, id: 0 },
            connect: None,
            fct: fct_us.map(Time::from_us),
            fct_ack: fct_us.map(|us| Time::from_us(us + 10)),
            ideal_fct: Time::from_us(100),
            ideal_fct_ack: Time::from_us(128),
            data_packets: 1,
            retransmissions: 0,
            timeouts: 0,
            fast_recoveries: 0,
            recoveries_undone: 0,
            needless_retransmissions: 0,
            copies: 1,
            winner: None,
            shared_hops: None,
            hops: 2,
            delivered_in_arrivals: 0,
        }
    }

    fn labels(clock: FctClock) -> TableOptions {
        let size_groups = vec![Bytes(10_000), Bytes(100_000)];
        TableOptions {
            clock,
            short: Bytes(100_000),
            size_groups,
            segments: false,
            throughput: false,
            attribution: false,
            instants: None,
        }
    }

    fn column(flows: &[FlowRecord], clock: FctClock, name: &str) -> Column {
        let columns = flow_columns(flows, &labels(clock), None, None);
        columns.into_iter().find(|c| c.name == name).expect("the column exists")
    }

    #[test]
    fn bounds_belong_to_the_lower_group() {
        let flows =
            [flow(10_000, None), flow(10_001, None), flow(100_000, None), flow(100_001, None)];
        let Values::Label { codes, categories } =
            column(&flows, FctClock::Receiver, "size_group").values
        else {
            panic!("size_group is a label")
        };
        assert_eq!(codes, [0, 1, 1, 2]);
        assert_eq!(categories, ["(0,10KB]", "(10KB,100KB]", ">100KB"]);
        let Values::Label { codes, .. } = column(&flows, FctClock::Receiver, "class").values else {
            panic!("class is a label")
        };
        assert_eq!(codes, [0, 0, 0, 1]);
    }

    #[test]
    fn the_chosen_clock_is_normalised_and_unfinished_flows_have_none() {
        let flows = [flow(1, Some(150)), flow(1, None)];
        let receiver = column(&flows, FctClock::Receiver, "normalised_fct");
        assert_eq!(receiver.values, Values::F64(vec![1.5, 0.0]));
        assert_eq!(receiver.valid, Some(vec![true, false]));
        let sender = column(&flows, FctClock::Sender, "normalised_fct");
        assert_eq!(sender.values, Values::F64(vec![1.25, 0.0]));
    }
}
